import fc from 'fast-check'
import { describe, expect, it, test } from 'vitest'
import {
  type Ceilings,
  type LearnedRate,
  learned,
  maxInFlight,
  type PaceState,
  paceAfter,
  pacing,
  startPace,
} from '../../src/api/governor/pace.ts'
import { runs } from '../support/effort.ts'
import { drive, unlimited, type VirtualApi } from './simulated-pace.ts'

const DAY_MS = 86_400_000
const HOUR_MS = 3_600_000
const QUARTER_MS = 900_000
const MOST = 64

/** The most requests in any second, wherever it begins. */
function mostInSecond(times: readonly number[]): number {
  let most = 0
  let oldest = 0
  for (const [index, at] of times.entries()) {
    while ((times[oldest] ?? at) <= at - 1000) oldest += 1
    most = Math.max(most, index - oldest + 1)
  }
  return most
}

describe('the start of a process', () => {
  it('the rate starts low', () => {
    const { requests } = drive(startPace({}, undefined), { api: unlimited, untilMs: 300, latencyMs: 5 })
    expect(requests.length).toBeLessThan(8)
  })

  it('full speed is reached within three seconds when nothing is refused', () => {
    const { state } = drive(startPace({}, undefined), { api: unlimited, untilMs: 3000, latencyMs: 5 })
    expect(pacing(state).minTime).toBe(0)
  })

  it('slow answers have more requests in flight', () => {
    const { state } = drive(startPace({}, undefined), { api: unlimited, untilMs: 20_000, latencyMs: 500 })
    expect(state.concurrency.limit).toBe(MOST)
  })

  it('the rate starts at the rate of the earlier process', () => {
    const before: LearnedRate = { ratePerSecond: 40, concurrency: 7, limited: true, crowded: false }
    expect(learned(startPace({}, before))).toEqual(before)
  })

  it('requests that did not wait for a permit do not raise the rate', () => {
    const state = startPace({}, undefined)
    const after = paceAfter(state, {
      kind: 'accepted',
      at: 1,
      sentAt: 0,
      waitedFor: undefined,
      othersInFlight: 0,
      isElsewhere: false,
    })
    expect(learned(after)).toEqual(learned(state))
  })
})

