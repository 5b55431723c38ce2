import { backoffMs, longestBackoffMs } from '../../base/backoff.ts'
import {
  afterAnswer,
  afterConcurrencyRefusal,
  type ConcurrencyState,
  FIRST_CONCURRENCY,
  isProven,
  MAX_CONCURRENCY,
  startConcurrency,
  withoutPause,
  withProven,
} from './concurrency.ts'
import {
  afterRefusal,
  isStrayRefusal,
  type RateState,
  rateAfterAcceptance,
  startRate,
  withAnswerNoted,
} from './rate.ts'
import { OTHER_ROUTE_MS } from './route-limits.ts'

/**
 * Learns from the API's answers how fast to send requests, how many may be in flight, and when to pause. Pure: a state
 * and an event give the next state. Times are monotonic milliseconds.
 *
 * A refusal is a 429. It starts an episode, and the refusals of all requests that were sent before it arrived belong to
 * the same episode. If other requests were in flight, and no earlier refusal was because of the rate, the reason is in
 * doubt: the in-flight limit is lowered first, and the rate only if that does not help.
 *
 * `api/classify.ts` reads the wait that a 429 asks for, `governor.ts` enforces the pause, and
 * `engine/requests/attempts.ts` sends the refused request again; a 429 does not count as a failed attempt.
 */

/** The configured limits, never exceeded. */
export interface Ceilings {
  requestsPerSecond?: number | undefined
  concurrency?: number | undefined
  /** Per UTC day. */
  requestsPerDay?: number | undefined
}

/** The part of the state that is stored and used after a restart. */
export interface LearnedRate {
  ratePerSecond: number
  concurrency: number
  /** Whether `ratePerSecond` was learned from the API's limit. False until a search for the limit has ended. */
  limited: boolean
  /** Whether the API refused because too many requests were in flight. Undefined if an older version stored this. */
  crowded?: boolean
}

export type PauseReason = 'asked' | 'throttled'

export interface PaceState {
  readonly ceilings: Ceilings
  readonly rate: RateState
  readonly concurrency: ConcurrencyState
  /** Set while it is not known whether a refusal was for the rate or for too many requests in flight. */
  readonly doubt: Doubt | undefined
  /** Start of the latest episode. The refusals of requests that were sent before this time belong to that episode. */
  readonly episodeAt: number
  /** No request may be sent before this time. If it is before `askedUntil`, a single trial may be sent at this time. */
  readonly pausedUntil: number
  /** End of the wait that the API asked for; in the past if the API asked for none. */
  readonly askedUntil: number
  readonly pauseReason: PauseReason | undefined
  /** Episodes since the last accepted request. 0 after an episode that lowered the in-flight limit without a pause. */
  readonly refusals: number
  /** Start of the first episode that `refusals` counts. */
  readonly blockedSince: number
  /** Set while a request of another route is to find out whether the limit is that of one route. */
  readonly ofRoute: BeforeRefusal | undefined
  readonly accepted: number
  readonly throttled: number
}

/** The values to restore when a refusal turns out to concern only a single route. */
type BeforeRefusal = Pick<PaceState, 'rate' | 'concurrency'>

interface Doubt {
  /** The in-flight limit to return to if the rate turns out to be the reason. */
  readonly limitBefore: number
  /** `PaceState.accepted` when the request was refused. */
  readonly accepted: number
}

/** The last reason, other than a pause, why a request had to wait before it was sent. */
export type WaitedFor = 'pace' | 'concurrency' | undefined

export type PaceEvent =
  | {
      kind: 'accepted'
      at: number
      sentAt: number
      waitedFor: WaitedFor
      /** Other requests in flight when this one was sent. */
      othersInFlight: number
      /** Whether another route was refused and is closed meanwhile. */
      isElsewhere: boolean
    }
  /**
   * `othersInFlight`: other requests in flight when this one was sent, and when its 429 arrived (`now`). The order in
   * which the API received them is not known. `jitter`: a random number from 0 up to 1.
   */
  | {
      kind: 'throttled'
      at: number
      sentAt: number
      othersInFlight: { atSend: number; now: number }
      waitMs: number | undefined
      /**
       * Whether the refusal may come from a limit of the request's route. No other request of the route is sent
       * meanwhile.
       */
      mayBeOfRoute: boolean
      jitter: number
    }
  /** A request without an answer, or with one that says nothing about the rate. */
  | { kind: 'failed'; at: number; sentAt: number }
  /** A request got its permit. During a wait that the API asked for, this request is the only trial in flight. */
  | { kind: 'granted'; at: number }
  /** A request that got its permit at `grantedAt` was not sent. */
  | { kind: 'unsent'; at: number; grantedAt: number }

