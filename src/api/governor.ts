import { setMaxListeners } from 'node:events'
import Bottleneck from 'bottleneck'
import { type Clock, isoInstant } from '../clock.ts'
import {
  type Ceilings,
  type LearnedRate,
  learned,
  mostUnderWay,
  type PaceState,
  type Pacing,
  type PauseReason,
  pace,
  pacing,
  startPace,
  type WaitedFor,
} from './pace.ts'

/**
 * Lets requests go no faster than the API and the owner allow: the only user of Bottleneck. Which request goes is
 * not known here: a permit is asked for first, and whoever gets it chooses then.
 */

export interface GovernorOptions {
  clock: Clock
  /** A number from 0 up to 1, for jitter. */
  random: () => number
  ceilings: Ceilings
  /** What an earlier process had learned. */
  initial?: LearnedRate | undefined
  /** Requests already made, or reserved by a process that was killed, in the present UTC day. */
  usedToday?: number
  /**
   * Keeps, so that it survives a kill, that so many requests of a UTC day may have been made: with a ceiling for the
   * day no request goes before it is kept. `day` as `YYYY-MM-DD`.
   */
  reserve?: ((day: string, requests: number) => Promise<void>) | undefined
}

/** Of one request. It must be settled or cancelled once; whatever comes after that has no effect. */
export interface Permit {
  /**
   * @param result `accepted`: the API took the request, whatever it answered; `throttled`: 429; `other`: it says
   * nothing about the rate (timeouts, resets, 5xx)
   */
  settle(result: PermitResult): void
  /** The request was not sent after all. */
  cancel(): void
}

export interface PermitResult {
  kind: 'accepted' | 'throttled' | 'other'
  durationMs: number
  /** What the API asked to wait, with `throttled`. */
  waitMs?: number | undefined
}

export interface GovernorState {
  ratePerSecond: number
  concurrency: number
  inFlight: number
  /** While nothing may go: until when, in ms since the epoch by this machine's clock, and why. */
  pausedUntil?: number
  /** `asked`: the API named the wait; `throttled`: a wait of our own after 429; else the owner's day is used up. */
  pauseReason?: PauseReason | 'requests-per-day'
  throttled: number
  accepted: number
  usedToday: number
  /** As many as another process must count as used should this one be killed now. */
  reservedToday: number
}

export interface Governor {
  /**
   * Resolves when one request may go; with undefined when the signal is aborted first, or after `close`. Rejects when
   * the day's requests cannot be reserved.
   */
  permit(signal?: AbortSignal): Promise<Permit | undefined>
  state(): GovernorState
  learned(): LearnedRate
  /** Gives every waiting asker undefined and stops all timers. */
  close(): void
}

/** What is known of a request when it goes. */
interface SentRequest {
  sentAt: number
  waitedFor: WaitedFor
  /** Others under way at that time. */
  beside: number
}

interface Waiter {
  /** The last thing that held it back. */
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
  let waking = false
  const turns = createTurns(clock)
  const day = createDayCount({ clock, limit: ceilings.requestsPerDay, usedBefore: usedToday, reserve })
  const waiting = new Set<Waiter>()
  const closing = new AbortController()

  /** Lets go whatever may go now; what comes to be allowed later calls it again. */
  const pump = () => {
    for (const waiter of waiting) {
      if (inFlight >= mostUnderWay(learning)) {
        waiter.waitedFor = 'concurrency'
        return
      }
      const holdMs = Math.max(learning.pausedUntil - clock.elapsed(), day.holdMs())
      if (holdMs > 0) return wakeAfter(holdMs)
      if (!day.isReserved()) return reserveMore()
      const rhythm = pacing(learning)
      if (rhythm.minTime > 0 && !turns.take()) {
        if (turns.ask(rhythm, pump)) waiter.waitedFor = 'pace'
        return
      }
      waiting.delete(waiter)
      waiter.answer(grant(waiter.waitedFor))
    }
  }

  const reserveMore = () => {
    day.reserveMore().then(pump, error => {
      for (const waiter of waiting) waiter.fail(error)
      waiting.clear()
    })
  }

  const wakeAfter = (ms: number) => {
    if (waking) return
    waking = true
    void clock.sleep(ms, closing.signal).then(() => {
      waking = false
      if (!closing.signal.aborted) pump()
    })
  }