describe('the pause after a refusal', () => {
  const running = drive(startPace({}, { ratePerSecond: 50, concurrency: 4, limited: true }), {
    api: unlimited,
    untilMs: 5000,
    latencyMs: 20,
  }).state
  const refuse = (
    state: PaceState,
    at: number,
    sentAt: number,
    waitMs?: number,
    { jitter = 0.5, others = 0, mayBeOfRoute = false } = {},
  ) =>
    paceAfter(state, {
      kind: 'throttled',
      at,
      sentAt,
      othersInFlight: { atSend: others, now: others },
      waitMs,
      mayBeOfRoute,
      jitter,
    })
  const accept = (state: PaceState, at: number, sentAt: number, isElsewhere = false) =>
    paceAfter(state, { kind: 'accepted', at, sentAt, waitedFor: 'pace', othersInFlight: 0, isElsewhere })

  it('a refusal pauses for as long as the API asks', () => {
    expect(refuse(running, 5000, 4980, 60_000)).toMatchObject({ pausedUntil: 65_000, pauseReason: 'asked' })
  })

  it('one request every 15 minutes tests whether a long wait is over', () => {
    const refused: VirtualApi = {
      ask: () => ({ accepted: false, waitMs: DAY_MS }),
      answered: () => undefined,
    }
    const { requests } = drive(running, { api: refused, untilMs: 4 * HOUR_MS, latencyMs: 20 })
    const trials = requests.map(({ at }) => at).filter(at => at > 6000)
    expect(trials.length).toBe(15)
    for (const [index, at] of trials.entries()) {
      expect(at - (trials[index - 1] ?? at - QUARTER_MS)).toBeGreaterThanOrEqual(QUARTER_MS)
    }
  })

  it('a long wait ends as soon as a trial is accepted', () => {
    const over = 5000 + HOUR_MS
    const api: VirtualApi = {
      ask: at => (at < over ? { accepted: false, waitMs: DAY_MS } : { accepted: true }),
      answered: () => undefined,
    }
    const { requests, state } = drive(running, { api, untilMs: over + QUARTER_MS + 60_000, latencyMs: 20 })
    expect(requests.filter(({ accepted }) => accepted).length).toBeGreaterThan(1000)
    expect(state).toMatchObject({ refusals: 0 })
  })

  it('a refusal without a wait does not shorten an earlier requested one', () => {
    const asked = refuse(running, 5000, 4980, HOUR_MS)
    const trialAt = asked.pausedUntil + 1
    const trial = paceAfter(asked, { kind: 'granted', at: trialAt })
    expect(refuse(trial, trialAt + 20, trialAt)).toMatchObject({
      pausedUntil: trialAt + 20 + QUARTER_MS,
      askedUntil: 5000 + HOUR_MS,
    })
  })

  describe('when the limit may be that of one route', () => {
    const refused = refuse(running, 5000, 4980, HOUR_MS, { mayBeOfRoute: true })

    it('a request is sent after five seconds, and no other one before it has ended', () => {
      expect(refused).toMatchObject({ pausedUntil: 10_000, askedUntil: 5000 + HOUR_MS })
      const trying = paceAfter(refused, { kind: 'granted', at: 10_000 })
      expect(trying.pausedUntil).toBe(10_000 + QUARTER_MS)
    })

    it('an accepted request ends the pause, and the rate is the one of before', () => {
      const after = accept(refused, 10_030, 10_000, true)
      expect(after).toMatchObject({ refusals: 0, pausedUntil: 10_030, askedUntil: 10_030 })
      expect(learned(after)).toEqual(learned(running))
      expect(learned(refused).ratePerSecond).toBeLessThan(learned(running).ratePerSecond)
    })

    it('an accepted request of the refused route ends the pause, and the rate stays lower', () => {
      const after = accept(refused, 10_030, 10_000)
      expect(after).toMatchObject({ refusals: 0, ofRoute: undefined })
      expect(learned(after).ratePerSecond).toBeLessThan(learned(running).ratePerSecond)
    })

    it('a refused one lowers the rate as a single refusal does, and the wait lasts', () => {
      const both = refuse(refused, 10_030, 10_000, HOUR_MS)
      const one = refuse(running, 10_030, 10_000, HOUR_MS)
      expect(learned(both)).toEqual(learned(one))
      expect(both).toMatchObject({ pausedUntil: 10_030 + QUARTER_MS, ofRoute: undefined })
    })

    it('the rate is the one of before the first refusal also when the route was refused again meanwhile', () => {
      const again = refuse(refused, 10_030, 10_000, HOUR_MS, { mayBeOfRoute: true })
      expect(learned(accept(again, 20_030, 20_000, true))).toEqual(learned(running))
    })

    it('a failed one is followed by another five seconds later', () => {
      const trying = paceAfter(refused, { kind: 'granted', at: 10_000 })
      expect(paceAfter(trying, { kind: 'failed', at: 10_030, sentAt: 10_000 }).pausedUntil).toBe(15_030)
    })

    it('a short pause passes as usual', () => {
      const short = refuse(running, 5000, 4980, 4000, { mayBeOfRoute: true })
      expect(short).toMatchObject({ pausedUntil: 9000, ofRoute: undefined })
    })
  })

  it('a single request tests whether others may follow', () => {
    const refused = refuse(running, 5000, 4980, 1000)
    expect(maxInFlight(refused)).toBe(1)
    expect(maxInFlight(accept(refused, 6020, 6001))).toBe(maxInFlight(running))
  })

  it('after an early refusal the rate follows the achieved one, not the allowed one', () => {
    const slow = drive(
      startPace({ concurrency: 1 }, { ratePerSecond: 1000, concurrency: 1, limited: false }),
      {
        api: unlimited,
        untilMs: 5000,
        latencyMs: 50,
      },
    ).state
    const after = accept(refuse(slow, 5000, 4950), 6100, 6050)
    expect(learned(after).ratePerSecond).toBeLessThan(25)
    expect(learned(after).ratePerSecond).toBeGreaterThan(15)
  })

  it('a refusal counts once for all requests in flight', () => {
    const once = refuse(running, 5000, 4980)
    const twice = refuse(once, 5001, 4981)
    expect(learned(twice)).toEqual(learned(once))
    expect(twice).toMatchObject({ throttled: 2, pausedUntil: once.pausedUntil })
  })

  it('a refusal in a pause that asks for more extends it', () => {
    expect(refuse(refuse(running, 5000, 4980), 5001, 4981, 90_000).pausedUntil).toBe(95_001)
    expect(refuse(refuse(running, 5000, 4980, 90_000), 5001, 4981, 10).pausedUntil).toBe(95_000)
  })

  it('pauses grow up to a minute while nothing is accepted, and are short again after a success', () => {
    let state = running
    const pauses: number[] = []
    for (let refusal = 0; refusal < 60; refusal += 1) {
      const at = Math.max(6000, state.pausedUntil) + 1
      state = refuse(state, at + 1, at, undefined, { jitter: 1 })
      pauses.push(Math.round(state.pausedUntil - at - 1))
    }
    expect(pauses.slice(0, 4)).toEqual([1000, 2000, 4000, 4000])
    expect(pauses.slice(4).every((pause, index) => pause >= (pauses[index + 3] ?? 0))).toBe(true)
    expect(pauses.at(-1)).toBe(60_000)
    const sent = state.pausedUntil + 1
    state = accept(state, sent + 5, sent)
    expect(refuse(state, sent + 20, sent + 10, undefined, { jitter: 1 }).pausedUntil).toBe(sent + 1020)
  })

  it('answers to earlier requests do not end a pause', () => {
    const paused = refuse(running, 5000, 4980)
    const after = accept(paused, 5010, 4990)
    expect(learned(after)).toEqual(learned(paused))
    expect(after).toMatchObject({ refusals: 1, accepted: paused.accepted + 1 })
  })

  it('a refusal of the fifth in flight lowers the in-flight limit to four without a pause', () => {
    const state = startPace({}, { ratePerSecond: 1000, concurrency: 8, limited: false })
    const refused = refuse(state, 100, 50, undefined, { others: 4 })
    expect(refused.concurrency.limit).toBe(4)
    expect(refused.pausedUntil).toBeLessThan(100)
    expect(learned(refused)).toMatchObject({ ratePerSecond: 1000, limited: false })
  })

  it('a refusal with no more in flight than an accepted request had lowers the rate, not the in-flight limit', () => {
    const state = startPace({}, { ratePerSecond: 1000, concurrency: 8, limited: false })
    const accepted = paceAfter(state, {
      kind: 'accepted',
      at: 50,
      sentAt: 10,
      waitedFor: 'pace',
      othersInFlight: 4,
      isElsewhere: false,
    })
    const refused = refuse(accepted, 100, 60, undefined, { others: 4 })
    expect(refused.concurrency.limit).toBe(8)
    expect(refused.rate.limited).toBe(true)
    expect(refuse(accepted, 100, 60, undefined, { others: 5 }).concurrency.limit).toBe(5)
    // The API may have lowered its limit since.
    expect(refuse(accepted, 61_000, 60_900, undefined, { others: 4 }).concurrency.limit).toBe(4)
  })

  it('a second refusal with fewer in flight lowers the rate and restores the in-flight limit', () => {
    const state = startPace({}, { ratePerSecond: 1000, concurrency: 8, limited: false })
    const again = refuse(refuse(state, 100, 50, undefined, { others: 4 }), 200, 150, undefined, { others: 2 })
    expect(again.concurrency.limit).toBe(8)
    expect(again.pausedUntil).toBeGreaterThan(200)
    expect(again.rate.limited).toBe(true)
  })
})