type ThrottledEvent = Extract<PaceEvent, { kind: 'throttled' }>

export interface Pacing {
  /** Interval between turns (`turns.ts`) in ms; 0: no pacing. */
  minTime: number
  /** Requests per turn: 1 up to a rate of 100 requests per second. */
  batch: number
  /** Minimum time between two turns. After a late turn the next may follow sooner than `minTime`. */
  leastMs: number
}

const FIRST_RATE = 5
/** One request in 30 s: the rate never drops below this. */
const LOWEST_RATE = 1 / 30
/** From this rate on, requests are not paced, unless a ceiling per second is configured. */
const UNPACED_RATE = 1000
/**
 * Interval of the trials during a wait that the API asked for. The wait may be a mistake, such as an instant instead of
 * seconds.
 */
const TRIAL_EVERY_MS = 15 * 60_000
/** After this many accepted requests at a lower in-flight limit, the doubt ends: too many requests were in flight. */
const DOUBT_ENDS_AFTER = 50
/** A refusal is soon after another if at most this many requests were accepted in between. */
const SOON = 8
/** If the API asks for a longer wait, it did not refuse because too many requests were in flight. */
const MAX_CONCURRENCY_WAIT_MS = 2000
const EARLY_PAUSE = { firstMs: 1000, mostMs: 4000 }
const MAX_OWN_PAUSE_MS = 60_000
/** Later pauses last up to this share of the time since the first refusal. So a long window causes few refusals. */
const PAUSE_SHARE = 1 / 8
/** Shorter intervals than this would depend on the accuracy of timers. */
const SLOT_MS = 10
/** Least share of `minTime` between two turns: an API without a burst allowance refuses anything much sooner. */
const MIN_GAP_SHARE = 0.95

export function startPace(ceilings: Ceilings, learnedRate: LearnedRate | undefined): PaceState {
  const rate = learnedRate?.ratePerSecond ?? FIRST_RATE
  const bounds = {
    least: LOWEST_RATE,
    most: Math.min(ceilings.requestsPerSecond ?? UNPACED_RATE, UNPACED_RATE),
  }
  const most = Math.min(ceilings.concurrency ?? MAX_CONCURRENCY, MAX_CONCURRENCY)
  return {
    ceilings,
    rate: startRate({ rate, limited: learnedRate?.limited ?? false, bounds }),
    concurrency: startConcurrency({
      limit: learnedRate?.concurrency ?? FIRST_CONCURRENCY,
      crowded: learnedRate?.crowded ?? false,
      max: most,
    }),
    doubt: undefined,
    episodeAt: Number.NEGATIVE_INFINITY,
    pausedUntil: Number.NEGATIVE_INFINITY,
    askedUntil: Number.NEGATIVE_INFINITY,
    pauseReason: undefined,
    refusals: 0,
    blockedSince: Number.NEGATIVE_INFINITY,
    ofRoute: undefined,
    accepted: 0,
    throttled: 0,
  }
}

export function paceAfter(state: PaceState, event: PaceEvent): PaceState {
  switch (event.kind) {
    case 'accepted':
      return afterAccepted(state, event)
    case 'throttled':
      return afterThrottled(state, event)
    case 'granted':
      return event.at < state.askedUntil ? withRequestedWait(state, event.at, state.askedUntil) : state
    case 'unsent':
      return afterUnsent(state, event)
    case 'failed':
      return afterFailedTrial(state, event)
  }
}

/** A trial on another route failed and shows nothing, so another trial may follow. */
function afterFailedTrial(
  state: PaceState,
  { at, sentAt }: Extract<PaceEvent, { kind: 'failed' }>,
): PaceState {
  if (!state.ofRoute || sentAt <= state.episodeAt) return state
  return { ...state, pausedUntil: Math.min(state.askedUntil, at + OTHER_ROUTE_MS) }
}

