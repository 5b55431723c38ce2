import { setMaxListeners } from 'node:events'
import { type Clock, MINUTE_MS } from '../../base/clock.ts'
import { createDayCount, type DayCount, type DayCountOptions } from './day-count.ts'
import { createInFlight, type InFlight, type Permit } from './in-flight.ts'
import {
  type Ceilings,
  inFlightLimit,
  type LearnedRate,
  learned,
  type PauseReason,
  pacing,
  startPace,
  type WaitedFor,
} from './pace.ts'
import { createTurns } from './turns.ts'

/**
 * Grants permits to send requests, no faster than the API and the settings allow. The caller chooses a request only
 * after it has got a permit, so that the request is the most urgent at that moment.
 */

export interface GovernorOptions {
  clock: Clock
  /** Returns a number from 0 to below 1, for jitter. */
  random: () => number
  ceilings: Ceilings
  /** What an earlier process learned. */
  initial?: LearnedRate | undefined
  /** See `DayCountOptions.usedBefore`. */
  usedToday?: number
  reserve?: DayCountOptions['reserve']
}

export interface GovernorState {
  ratePerSecond: number
  concurrency: number
  inFlight: number
  /** End of the current pause, in ms since the epoch by this machine's clock. Undefined if requests are not paused. */
  pausedUntil?: number
  /**
   * - `asked`: the API asked for the pause;
   * - `throttled`: a 429 without a wait;
   * - `requests-per-day`: the configured ceiling per day is reached.
   */
  pauseReason?: PauseReason | 'requests-per-day'
  throttled: number
  accepted: number
  usedToday: number
  /** The requests that count as used if this process is killed now. */
  reservedToday: number
}

export interface Governor {
  /**
   * Resolves with a permit when one request may be sent. Resolves with undefined when the signal is aborted before
   * that, or after `close`. Rejects when `reserve` fails.
   */
  permit(signal?: AbortSignal): Promise<Permit | undefined>
  state(): GovernorState
  learned(): LearnedRate
  /** Calls the listener after each grant and each end of a request. The returned function removes it. */
  onChange(listener: () => void): () => void
  /** Resolves all waiting permits with undefined and stops all timers. */
  close(): void
}

/** While a machine is suspended, timers stand still, and its clock may be set. */
const LONGEST_SLEEP_MS = MINUTE_MS

interface Waiter {
  waitedFor: WaitedFor
  answer(permit: Permit | undefined): void
  fail(error: unknown): void
}

export function createGovernor({
  clock,
  random,
  ceilings,
  initial,
  usedToday = 0,
  reserve,
}: GovernorOptions): Governor {
  let isWaking = false
  const turns = createTurns(clock)
  const day = createDayCount({ clock, limit: ceilings.requestsPerDay, usedBefore: usedToday, reserve })
  const start = startPace(ceilings, initial)
  const listeners = new Set<() => void>()
  const notifyListeners = () => {
    for (const listener of listeners) listener()
  }
  const onEnd = () => {
    notifyListeners()
    pump()
  }
  const inFlight = createInFlight({ clock, random, start, turns, day, onEnd })
  const waiting = new Set<Waiter>()
  const closing = new AbortController()

  /** Grants all permits that are allowed now, and arranges to be called again for the rest. */
  const pump = () => {
    for (const waiter of waiting) {
      if (inFlight.isFull()) {
        waiter.waitedFor = 'concurrency'
        return
      }
      const holdMs = Math.max(inFlight.pace().pausedUntil - clock.elapsed(), day.holdMs())
      if (holdMs > 0) {
        // Drops what an earlier turn still allows. Otherwise two requests would go at once when the pause ends.
        turns.drop()
        return wakeAfter(holdMs)
      }
      if (!day.isReserved()) return reserveMore()
      const rhythm = pacing(inFlight.pace())
      const isPaced = rhythm.minTime > 0
      if (isPaced && !turns.take()) {
        if (turns.ask(rhythm, pump)) waiter.waitedFor = 'pace'
        return
      }
      waiting.delete(waiter)
      waiter.answer(inFlight.grant(waiter.waitedFor, isPaced))
      notifyListeners()
    }
  }

  const reserveMore = () => {
    day.reserveMore().then(pump, error => {
      for (const waiter of waiting) waiter.fail(error)
      waiting.clear()
    })
  }

  const wakeAfter = (ms: number) => {
    if (isWaking) return
    isWaking = true
    void clock.sleep(Math.min(ms, LONGEST_SLEEP_MS), closing.signal).then(() => {
      isWaking = false
      if (!closing.signal.aborted) pump()
    })
  }

  return {
    permit: signal =>
      new Promise((resolve, reject) => {
        if (signal?.aborted || closing.signal.aborted) return resolve(undefined)
        const waiter: Waiter = { waitedFor: undefined, answer: resolve, fail: reject }
        if (signal !== undefined) dropOnAbort(waiter, waiting, signal)
        waiting.add(waiter)
        pump()
      }),
    state: () => governorState(inFlight, day, clock),
    learned: () => learned(inFlight.pace()),
    onChange(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    close: () => {
      closing.abort()
      for (const waiter of waiting) waiter.answer(undefined)
      waiting.clear()
    },
  }
}

function dropOnAbort(waiter: Waiter, waiting: Set<Waiter>, signal: AbortSignal): void {
  const { answer, fail } = waiter
  const drop = () => {
    waiting.delete(waiter)
    answer(undefined)
  }
  waiter.answer = permit => {
    signal.removeEventListener('abort', drop)
    answer(permit)
  }
  waiter.fail = error => {
    signal.removeEventListener('abort', drop)
    fail(error)
  }
  // Every waiting permit adds a listener to the same signal. Node would warn of a leak at more than ten listeners.
  setMaxListeners(0, signal)
  signal.addEventListener('abort', drop, { once: true })
}

function governorState(inFlight: InFlight, day: DayCount, clock: Clock): GovernorState {
  const learning = inFlight.pace()
  const { throttled, accepted } = learning
  const state: GovernorState = {
    ratePerSecond: learning.rate.rate,
    concurrency: inFlightLimit(learning),
    inFlight: inFlight.count(),
    throttled,
    accepted,
    usedToday: day.used(),
    reservedToday: day.reserved(),
  }
  const pausedMs = Math.max(learning.pausedUntil, learning.askedUntil) - clock.elapsed()
  const dayMs = day.holdMs()
  if (dayMs > 0 && dayMs >= pausedMs) {
    return { ...state, pausedUntil: clock.now() + dayMs, pauseReason: 'requests-per-day' }
  }
  if (pausedMs <= 0 || learning.pauseReason === undefined) return state
  return { ...state, pausedUntil: Math.ceil(clock.now() + pausedMs), pauseReason: learning.pauseReason }
}
