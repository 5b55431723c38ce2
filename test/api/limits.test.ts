import { expect, test } from 'vitest'
import { learned, startPace } from '../../src/api/governor/pace.ts'
import { createDraw } from '../../src/simulator/base/random.ts'
import type { LimitRule } from '../../src/simulator/faults/limits.ts'
import { type Driven, drive, type Hint, limitedTo } from './simulated-pace.ts'

const HINTS: readonly Hint[] = ['seconds', 'date', 'none']

/** Accepted requests per second in a span. */
function acceptedRate({ requests }: Driven, from: number, to: number): number {
  const accepted = requests.filter(({ at, accepted: isIn }) => isIn && at >= from && at < to)
  return (1000 * accepted.length) / (to - from)
}

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
      expect({ hint, seed, used: acceptedRate(driven, 30_000, 90_000) / 10 > 0.6 }).toEqual({
        hint,
        seed,
        used: true,
      })
    }
  }
})

test.each([
  [1000, [1, 2, 3, 4, 5, 6], 150_000],
  [200, [6, 14, 19], 210_000],
  [30, [19], 210_000],
])(
  'an API that refused half of the requests for some seconds, whatever the rate, is soon read as before: answers of %i ms',
  (latencyMs, seeds, from) => {
    for (const seed of seeds) {
      const draw = createDraw(seed, 0, 0)
      const isInTrouble = (at: number) => at >= 60_000 && at < 75_000
      const api = {
        ask: (at: number) => ({ accepted: !isInTrouble(at) || draw.below(2) === 0 }),
        answered: () => undefined,
      }
      const jitter = () => draw.below(1000) / 1000
      const driven = drive(startPace({}, undefined), { api, untilMs: from + 30_000, latencyMs, jitter })
      const before = acceptedRate(driven, 30_000, 60_000)
      expect(acceptedRate(driven, from, from + 30_000)).toBeGreaterThan(0.9 * before)
    }
  },
)

test('a search for a limit that a stop interrupted starts again in the next process', () => {
  for (const hint of HINTS) {
    for (const perSecond of [10, 40]) {
      for (const cutMs of [2500, 4000, 8000]) {
        const rule: LimitRule = { kind: 'token-bucket', rate: perSecond, burst: 5 }
        const cut = drive(startPace({}, undefined), { api: limitedTo(rule, hint), untilMs: cutMs }).state
        const driven = drive(startPace({}, learned(cut)), { api: limitedTo(rule, hint), untilMs: 30_000 })
        expect(acceptedRate(driven, 10_000, 30_000) / perSecond).toBeGreaterThan(0.92)
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
