import { describe, expect, test } from 'vitest'
import { learned, startPace } from '../../src/api/governor/pace.ts'
import type { LimitRule } from '../../src/simulator/faults/limits.ts'
import { createDraw } from '../../src/simulator/random.ts'
import { type Driven, drive, type Hint, limitedTo } from './simulated-pace.ts'

const MINUTE = 60_000
const HINTS: readonly Hint[] = ['seconds', 'date', 'none']

interface Limit {
  name: string
  rule: LimitRule
  /** The requests that it accepts per second. */
  perSecond: number
  latencyMs: number
  /** The search for the limit may take until then: 30 s, or two windows. */
  knownAfterMs: number
  /** The minimum share to use. It is lower where the limit saves nothing up, so that a pause of a second is lost. */
  used?: number
}

const LIMITS: readonly Limit[] = [
  {
    name: '10 a second, in bursts of 20',
    rule: { kind: 'token-bucket', rate: 10, burst: 20 },
    perSecond: 10,
    latencyMs: 5,
    knownAfterMs: 30_000,
  },
  {
    name: '10 a second, and never two at once',
    rule: { kind: 'token-bucket', rate: 10, burst: 1 },
    perSecond: 10,
    latencyMs: 5,
    knownAfterMs: 30_000,
    used: 0.9,
  },
  {
    name: '2 a second, in bursts of 5',
    rule: { kind: 'token-bucket', rate: 2, burst: 5 },
    perSecond: 2,
    latencyMs: 5,
    knownAfterMs: 30_000,
  },
  {
    name: '600 in each minute',
    rule: { kind: 'fixed-window', count: 600, windowMs: MINUTE },
    perSecond: 10,
    latencyMs: 5,
    knownAfterMs: 2 * MINUTE,
  },
  {
    name: '100 in any 10 s',
    rule: { kind: 'sliding-window', count: 100, windowMs: 10_000 },
    perSecond: 10,
    latencyMs: 5,
    knownAfterMs: 30_000,
  },
  {
    name: '4 at once',
    rule: { kind: 'concurrency', max: 4 },
    perSecond: 40,
    latencyMs: 100,
    knownAfterMs: 30_000,
  },
  {
    name: '100 a second from far away',
    rule: { kind: 'token-bucket', rate: 100, burst: 50 },
    perSecond: 100,
    latencyMs: 300,
    knownAfterMs: 30_000,
  },
]

/** Accepted and refused requests per second in a span. */
function rates({ requests }: Driven, from: number, to: number) {
  const within = requests.filter(({ at }) => at >= from && at < to)
  const accepted = within.filter(request => request.accepted).length
  const perSecond = (count: number) => (1000 * count) / (to - from)
  return { accepted: perSecond(accepted), refused: perSecond(within.length - accepted) }
}

describe.each(HINTS)('limits with %s as the hint', hint => {
  test.each(LIMITS)('a limit of $name is used up with few refusals', limit => {
    const untilMs = 8 * MINUTE
    const api = limitedTo(limit.rule, hint)
    const driven = drive(startPace({}, undefined), { api, untilMs, latencyMs: limit.latencyMs })
    const { accepted, refused } = rates(driven, limit.knownAfterMs, untilMs)
    expect(accepted / limit.perSecond).toBeGreaterThan(limit.used ?? 0.95)
    expect(refused / (accepted + refused)).toBeLessThan(0.01)
  })

  test('a halved limit is found within half a minute, and a doubled one within two minutes', () => {
    const rule = (rate: number): LimitRule => ({ kind: 'token-bucket', rate, burst: 20 })
    const [before, halved, doubled] = [rule(10), rule(5), rule(10)]
    const [halvedAt, doubledAt] = [2 * MINUTE, 4 * MINUTE]
    const ruleAt = (at: number) => (at < halvedAt ? before : at < doubledAt ? halved : doubled)
    const api = limitedTo(ruleAt, hint)
    const driven = drive(startPace({}, undefined), { api, untilMs: 8 * MINUTE, latencyMs: 5 })
    const slow = rates(driven, halvedAt + 30_000, doubledAt)
    expect(slow.accepted).toBeGreaterThan(4.6)
    expect(slow.refused / slow.accepted).toBeLessThan(0.02)
    expect(rates(driven, doubledAt + 2 * MINUTE, 8 * MINUTE).accepted).toBeGreaterThan(9)
  })
})

