import { setMaxListeners } from 'node:events'
import Bottleneck from 'bottleneck'
import { type Clock, DAY_MS, utcDay } from '../../clock.ts'
import {
  type Ceilings,
  type LearnedRate,
  learned,
  maxInFlight,
  type PaceState,
  type Pacing,
  type PauseReason,
  paceAfter,
  pacing,
  startPace,
  type WaitedFor,
} from './pace.ts'

/**
 * Grants permits to send requests, no faster than the API and the settings allow. The caller chooses a request only
 * after it has got a permit, so that the request is the most urgent at that moment. Only this file uses Bottleneck.
 */

export interface GovernorOptions {
  clock: Clock
  /** Returns a number from 0 to below 1, for jitter. */
  random: () => number
  ceilings: Ceilings
  /** What an earlier process learned. */
  initial?: LearnedRate | undefined
  /** Requests of the current UTC day that count as used already: sent, or reserved by a process that was killed. */
  usedToday?: number
  /**
   * Stores how many requests of a UTC day (`YYYY-MM-DD`) count as used if this process is killed. With a ceiling per
   * day, no request is sent before it is reserved in this way.
   */
  reserve?: ((day: string, requests: number) => Promise<void>) | undefined
}

/** The permit to send one request. The caller must call `settle` or `cancel` once; further calls have no effect. */
export interface Permit {
  /**
   * Ends the request and learns from its result.
   * @param result `accepted`: an answer without throttling, such as 200 or 404; `throttled`: 429; `other`: the result
   *   says nothing about the rate (timeouts, resets, 5xx)
   */
  settle(result: PermitResult): void
  /** Gives the permit back when no request was sent. */
  cancel(): void
}

export interface PermitResult {
  kind: 'accepted' | 'throttled' | 'other'
  /** For `throttled`: the wait that the API asked for. */
  waitMs?: number | undefined
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
  /** Resolves all waiting permits with undefined and stops all timers. */
  close(): void
}