  const grant = (waitedFor: WaitedFor): Permit => {
    const sentAt = clock.elapsed()
    let open = true
    inFlight += 1
    const sent: SentRequest = { sentAt, waitedFor, beside: inFlight - 1 }
    day.add(1)
    learning = pace(learning, { kind: 'granted', at: sentAt })
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
          turns.giveBack()
          learning = pace(learning, { kind: 'unsent', at: clock.elapsed() })
        }),
    }
  }

  const learn = ({ kind, waitMs }: PermitResult, { sentAt, waitedFor, beside }: SentRequest) => {
    const at = clock.elapsed()
    if (kind === 'accepted') learning = pace(learning, { kind, at, sentAt, waitedFor })
    if (kind !== 'throttled') return
    const others = { atSend: beside, now: inFlight }
    learning = pace(learning, { kind, at, sentAt, beside: others, waitMs, jitter: random() })
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
    state: () => describe(learning, inFlight, day, clock),
    learned: () => learned(learning),
    close: () => {
      closing.abort()
      for (const waiter of waiting) waiter.answer(undefined)
      waiting.clear()
    },
  }
}

function dropOnAbort(waiter: Waiter, waiting: Set<Waiter>, signal: AbortSignal): void {
  const { answer } = waiter
  const drop = () => {
    waiting.delete(waiter)
    answer(undefined)
  }
  waiter.answer = permit => {
    signal.removeEventListener('abort', drop)
    answer(permit)
  }
  // Any number may wait on one signal; Node would take more than ten listeners for a leak.
  setMaxListeners(0, signal)
  signal.addEventListener('abort', drop, { once: true })
}

function describe(learning: PaceState, inFlight: number, day: DayCount, clock: Clock): GovernorState {
  const { throttled, accepted } = learning
  const { ratePerSecond, concurrency } = learned(learning)
  const state: GovernorState = {
    ratePerSecond,
    concurrency,
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

interface Turns {
  /** Uses up one of the requests that the last turn allows; false when there is none left. */
  take(): boolean
  /** Has `then` called at the next turn. Tells whether that is later than now because of the pacing. */
  ask(rhythm: Pacing, then: () => void): boolean
  /** Undoes a `take`. */
  giveBack(): void
}

/**
 * Turns in the rhythm of Bottleneck's `minTime`, each of them for a batch of requests. At most one turn is asked
 * for at a time and it belongs to no request, so that nothing ever queues inside Bottleneck.
 */
function createTurns(clock: Clock): Turns {
  let limiter = new Bottleneck()
  let appliedMinTime = 0
  let wallTime = clock.now()
  let lastTurnAt = Number.NEGATIVE_INFINITY
  let credit = 0
  let asked = false

  const request = ({ minTime, batch, leastMs }: Pacing, then: () => void) => {
    // Bottleneck goes by the wall clock: set back by an hour, it would wait for an hour.
    if (clock.now() < wallTime) {
      limiter = new Bottleneck()
      appliedMinTime = 0
    }
    wallTime = clock.now()
    if (minTime !== appliedMinTime) void limiter.updateSettings({ minTime })
    appliedMinTime = minTime
    void limiter.schedule(async () => {
      // Bottleneck keeps to its rhythm: after a turn that was taken late, the next may come at its heels.
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
  /** Whether another request would still count as used after a kill. */
  isReserved(): boolean
  reserveMore(): Promise<void>
  /** Time left until the next UTC day when this one's requests are used up, else 0. */
  holdMs(): number
}

interface DayCountDeps extends Pick<GovernorOptions, 'clock' | 'reserve'> {
  limit: number | undefined
  usedBefore: number
}

/** A kill costs the owner at most so many of the day's requests, and a restart makes them up the next day. */
const MOST_RESERVED = 100
const RESERVED_SHARE = 1 / 100

function createDayCount({ clock, limit, usedBefore, reserve }: DayCountDeps): DayCount {
  let day = utcDay(clock.now())
  let used = usedBefore
  let reserved = usedBefore
  let reserving: Promise<void> | undefined
  const turnOver = () => {
    const today = utcDay(clock.now())
    // A clock that was set back does not give the owner's requests a second time.
    if (today > day) {
      day = today
      used = 0
      reserved = 0
    }
  }
  const reserveMore = async (most: number) => {
    const [of, wanted] = [
      day,
      Math.min(most, used + Math.min(MOST_RESERVED, Math.ceil(most * RESERVED_SHARE))),
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

const DAY_MS = 86_400_000

function utcDay(ms: number): number {
  return Math.floor(ms / DAY_MS)
}

function dayName(day: number): string {
  return isoInstant(day * DAY_MS).slice(0, 10)
}