describe('a search for the limit that gets no further refusal', () => {
  it('ends although few requests are due, and keeps the rate that it tried', () => {
    const opened = drive(startPace({}, undefined), { api: unlimited, untilMs: 2000, latencyMs: 5 }).state
    const alone = { atSend: 0, now: 0 }
    const refusal = {
      at: 2100,
      sentAt: 2095,
      othersInFlight: alone,
      waitMs: undefined,
      mayBeOfRoute: false,
      jitter: 0.5,
    }
    let state = paceAfter(opened, { kind: 'throttled', ...refusal })
    let tried = 0
    for (let at = 4000; state.rate.search && at < 400_000; at += 250) {
      state = paceAfter(state, {
        kind: 'accepted',
        at,
        sentAt: at - 5,
        waitedFor: undefined,
        othersInFlight: 0,
        isElsewhere: false,
      })
      if (state.rate.search) tried = state.rate.rate
    }
    expect(state.rate.search).toBeUndefined()
    expect(learned(state).limited).toBe(true)
    expect(learned(state).ratePerSecond).toBeGreaterThan(0.97 * tried)
  })
})

test('a search that is not refused ends, so that a rate that is too low rises again', () => {
  // Two of the first requests are refused, and no other one ever.
  let asked = 0
  const api: VirtualApi = {
    ask: () => {
      asked += 1
      return { accepted: asked !== 60 && asked !== 62 }
    },
    answered: () => undefined,
  }
  const { requests } = drive(startPace({}, undefined), { api, untilMs: 210_000, latencyMs: 100 })
  expect(requests.filter(({ at }) => at >= 180_000).length / 30).toBeGreaterThan(50)
})

