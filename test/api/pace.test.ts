import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  type Ceilings,
  type LearnedRate,
  type PaceState,
  pace,
  pacing,
  startPace,
  type WaitedFor,
} from '../../src/api/pace.ts'

const DAY_MS = 86_400_000

/** An API on a virtual clock: tells of each request whether it is accepted and, when not, what wait it names. */
type VirtualApi = (at: number) => { accepted: boolean; waitMs?: number }

/** Requests as fast as the pace allows, with as many in flight as it allows, each answered after `latencyMs`. */
function drive(state: PaceState, { api, untilMs, latencyMs = 20, jitter = () => 0.5 }: Drive): Driven {
  const sentAt: number[] = []
  const inFlight: (ReturnType<VirtualApi> & { sent: number; ends: number; waitedFor: WaitedFor })[] = []
  let now = 0
  let freeAt = Number.NEGATIVE_INFINITY
  let allowedAt = 0
  let mostInFlight = 0
  while (now < untilMs) {
    const first = inFlight[0]
    const full = inFlight.length >= state.concurrency
    const nextSend = full ? Number.POSITIVE_INFINITY : Math.max(now, allowedAt, state.pausedUntil)
    if (first !== undefined && first.ends <= nextSend) {
      now = first.ends
      inFlight.shift()
      if (full) freeAt = now
      const event = { at: now, sentAt: first.sent }
      state = first.accepted
        ? pace(state, { kind: 'accepted', ...event, waitedFor: first.waitedFor })
        : pace(state, { kind: 'throttled', ...event, waitMs: first.waitMs, jitter: jitter() })
      continue
    }
    now = nextSend
    const { minTime, batch } = pacing(state)
    const held = freeAt === now ? 'concurrency' : undefined
    const waitedFor = allowedAt === now && allowedAt > freeAt ? 'pace' : held
    const sendable = Math.min(batch, state.concurrency - inFlight.length)
    for (let i = 0; i < sendable; i++) {
      sentAt.push(now)
      inFlight.push({ ...api(now), sent: now, ends: now + latencyMs, waitedFor })
    }
    mostInFlight = Math.max(mostInFlight, inFlight.length)
    allowedAt = now + minTime
  }
  return { state, sentAt, mostInFlight }
}

interface Drive {
  api: VirtualApi
  untilMs: number
  latencyMs?: number
  jitter?: () => number
}

interface Driven {
  state: PaceState
  sentAt: number[]
  mostInFlight: number
}

const unlimited: VirtualApi = () => ({ accepted: true })

/** So many requests in each window of the wall clock, and 429 for the rest. */
function fixedWindow(requests: number, windowMs: number, named: boolean): VirtualApi {
  const used = new Map<number, number>()
  return at => {
    const window = Math.floor(at / windowMs)
    const before = used.get(window) ?? 0
    if (before < requests) {
      used.set(window, before + 1)
      return { accepted: true }
    }
    return { accepted: false, ...(named && { waitMs: (window + 1) * windowMs - at }) }
  }
}

const within = (times: number[], from: number, to: number) => times.filter(at => at >= from && at < to).length

/** The most requests in any second, wherever it begins. */
function mostInSecond(sentAt: number[]): number {
  let most = 0
  let oldest = 0
  for (const [index, at] of sentAt.entries()) {
    while ((sentAt[oldest] ?? at) <= at - 1000) oldest += 1
    most = Math.max(most, index - oldest + 1)
  }
  return most
}

describe('the opening', () => {
  it('starts gently', () => {
    const { sentAt } = drive(startPace({}, undefined), { api: unlimited, untilMs: 300, latencyMs: 5 })
    expect(sentAt.length).toBeLessThan(8)
  })

  it('is at full speed within two seconds when nothing is refused', () => {
    const { state } = drive(startPace({}, undefined), { api: unlimited, untilMs: 2000, latencyMs: 5 })
    expect(pacing(state).minTime).toBe(0)
  })

  it('opens more lanes instead where the answers are slow', () => {
    const { state } = drive(startPace({}, undefined), { api: unlimited, untilMs: 20_000, latencyMs: 500 })
    expect(state.concurrency).toBe(32)
  })

  it('goes on where an earlier process had come', () => {
    const learned: LearnedRate = { ratePerSecond: 40, concurrency: 7, limited: true }
    expect(startPace({}, learned)).toMatchObject(learned)
  })

  it('does not grow on requests that waited for nothing', () => {
    const state = startPace({}, undefined)
    expect(pace(state, { kind: 'accepted', at: 1, sentAt: 0, waitedFor: undefined })).toMatchObject({
      ratePerSecond: state.ratePerSecond,
      concurrency: state.concurrency,
    })
  })
})