/** If the unsent request was the trial during a wait that the API asked for, another trial may follow at once. */
function afterUnsent(state: PaceState, { at, grantedAt }: Extract<PaceEvent, { kind: 'unsent' }>): PaceState {
  const isTrial = grantedAt > state.episodeAt && at < state.askedUntil
  return isTrial ? { ...state, pausedUntil: at } : state
}

function withRequestedWait(state: PaceState, at: number, askedUntil: number): PaceState {
  const pausedUntil = Math.min(askedUntil, at + TRIAL_EVERY_MS)
  return { ...state, askedUntil, pausedUntil, pauseReason: 'asked' }
}

/**
 * The part of the state to store. During a search, the stored rate is the plateau, which is near the last refused rate.
 * The rate that the search tries may be a tenth of the limit, and growing from there takes minutes. The next process
 * searches again.
 */
export function learned({ rate, concurrency }: PaceState): LearnedRate {
  const { limit, crowded } = concurrency
  const isSearching = rate.limited && rate.search !== undefined
  return {
    ratePerSecond: isSearching ? rate.plateau : rate.rate,
    concurrency: limit,
    limited: rate.limited && !isSearching,
    crowded,
  }
}

/** The number of requests that may be in flight. After a refusal, one tests whether the API accepts requests again. */
export function maxInFlight(state: PaceState): number {
  return state.refusals > 0 ? 1 : inFlightLimit(state)
}

/** An API that limits the rate needs no other limit, unless it has refused because too many requests were in flight. */
export function inFlightLimit({ rate, concurrency }: PaceState): number {
  return rate.limited && !concurrency.crowded ? concurrency.max : concurrency.limit
}

export function pacing({ rate: { rate }, ceilings }: PaceState): Pacing {
  const ceiling = ceilings.requestsPerSecond
  if (ceiling === undefined && rate >= UNPACED_RATE) return { minTime: 0, batch: 1, leastMs: 0 }
  const batch = Math.ceil((rate * SLOT_MS) / 1000)
  // A timer may fire a millisecond early. The configured ceiling must hold even then.
  const margin = ceiling !== undefined && rate >= ceiling ? 1 : 0
  const minTime = (batch * 1000) / rate + margin
  const allowedMs = ceiling === undefined ? 0 : (batch * 1000) / ceiling
  return { minTime, batch, leastMs: Math.max(minTime * MIN_GAP_SHARE, allowedMs) }
}

function afterAccepted(state: PaceState, event: Extract<PaceEvent, { kind: 'accepted' }>): PaceState {
  const { at, sentAt, waitedFor } = event
  const rate = withAnswerNoted(state.rate, { sentAt, accepted: true })
  const counted = { ...state, accepted: state.accepted + 1, rate }
  if (state.ofRoute && event.isElsewhere && sentAt > state.episodeAt)
    return {
      ...counted,
      rate: withAnswerNoted(state.ofRoute.rate, { sentAt, accepted: true }),
      concurrency: state.ofRoute.concurrency,
      ofRoute: undefined,
      refusals: 0,
      askedUntil: at,
      pausedUntil: at,
    }
  // A request that was sent before the latest refusal says nothing about the time after that refusal.
  if (sentAt <= state.episodeAt) return counted
  const proven = withProven(state.concurrency, { others: event.othersInFlight, at })
  const concurrency = state.refusals > 0 ? withoutPause(proven, at - state.episodeAt) : proven
  return {
    ...counted,
    ofRoute: undefined,
    refusals: 0,
    ...(state.askedUntil > at && { askedUntil: at, pausedUntil: at }),
    doubt: state.doubt && state.accepted - state.doubt.accepted < DOUBT_ENDS_AFTER ? state.doubt : undefined,
    // While the reason for a refusal is in doubt, the rate must not grow: a higher rate could itself cause refusals.
    rate: rateAfterAcceptance(rate, {
      at,
      waitedFor,
      mayGrow: waitedFor !== undefined && state.doubt === undefined,
    }),
    concurrency: afterAnswer(concurrency, { at, full: waitedFor === 'concurrency' }),
  }
}