/** What is known about a request when it is sent. */
interface RequestInFlight {
  sentAt: number
  waitedFor: WaitedFor
  /** Other requests in flight when this one is sent. */
  othersInFlight: number
}

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
  let learning = startPace(ceilings, initial)
  let inFlight = 0
  let isWaking = false
  const turns = createTurns(clock)
  const day = createDayCount({ clock, limit: ceilings.requestsPerDay, usedBefore: usedToday, reserve })
  const waiting = new Set<Waiter>()
  const closing = new AbortController()

  /** Grants all permits that are allowed now, and arranges to be called again for the rest. */
  const pump = () => {
    for (const waiter of waiting) {
      if (inFlight >= maxInFlight(learning)) {
        waiter.waitedFor = 'concurrency'
        return
      }
      const holdMs = Math.max(learning.pausedUntil - clock.elapsed(), day.holdMs())
      if (holdMs > 0) return wakeAfter(holdMs)
      if (!day.isReserved()) return reserveMore()
      const rhythm = pacing(learning)
      const isPaced = rhythm.minTime > 0
      if (isPaced && !turns.take()) {
        if (turns.ask(rhythm, pump)) waiter.waitedFor = 'pace'
        return
      }
      waiting.delete(waiter)
      waiter.answer(grant(waiter.waitedFor, isPaced))
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
    void clock.sleep(ms, closing.signal).then(() => {
      isWaking = false
      if (!closing.signal.aborted) pump()
    })
  }

  const grant = (waitedFor: WaitedFor, isPaced: boolean): Permit => {
    const sentAt = clock.elapsed()
    let open = true
    inFlight += 1
    const sent: RequestInFlight = { sentAt, waitedFor, othersInFlight: inFlight - 1 }
    day.add(1)
    learning = paceAfter(learning, { kind: 'granted', at: sentAt })
    const end = (effect: () => void) => {
      if (!open) return
      open = false
      inFlight -= 1
      effect()
      pump()
    }
    return {
      settle: result => end(() => learn(result, sent)),
      cancel: () =>
        end(() => {
          day.add(-1)
          if (isPaced) turns.giveBack()
          learning = paceAfter(learning, { kind: 'unsent', at: clock.elapsed(), grantedAt: sentAt })
        }),
    }
  }

  const learn = ({ kind, waitMs }: PermitResult, { sentAt, waitedFor, othersInFlight }: RequestInFlight) => {
    const at = clock.elapsed()
    if (kind === 'accepted') learning = paceAfter(learning, { kind, at, sentAt, waitedFor })
    if (kind !== 'throttled') return
    const others = { atSend: othersInFlight, now: inFlight }
    learning = paceAfter(learning, { kind, at, sentAt, othersInFlight: others, waitMs, jitter: random() })
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
    state: () => governorState(learning, inFlight, day, clock),
    learned: () => learned(learning),
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

function governorState(learning: PaceState, inFlight: number, day: DayCount, clock: Clock): GovernorState {
  const { throttled, accepted } = learning
  const { rate, concurrency } = learning
  const state: GovernorState = {
    ratePerSecond: rate.rate,
    concurrency: concurrency.limit,
    inFlight,
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

interface RequestTurns {
  /** Takes one of the requests that the last turn allows. False when none is left. */
  take(): boolean
  /** Schedules the next turn, which calls `then`, if none is scheduled. Returns whether pacing delays the next turn. */
  ask(rhythm: Pacing, then: () => void): boolean
  /** Undoes a `take`. */
  giveBack(): void
}

/**
 * A turn allows a batch of requests. Bottleneck runs the turns at intervals of its `minTime`. At most one turn is
 * scheduled at a time, and it belongs to no particular request, so that no requests queue inside Bottleneck.
 */
function createTurns(clock: Clock): RequestTurns {
  let limiter = new Bottleneck()
  let appliedMinTime = 0
  let wallTime = clock.now()
  let lastTurnAt = Number.NEGATIVE_INFINITY
  let credit = 0
  let asked = false

  const request = ({ minTime, batch, leastMs }: Pacing, then: () => void) => {
    // Bottleneck uses the wall clock. When the clock is set back by an hour, Bottleneck would wait for an hour.
    if (clock.now() < wallTime) {
      limiter = new Bottleneck()
      appliedMinTime = 0
    }
    wallTime = clock.now()
    if (minTime !== appliedMinTime) void limiter.updateSettings({ minTime })
    appliedMinTime = minTime
    void limiter.schedule(async () => {
      // After a late turn, Bottleneck keeps its schedule and may run the next turn too soon after the late one.
      for (let early = earlyMs(leastMs); early > 0; early = earlyMs(leastMs)) {
        await clock.sleep(early)
      }
      asked = false
      lastTurnAt = clock.elapsed()
      credit = batch
      then()
    })
  }

  const earlyMs = (leastMs: number) => Math.ceil(lastTurnAt + leastMs - clock.elapsed())

  return {
    take: () => {
      if (credit === 0) return false
      credit -= 1
      return true
    },
    ask: (rhythm, then) => {
      if (!asked) request(rhythm, then)
      asked = true
      return clock.elapsed() - lastTurnAt < rhythm.minTime
    },
    giveBack: () => {
      credit += 1
    },
  }
}

interface DayCount {
  add(requests: number): void
  used(): number
  reserved(): number
  /** Whether one more request may be sent without a further reservation. */
  isReserved(): boolean
  reserveMore(): Promise<void>
  /** When the ceiling of the day is reached: time until the next UTC day in ms; else 0. */
  holdMs(): number
}

interface DayCountDeps extends Pick<GovernorOptions, 'clock' | 'reserve'> {
  limit: number | undefined
  usedBefore: number
}

/** Maximum number of requests reserved ahead. A killed process loses up to this many from the day's ceiling. */
const MAX_RESERVED = 100
const RESERVED_SHARE = 1 / 100

function createDayCount({ clock, limit, usedBefore, reserve }: DayCountDeps): DayCount {
  let day = dayNumber(clock.now())
  let used = usedBefore
  let reserved = usedBefore
  let reserving: Promise<void> | undefined
  const turnOver = () => {
    const today = dayNumber(clock.now())
    // A clock that is set back must not allow the day's requests a second time.
    if (today > day) {
      day = today
      used = 0
      reserved = 0
    }
  }
  const reserveMore = async (most: number) => {
    const [of, wanted] = [
      day,
      Math.min(most, used + Math.min(MAX_RESERVED, Math.ceil(most * RESERVED_SHARE))),
    ]
    await reserve?.(dayName(of), wanted)
    if (of === day) reserved = Math.max(reserved, wanted)
  }
  return {
    add: requests => {
      turnOver()
      used = Math.max(0, used + requests)
    },
    used: () => {
      turnOver()
      return used
    },
    reserved: () => Math.max(used, reserved),
    isReserved: () => {
      turnOver()
      return limit === undefined || reserve === undefined || used < reserved
    },
    reserveMore() {
      reserving ??= reserveMore(limit ?? 0).finally(() => {
        reserving = undefined
      })
      return reserving
    },
    holdMs: () => {
      turnOver()
      return limit === undefined || used < limit ? 0 : (day + 1) * DAY_MS - clock.now()
    },
  }
}

function dayNumber(ms: number): number {
  return Math.floor(ms / DAY_MS)
}

function dayName(day: number): string {
  return utcDay(day * DAY_MS)
}