describe('a refusal', () => {
  const running = drive(startPace({}, undefined), { api: unlimited, untilMs: 5000, latencyMs: 20 }).state
  const refuse = (state: PaceState, at: number, sentAt: number, waitMs?: number, jitter = 0.5) =>
    pace(state, { kind: 'throttled', at, sentAt, waitMs, jitter })

  it('pauses for as long as the API asks', () => {
    expect(refuse(running, 5000, 4980, DAY_MS)).toMatchObject({
      pausedUntil: 5000 + DAY_MS,
      pauseReason: 'asked',
    })
  })

  it('halves the rate that was really achieved, not the one that was allowed', () => {
    const slow = drive(startPace({}, { ratePerSecond: 1000, concurrency: 1, limited: false }), {
      api: unlimited,
      untilMs: 5000,
      latencyMs: 50,
    }).state
    const { ratePerSecond } = refuse({ ...slow, ratePerSecond: 1000 }, 5000, 4950)
    expect(ratePerSecond).toBeGreaterThan(4)
    expect(ratePerSecond).toBeLessThanOrEqual(0.5 * 640)
  })

  it('counts once for all requests that were under way', () => {
    const once = refuse(running, 5000, 4980)
    const twice = refuse(once, 5001, 4981)
    expect(twice).toMatchObject({
      ratePerSecond: once.ratePerSecond,
      concurrency: once.concurrency,
      throttled: 2,
    })
    expect(twice.pausedUntil).toBe(once.pausedUntil)
  })

  it('prolongs the pause when another answer of it asks for more', () => {
    expect(refuse(refuse(running, 5000, 4980), 5001, 4981, 90_000).pausedUntil).toBe(95_001)
    expect(refuse(refuse(running, 5000, 4980, 90_000), 5001, 4981, 10).pausedUntil).toBe(95_000)
  })

  it('pauses longer each time in a row, up to a minute, and briefly again after a success', () => {
    let state = running
    const pauses: number[] = []
    for (let i = 0; i < 9; i++) {
      const at = Math.max(6000, state.pausedUntil) + 1
      state = refuse(state, at + 1, at, undefined, 1)
      pauses.push(state.pausedUntil - at - 1)
    }
    expect(pauses).toEqual([1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000, 60_000])
    const sent = state.pausedUntil + 1
    state = pace(state, { kind: 'accepted', at: sent + 5, sentAt: sent, waitedFor: 'pace' })
    expect(refuse(state, sent + 20, sent + 10, undefined, 1).pausedUntil).toBe(sent + 1020)
  })

  it('does not speed up by answers to what was sent before it', () => {
    const paused = refuse(running, 5000, 4980)
    const after = pace(paused, { kind: 'accepted', at: 5010, sentAt: 4990, waitedFor: 'pace' })
    expect(after).toMatchObject({
      ratePerSecond: paused.ratePerSecond,
      storms: 1,
      accepted: paused.accepted + 1,
    })
  })
})

describe('against a limit', () => {
  it('of 50 a second most of it is used and few requests are refused', () => {
    const { state, sentAt } = drive(startPace({}, undefined), {
      api: fixedWindow(50, 1000, false),
      untilMs: 120_000,
    })
    expect(within(sentAt, 60_000, 120_000)).toBeGreaterThan(60 * 25)
    expect(state.throttled).toBeLessThan(sentAt.length * 0.05)
  })

  it('of 100 a minute, with the wait named, all of it is used and few requests are refused', () => {
    const { state, sentAt } = drive(startPace({}, undefined), {
      api: fixedWindow(100, 60_000, true),
      untilMs: 1_200_000,
    })
    expect(state.accepted).toBeGreaterThan(1200)
    expect(state.throttled).toBeLessThan(sentAt.length * 0.1)
  })
})

describe('whatever the API does', () => {
  const ceilings: fc.Arbitrary<Ceilings> = fc.record({
    requestsPerSecond: fc.option(fc.double({ min: 0.1, max: 3000, noNaN: true }), { nil: undefined }),
    concurrency: fc.option(fc.integer({ min: 1, max: 64 }), { nil: undefined }),
  })
  const learned = fc.option(
    fc.record({
      ratePerSecond: fc.double({ min: 0.001, max: 1e6, noNaN: true }),
      concurrency: fc.integer({ min: 1, max: 1000 }),
      limited: fc.boolean(),
    }),
    { nil: undefined },
  )

  it('no ceiling of the owner is exceeded in any second', () => {
    fc.assert(
      fc.property(ceilings, learned, fc.integer({ min: 1, max: 200 }), (limits, initial, latencyMs) => {
        const driven = drive(startPace(limits, initial), { api: unlimited, untilMs: 4000, latencyMs })
        expect(driven.mostInFlight).toBeLessThanOrEqual(Math.min(32, limits.concurrency ?? 32))
        if (limits.requestsPerSecond === undefined) return
        expect(mostInSecond(driven.sentAt)).toBeLessThanOrEqual(
          Math.max(1, Math.ceil(limits.requestsPerSecond)),
        )
      }),
      { numRuns: 40 },
    )
  })

  it('it never stops for good, and recovers once the API accepts again', () => {
    const answers = fc.array(
      fc.record({
        accepted: fc.boolean(),
        waitMs: fc.option(fc.integer({ min: 1, max: 120_000 }), { nil: undefined }),
      }),
      { maxLength: 200 },
    )
    fc.assert(
      fc.property(
        ceilings,
        answers,
        fc.double({ min: 0, max: 0.999, noNaN: true }),
        (limits, storm, jitter) => {
          let asked = 0
          const api: VirtualApi = () => {
            const { accepted, waitMs } = storm[asked++] ?? { accepted: true, waitMs: undefined }
            return accepted || waitMs === undefined ? { accepted } : { accepted, waitMs }
          }
          const after = drive(startPace(limits, undefined), {
            api: at => (at < 1_800_000 ? api(at) : { accepted: true }),
            untilMs: 3_000_000,
            latencyMs: 1000,
            jitter: () => jitter,
          })
          expect(Number.isFinite(after.state.pausedUntil) ? after.state.pausedUntil : 0).toBeLessThan(
            4_200_000,
          )
          expect(after.state.ratePerSecond).toBeGreaterThanOrEqual(Math.min(1, limits.requestsPerSecond ?? 1))
          expect(after.state.concurrency).toBeGreaterThanOrEqual(1)
        },
      ),
      { numRuns: 15 },
    )
  })
})