/** Learns from the first 429 of an episode. Its later 429s can only prolong the pause and lower the in-flight limit. */
function afterThrottled(state: PaceState, event: ThrottledEvent): PaceState {
  const { at, sentAt, waitMs } = event
  const rate = withAnswerNoted(state.rate, { sentAt, accepted: false })
  const counted = { ...state, throttled: state.throttled + 1, rate }
  const asked = waitMs === undefined ? Number.NEGATIVE_INFINITY : at + waitMs
  if (sentAt <= state.episodeAt) {
    const lower = state.doubt ? withDoubt(counted, event) : counted
    return asked > Math.max(state.pausedUntil, state.askedUntil) ? withRequestedWait(lower, at, asked) : lower
  }
  const blockedSince = state.refusals === 0 ? at : state.blockedSince
  // When the trial of another route was refused as well, the rate is lowered once for both.
  const before: BeforeRefusal = state.ofRoute ?? state
  const begun = {
    ...counted,
    rate: withAnswerNoted(before.rate, { sentAt, accepted: false }),
    concurrency: before.concurrency,
    ofRoute: undefined,
    refusals: state.refusals + 1,
    blockedSince,
  }
  if (isStrayRefusal(begun.rate) && state.refusals === 0) {
    const stray = { ...begun, episodeAt: at }
    return waitMs === undefined ? { ...stray, refusals: 0 } : withPause(stray, event, asked)
  }
  if (!mayBeConcurrency(state, event)) {
    const paused = withPause({ ...afterRateRefusal(begun, at), episodeAt: at }, event, asked)
    return event.mayBeOfRoute ? withTrialElsewhere(paused, { at, before }) : paused
  }
  const doubtful = { ...withDoubt(begun, event), episodeAt: at }
  // Fewer requests in flight may be enough, so there is no pause unless the API asks for one.
  return waitMs === undefined ? { ...doubtful, refusals: 0 } : withPause(doubtful, event, asked)
}

function withTrialElsewhere(
  paused: PaceState,
  { at, before: { rate, concurrency } }: { at: number; before: BeforeRefusal },
): PaceState {
  const until = Math.max(paused.pausedUntil, paused.askedUntil)
  if (until - at <= OTHER_ROUTE_MS) return paused
  return { ...paused, ofRoute: { rate, concurrency }, askedUntil: until, pausedUntil: at + OTHER_ROUTE_MS }
}

/** Whether too many requests in flight may be the reason. An API that refuses for this reason asks for no long wait. */
function mayBeConcurrency(
  { rate, concurrency, doubt, accepted }: PaceState,
  { at, othersInFlight, waitMs = 0 }: ThrottledEvent,
): boolean {
  const isAlone = othersInFlight.atSend === 0 && othersInFlight.now === 0
  if (isAlone || rate.limited || waitMs > MAX_CONCURRENCY_WAIT_MS) return false
  // When it is refused again soon, with fewer in flight, the rate must be the reason.
  if (doubt && accepted - doubt.accepted <= SOON) return false
  return !isProven(concurrency, { others: othersInFlight.atSend, at })
}

/** Lowers the in-flight limit to the requests still in flight: they are about as many as the API allows. */
function withDoubt(state: PaceState, { at, othersInFlight }: ThrottledEvent): PaceState {
  const { doubt, accepted, concurrency } = state
  return {
    ...state,
    doubt: { limitBefore: doubt?.limitBefore ?? concurrency.limit, accepted },
    concurrency: afterConcurrencyRefusal(concurrency, { at, othersInFlight: othersInFlight.now }),
  }
}

function afterRateRefusal(state: PaceState, at: number): PaceState {
  const { doubt, concurrency } = state
  return {
    ...state,
    doubt: undefined,
    rate: afterRefusal(state.rate, at),
    concurrency: doubt
      ? startConcurrency({ ...concurrency, limit: doubt.limitBefore, crowded: false })
      : concurrency,
  }
}

function withPause(state: PaceState, { at, jitter, waitMs }: ThrottledEvent, asked: number): PaceState {
  const askedUntil = waitMs === undefined ? state.askedUntil : asked
  if (askedUntil > at) return withRequestedWait(state, at, askedUntil)
  const early = longestBackoffMs(EARLY_PAUSE, state.refusals)
  const firstMs = Math.max(early, (at - state.blockedSince) * PAUSE_SHARE)
  const pauseMs = backoffMs({ firstMs, mostMs: MAX_OWN_PAUSE_MS, jitter: 0.5 }, 1, () => jitter)
  return { ...state, pausedUntil: at + pauseMs, pauseReason: 'throttled' }
}