describe('the first minute', () => {
  test.each<[string, LimitRule, number]>([
    ['3 a second, in bursts of 5', { kind: 'token-bucket', rate: 3, burst: 5 }, 3],
    ['3 a second, and never two at once', { kind: 'token-bucket', rate: 3, burst: 1 }, 3],
    ['20 a second, in bursts of 5', { kind: 'token-bucket', rate: 20, burst: 5 }, 20],
    ['40 a second, in bursts of 10', { kind: 'token-bucket', rate: 40, burst: 10 }, 40],
    ['100 in any 10 s', { kind: 'sliding-window', count: 100, windowMs: 10_000 }, 10],
    ['20 in each second', { kind: 'fixed-window', count: 20, windowMs: 1000 }, 20],
  ])('a limit of %s is used up from the tenth second on with few refusals', (_, rule, perSecond) => {
    for (const hint of HINTS) {
      const driven = drive(startPace({}, undefined), { api: limitedTo(rule, hint), untilMs: 2 * MINUTE })
      expect(rates(driven, 10_000, MINUTE).accepted / perSecond).toBeGreaterThan(0.92)
      const { accepted, refused } = rates(driven, 0, 2 * MINUTE)
      expect(refused / (accepted + refused)).toBeLessThan(0.015)
    }
  })
})

test('a limit of 100 in any 10 s is used whatever the latencies of the first seconds', () => {
  for (const hint of HINTS) {
    for (let seed = 1; seed <= 40; seed += 1) {
      const draw = createDraw(seed, 0, 0)
      const random = () => draw.below(1000) / 1000
      const [slowMs, usualMs, slowUntil] = [20 + 1500 * random(), 5 + 60 * random(), 12_000 * random()]
      const limited = limitedTo({ kind: 'sliding-window', count: 100, windowMs: 10_000 }, hint)
      const latencyMs = (at: number) => (at < slowUntil ? slowMs : usualMs) * (0.3 + random())
      const api = { ...limited, ask: (at: number) => ({ ...limited.ask(at), latencyMs: latencyMs(at) }) }
      const driven = drive(startPace({}, undefined), { api, untilMs: 90_000, jitter: random })
      expect({ hint, seed, used: rates(driven, 30_000, 90_000).accepted / 10 > 0.6 }).toEqual({
        hint,
        seed,
        used: true,
      })
    }
  }
})

test('a search for a limit that a stop interrupted starts again in the next process', () => {
  for (const hint of HINTS) {
    for (const perSecond of [10, 40]) {
      for (const cutMs of [2500, 4000, 8000]) {
        const rule: LimitRule = { kind: 'token-bucket', rate: perSecond, burst: 5 }
        const cut = drive(startPace({}, undefined), { api: limitedTo(rule, hint), untilMs: cutMs }).state
        const driven = drive(startPace({}, learned(cut)), { api: limitedTo(rule, hint), untilMs: 30_000 })
        expect(rates(driven, 10_000, 30_000).accepted / perSecond).toBeGreaterThan(0.92)
      }
    }
  }
})

test.each([2, 50, 300])(
  'an API without a limit that answers in %i ms gets as many requests in flight as raise its throughput',
  latencyMs => {
    const api = limitedTo({ kind: 'none' }, 'none')
    const { state, requests } = drive(startPace({}, undefined), { api, untilMs: 12_000, latencyMs })
    expect(state.throttled).toBe(0)
    const perSecond = requests.filter(({ at }) => at >= 10_000).length / 2
    expect(perSecond).toBeGreaterThan((0.9 * 1000 * 64) / latencyMs)
  },
)

test('an API that answers no faster with more requests in flight gets few of them', () => {
  // It answers one request at a time, each in 20 ms.
  let freeAt = 0
  const api = {
    ask: (at: number) => {
      freeAt = Math.max(at, freeAt) + 20
      return { accepted: true, latencyMs: freeAt - at }
    },
    answered: () => undefined,
  }
  const { state } = drive(startPace({}, undefined), { api, untilMs: 60_000 })
  expect(state.concurrency.limit).toBeLessThanOrEqual(8)
})
