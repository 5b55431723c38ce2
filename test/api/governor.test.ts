import { getEventListeners } from 'node:events'
import fc from 'fast-check'
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { createGovernor, type Governor, type GovernorOptions } from '../../src/api/governor/governor.ts'
import type { Permit } from '../../src/api/governor/in-flight.ts'
import { systemClock } from '../../src/base/clock.ts'
import { runs } from '../support/effort.ts'
import { virtualClock } from './virtual-clock.ts'

const START = Date.UTC(2025, 5, 1, 23, 59)
const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
/** Without pacing, permits are given at once. A permit that waits then waits for the reason under test. */
const UNPACED = { ratePerSecond: 1000, concurrency: 4, limited: false, crowded: false }
const ACCEPTED = { kind: 'accepted' } as const

const governors: Governor[] = []
afterEach(() => {
  for (const governor of governors.splice(0)) governor.close()
})

function govern(options: Partial<GovernorOptions> = {}) {
  const clock = virtualClock(START)
  const governor = createGovernor({ clock, random: () => 0.5, ceilings: {}, initial: UNPACED, ...options })
  governors.push(governor)
  return { clock, governor }
}

async function granted(asked: Promise<Permit | undefined>): Promise<Permit> {
  const permit = await asked
  if (permit === undefined) throw new Error('No permit was given')
  return permit
}

describe('the permits of the governor', () => {
  it('permits are given up to the in-flight limit, and the next one after one is settled', async () => {
    const { governor } = govern({ ceilings: { concurrency: 2 } })
    const order: string[] = []
    const first = await granted(governor.permit())
    await granted(governor.permit())
    const third = granted(governor.permit()).then(() => order.push('third'))
    await new Promise(setImmediate)
    order.push('settled')
    first.settle(ACCEPTED)
    await third
    expect(order).toEqual(['settled', 'third'])
    expect(governor.state()).toMatchObject({ inFlight: 2, accepted: 1, concurrency: 2 })
  })

  it('permits are given in the order of the requests', async () => {
    const { governor } = govern({ ceilings: { concurrency: 1 } })
    const order: number[] = []
    await Promise.all(
      [1, 2, 3, 4].map(async number => {
        const permit = await granted(governor.permit())
        order.push(number)
        permit.settle(ACCEPTED)
      }),
    )
    expect(order).toEqual([1, 2, 3, 4])
  })

  it('a permit that is settled twice counts once', async () => {
    const { governor } = govern()
    const permit = await granted(governor.permit())
    permit.settle(ACCEPTED)
    permit.settle({ kind: 'throttled' })
    permit.cancel()
    expect(governor.state()).toMatchObject({ accepted: 1, throttled: 0, inFlight: 0, usedToday: 1 })
  })

  it('a cancelled permit counts as unused', async () => {
    const { governor } = govern()
    const permit = await granted(governor.permit())
    permit.cancel()
    expect(governor.state()).toMatchObject({ accepted: 0, inFlight: 0, usedToday: 0 })
  })

  it('an aborted request gets no permit and delays no other', async () => {
    const { governor } = govern({ ceilings: { concurrency: 1 } })
    const first = await granted(governor.permit())
    const controller = new AbortController()
    const quitters = Array.from({ length: 20 }, () => governor.permit(controller.signal))
    const patient = governor.permit()
    controller.abort()
    expect(await Promise.all(quitters)).toEqual(Array(20).fill(undefined))
    expect(await governor.permit(controller.signal)).toBeUndefined()
    first.settle(ACCEPTED)
    await granted(patient)
    expect(governor.state()).toMatchObject({ inFlight: 1 })
  })

  it('every request is refused after the close', async () => {
    const { governor } = govern({ ceilings: { concurrency: 1 } })
    await granted(governor.permit())
    const waiting = governor.permit()
    governor.close()
    expect(await waiting).toBeUndefined()
    expect(await governor.permit()).toBeUndefined()
  })
})