describe('the rate under any behaviour of the API', () => {
  const ceilings: fc.Arbitrary<Ceilings> = fc.record({
    requestsPerSecond: fc.option(fc.double({ min: 0.1, max: 3000, noNaN: true }), { nil: undefined }),
    concurrency: fc.option(fc.integer({ min: 1, max: 64 }), { nil: undefined }),
  })
  const anyLearned = fc.option(
    fc.record({
      ratePerSecond: fc.double({ min: 0.001, max: 1e6, noNaN: true }),
      concurrency: fc.integer({ min: 1, max: 1000 }),
      limited: fc.boolean(),
    }),
    { nil: undefined },
  )
  const storm = fc.array(
    fc.record({
      accepted: fc.boolean(),
      waitMs: fc.option(fc.integer({ min: 1, max: 120_000 }), { nil: undefined }),
    }),
    { maxLength: 200 },
  )
  const jitter = fc.double({ min: 0, max: 0.999, noNaN: true })

  /** Gives the answers one after the other, again and again. After half an hour it accepts everything. */
  function stormy(answers: readonly { accepted: boolean; waitMs: number | undefined }[]): VirtualApi {
    let asked = 0
    return {
      ask(at) {
        const { accepted, waitMs } = (at < 1_800_000 && answers[asked++ % (answers.length + 1)]) || {
          accepted: true,
          waitMs: undefined,
        }
        return accepted || waitMs === undefined ? { accepted } : { accepted, waitMs }
      },
      answered: () => undefined,
    }
  }

  it('no configured limit is exceeded in any second', () => {
    fc.assert(
      fc.property(
        ceilings,
        anyLearned,
        storm,
        fc.integer({ min: 1, max: 200 }),
        (limits, initial, answers, latencyMs) => {
          const api = stormy(answers)
          const driven = drive(startPace(limits, initial), { api, untilMs: 4000, latencyMs })
          expect(driven.mostInFlight).toBeLessThanOrEqual(Math.min(MOST, limits.concurrency ?? MOST))
          if (limits.requestsPerSecond === undefined) return
          const most = Math.max(1, Math.ceil(limits.requestsPerSecond))
          expect(mostInSecond(driven.requests.map(({ at }) => at))).toBeLessThanOrEqual(most)
        },
      ),
      { numRuns: runs(60) },
    )
  })

  it('the rate never stays at zero, and recovers once the API accepts again', () => {
    fc.assert(
      fc.property(ceilings, storm, jitter, (limits, answers, drawn) => {
        const api = stormy(answers)
        const options = { api, untilMs: 3_000_000, latencyMs: 1000, jitter: () => drawn }
        const { state } = drive(startPace(limits, undefined), options)
        expect(Number.isFinite(state.pausedUntil) ? state.pausedUntil : 0).toBeLessThan(2_000_000)
        expect(state.refusals).toBe(0)
        expect(learned(state).ratePerSecond).toBeGreaterThanOrEqual(
          Math.min(1, limits.requestsPerSecond ?? 1),
        )
        expect(state.concurrency.limit).toBeGreaterThanOrEqual(1)
      }),
      { numRuns: runs(15) },
    )
  })
})