describe('a 429 and its pause', () => {
  it('a 429 also delays earlier requests, for the whole wait that the API asked for', async () => {
    const { governor, clock } = govern({ ceilings: { concurrency: 1 } })
    const first = await granted(governor.permit())
    const next = granted(governor.permit()).then(() => clock.elapsed())
    first.settle({ kind: 'throttled', waitMs: 10 * MINUTE })
    expect(governor.state()).toMatchObject({
      pausedUntil: START + 10 * MINUTE,
      pauseReason: 'asked',
      throttled: 1,
    })
    await clock.advance(10 * MINUTE - 1)
    await clock.advance(1)
    expect(await next).toBeGreaterThanOrEqual(10 * MINUTE)
    expect(governor.state()).not.toHaveProperty('pausedUntil')
  })

  it('a later 429 that asks for more extends the pause', async () => {
    const { governor, clock } = govern()
    const first = await granted(governor.permit())
    const second = await granted(governor.permit())
    first.settle({ kind: 'throttled', waitMs: MINUTE })
    const next = granted(governor.permit()).then(() => clock.elapsed())
    second.settle({ kind: 'throttled', waitMs: 5 * MINUTE })
    for (let minute = 0; minute < 5; minute++) await clock.advance(MINUTE)
    expect(await next).toBeGreaterThanOrEqual(5 * MINUTE)
  })

  it('a permit that is returned during a requested wait does not end the wait', async () => {
    vi.useFakeTimers()
    onTestFinished(() => void vi.useRealTimers())
    const { governor } = govern({ clock: systemClock() })
    const refused = await granted(governor.permit())
    const unused = await granted(governor.permit())
    await vi.advanceTimersByTimeAsync(1)
    refused.settle({ kind: 'throttled', waitMs: MINUTE })
    unused.cancel()
    const next = governor.permit()
    await vi.advanceTimersByTimeAsync(MINUTE - 100)
    expect(governor.state()).toMatchObject({ inFlight: 0, pauseReason: 'asked' })
    await vi.advanceTimersByTimeAsync(1000)
    await granted(next)
  })

  it('a 429 without a wait causes a pause of parley’s own length', async () => {
    const { governor } = govern()
    const permit = await granted(governor.permit())
    permit.settle({ kind: 'throttled' })
    expect(governor.state()).toMatchObject({ pausedUntil: START + 750, pauseReason: 'throttled' })
  })

  it('the next process starts slower after a 429', async () => {
    const { governor, clock } = govern({ initial: { ratePerSecond: 40, concurrency: 4, limited: true } })
    const refused = await granted(governor.permit())
    refused.settle({ kind: 'throttled' })
    const next = governor.permit()
    await clock.advance(1000)
    const accepted = await granted(next)
    await clock.advance(5)
    accepted.settle(ACCEPTED)
    const { ratePerSecond, limited } = governor.learned()
    expect(ratePerSecond).toBeLessThan(40)
    expect(limited).toBe(true)
  })

  it('no request is lost, whatever the API refuses and whatever wait it asks for', async () => {
    vi.useFakeTimers()
    onTestFinished(() => void vi.useRealTimers())
    const refusal = fc.record({ waitMs: fc.option(fc.integer({ min: 1, max: 100_000 }), { nil: undefined }) })
    const answers = fc.array(fc.option(refusal, { nil: undefined }), { maxLength: 100 })
    await fc.assert(
      fc.asyncProperty(answers, fc.integer({ min: 1, max: 16 }), async (storm, concurrency) => {
        const { governor } = govern({ clock: systemClock(), ceilings: { concurrency } })
        const answered: number[] = []
        const request = async (number: number) => {
          for (;;) {
            const permit = await granted(governor.permit())
            const refused = storm.shift()
            if (!refused) {
              permit.settle(ACCEPTED)
              answered.push(number)
              return
            }
            permit.settle({ kind: 'throttled', ...refused })
          }
        }
        const numbers = Array.from({ length: 30 }, (_, number) => number)
        const all = Promise.all(numbers.map(request))
        await vi.advanceTimersByTimeAsync(4 * 60 * MINUTE)
        await all
        governor.close()
        expect(answered.sort((one, other) => one - other)).toEqual(numbers)
      }),
      { numRuns: runs(20) },
    )
  })

  it('timeouts and server errors do not change the rate', async () => {
    const { governor } = govern()
    const permit = await granted(governor.permit())
    permit.settle({ kind: 'other' })
    expect(governor.state()).toMatchObject({ accepted: 0, throttled: 0 })
    expect(governor.learned()).toEqual(UNPACED)
  })
})

describe('the spacing of requests', () => {
  it('requests keep their distance after a late timer too', async () => {
    vi.useFakeTimers()
    const onTime = setTimeout
    let timers = 0
    // As on a busy machine, every seventh timer fires 20 ms late. A spy would restore the fake timer afterwards.
    const late = (then: () => void, ms = 0) => onTime(then, (timers++ % 7 === 0 ? 20 : 0) + ms)
    globalThis.setTimeout = Object.assign(late, { __promisify__: onTime.__promisify__ })
    onTestFinished(() => {
      globalThis.setTimeout = onTime
      vi.useRealTimers()
    })
    const clock = systemClock()
    const { governor } = govern({ clock, initial: { ratePerSecond: 10, concurrency: 4, limited: true } })
    const times: number[] = []
    const asker = (async () => {
      for (;;) {
        const permit = await governor.permit()
        if (permit === undefined) return
        times.push(clock.elapsed())
        permit.settle({ kind: 'other' })
      }
    })()
    await vi.advanceTimersByTimeAsync(10_000)
    governor.close()
    await asker
    const gaps = times.slice(1).map((at, index) => at - (times[index] ?? at))
    expect(times.length).toBeGreaterThanOrEqual(99)
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(95)
  })
})

describe('the configured limits', () => {
  it('a daily ceiling holds until the next UTC day, across restarts', async () => {
    const { governor, clock } = govern({ ceilings: { requestsPerDay: 3 }, usedToday: 2 })
    const last = await granted(governor.permit())
    last.settle(ACCEPTED)
    const next = granted(governor.permit()).then(() => clock.elapsed())
    expect(governor.state()).toMatchObject({
      usedToday: 3,
      pausedUntil: START + MINUTE,
      pauseReason: 'requests-per-day',
    })
    await clock.advance(MINUTE - 1)
    await clock.advance(1)
    expect(await next).toBe(MINUTE)
    expect(governor.state()).toMatchObject({ usedToday: 1 })
  })

  it.each([
    ['that was suspended until the next UTC day asks', 23 * HOUR, 2 * MINUTE],
    ['whose clock was ahead for a moment asks after a day at most', -30 * DAY, DAY + MINUTE],
  ])('at a daily ceiling, a machine %s again', async (_, setMs, afterMs) => {
    const clock = virtualClock(START - 20 * HOUR)
    const { governor } = govern({ clock, ceilings: { requestsPerDay: 1 } })
    const last = await granted(governor.permit())
    last.settle(ACCEPTED)
    let isGranted = false
    const next = granted(governor.permit()).then(() => {
      isGranted = true
    })
    clock.set(setMs)
    await clock.advance(afterMs)
    expect(isGranted).toBe(true)
    await next
  })

  it('a clock that is set back allows no more requests under a daily ceiling', async () => {
    const clock = virtualClock(START)
    const { governor } = govern({ clock, ceilings: { requestsPerDay: 1 } })
    const last = await granted(governor.permit())
    last.settle(ACCEPTED)
    clock.set(-2 * DAY)
    expect(governor.state()).toMatchObject({ usedToday: 1, pauseReason: 'requests-per-day' })
    await clock.advance(DAY - 1)
    expect(governor.state()).toMatchObject({ usedToday: 1, pauseReason: 'requests-per-day' })
  })

  it('requests under a daily ceiling are stored before they are sent, a hundredth of the ceiling at a time', async () => {
    const kept: [string, number][] = []
    const reserve = async (day: string, requests: number) => void kept.push([day, requests])
    const { governor } = govern({ ceilings: { requestsPerDay: 500 }, usedToday: 496, reserve })
    for (let request = 1; request <= 4; request += 1) {
      ;(await granted(governor.permit())).settle(ACCEPTED)
      expect(kept.at(-1)?.[1]).toBeGreaterThanOrEqual(496 + request)
    }
    expect(kept).toEqual([['2025-06-01', 500]])
    expect(governor.state()).toMatchObject({ usedToday: 500, pauseReason: 'requests-per-day' })
  })

  it('no request is sent when its count under a daily ceiling cannot be stored', async () => {
    const reserve = () => Promise.reject(new Error('The disk is full'))
    const { governor } = govern({ ceilings: { requestsPerDay: 500 }, reserve })
    const { signal } = new AbortController()
    await expect(governor.permit(signal)).rejects.toThrow('The disk is full')
    expect(getEventListeners(signal, 'abort')).toEqual([])
    expect(governor.state()).toMatchObject({ usedToday: 0, inFlight: 0 })
  })

  it('a daily ceiling is never exceeded by any number of processes, killed or not', async () => {
    const processes = fc.array(fc.record({ requests: fc.nat(40), isKilled: fc.boolean() }), { maxLength: 12 })
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 400 }), processes, async (requestsPerDay, lives) => {
        let kept = 0
        let sent = 0
        for (const { requests, isKilled } of lives) {
          const reserve = async (_: string, wanted: number) => {
            kept = wanted
          }
          const { governor } = govern({ ceilings: { requestsPerDay }, usedToday: kept, reserve })
          for (
            let request = 0;
            request < requests && governor.state().pauseReason === undefined;
            request += 1
          ) {
            ;(await granted(governor.permit())).settle(ACCEPTED)
            sent += 1
          }
          if (!isKilled) kept = governor.state().usedToday
          governor.close()
        }
        expect(sent).toBeLessThanOrEqual(requestsPerDay)
      }),
      { numRuns: runs(40) },
    )
  })

  it('a cancelled request does not count towards the daily ceiling', async () => {
    const { governor } = govern({ ceilings: { requestsPerDay: 1 } })
    const unused = await granted(governor.permit())
    const next = governor.permit()
    unused.cancel()
    await granted(next)
    expect(governor.state()).toMatchObject({ usedToday: 1 })
  })

  it('a ceiling per second separates requests and is nearly reached, however many wait', async () => {
    vi.useFakeTimers()
    onTestFinished(() => void vi.useRealTimers())
    const clock = systemClock()
    const { governor } = govern({ clock, ceilings: { requestsPerSecond: 50 }, initial: UNPACED })
    const times: number[] = []
    const ask = async () => {
      for (;;) {
        const permit = await governor.permit()
        if (permit === undefined) return
        times.push(clock.elapsed())
        permit.settle(ACCEPTED)
      }
    }
    const askers = Promise.all(Array.from({ length: 8 }, ask))
    await vi.advanceTimersByTimeAsync(10_000)
    governor.close()
    await askers
    const gaps = times.slice(1).map((at, index) => at - (times[index] ?? at))
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(20)
    expect(times.length).toBeGreaterThan(450)
  })

  it('permits that were returned before there was a rate do not exceed the rate later', async () => {
    vi.useFakeTimers()
    onTestFinished(() => void vi.useRealTimers())
    const clock = systemClock()
    const { governor } = govern({ clock, initial: { ...UNPACED, limited: true } })
    for (let unused = 0; unused < 1000; unused += 1) (await granted(governor.permit())).cancel()
    const refused = await granted(governor.permit())
    refused.settle({ kind: 'throttled' })
    let sent = 0
    const asked = (async () => {
      for (;;) {
        const permit = await governor.permit()
        if (permit === undefined) return
        sent += 1
        permit.settle({ kind: 'other' })
      }
    })()
    await vi.advanceTimersByTimeAsync(2000)
    governor.close()
    await asked
    expect(sent).toBeGreaterThan(0)
    expect(sent).toBeLessThan(2 * UNPACED.ratePerSecond)
  })

  it.each([
    ['forward', 3_600_000],
    ['back', -3_600_000],
  ])('a ceiling per second holds, without extra waits, when the wall clock is set %s', async (_, jump) => {
    vi.useFakeTimers()
    onTestFinished(() => void vi.useRealTimers())
    const clock = systemClock()
    const { governor } = govern({ clock, ceilings: { requestsPerSecond: 1 }, initial: UNPACED })
    const times: number[] = []
    const asked = Array.from({ length: 5 }, async () => {
      const permit = await granted(governor.permit())
      times.push(clock.elapsed())
      permit.settle(ACCEPTED)
    })
    await vi.advanceTimersByTimeAsync(1200)
    vi.setSystemTime(Date.now() + jump)
    await vi.advanceTimersByTimeAsync(10_000)
    await Promise.all(asked)
    const gaps = times.slice(1).map((at, index) => at - (times[index] ?? at))
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(1000)
  })
})
