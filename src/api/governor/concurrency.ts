import { MINUTE_MS } from '../../base/clock.ts'

/**
 * Learns the in-flight limit. It grows as long as more requests in flight bring more answers per second, and shrinks
 * when the API refuses requests because too many are in flight. Pure. Times are monotonic milliseconds.
 *
 * A trial measures the answers per second at the current limit. After a trial, the limit grows, or it returns to its
 * value before the last growth. Then, and after a refusal, it rests: it does not grow for some time, and in smaller
 * steps from then on.
 */

export interface ConcurrencyState {
  readonly limit: number
  /** Whether the API ever refused a request because too many were in flight. */
  readonly crowded: boolean
  /** The highest number of other requests in flight at which the API accepted a request in the last minute. */
  readonly proven: { readonly others: number; readonly at: number }
  /** Upper bound, from the configured ceiling and from `MAX_CONCURRENCY`. */
  readonly max: number
  /** The current measurement. Only the answers of requests that this limit held back count. */
  readonly trial: Trial
  /** The last measured limit and its speed in answers per millisecond; undefined at first and after each reduction. */
  readonly before: { readonly limit: number; readonly speed: number } | undefined
  /** The limit does not grow before this time. */
  readonly restUntil: number
  /** Length of the last rest; 0 before the first. Each is twice as long as the last, up to MAX_REST_MS. */
  readonly restMs: number
}

interface Trial {
  readonly since: number | undefined
  readonly answers: number
}

/** Enough for 213 requests/s at a latency of 300 ms. */
export const MAX_CONCURRENCY = 64
export const FIRST_CONCURRENCY = 4
/** Factor of the growth until the first rest, and from then on. */
const FIRST_GROWTH = 2
const LATER_GROWTH = 1.25
/** The share of the ideal gain that a larger limit must bring. Ideally, twice the limit brings twice the speed. */
const WORTHWHILE = 0.25
/** Answers to measure, in multiples of the limit. Requests that were in flight when the limit changed do not count. */
const ROUNDS = 3
const MIN_ANSWERS = 12
const FIRST_REST_MS = 30_000
const MAX_REST_MS = 600_000

const NEW_TRIAL: Trial = { since: undefined, answers: 0 }

export interface FirstConcurrency {
  limit: number
  crowded: boolean
  max: number
}

export function startConcurrency({ limit, crowded, max: most }: FirstConcurrency): ConcurrencyState {
  return {
    limit: Math.max(1, Math.min(limit, most)),
    crowded,
    proven: { others: 0, at: Number.NEGATIVE_INFINITY },
    max: most,
    trial: NEW_TRIAL,
    before: undefined,
    restUntil: Number.NEGATIVE_INFINITY,
    restMs: crowded ? FIRST_REST_MS : 0,
  }
}

/** How long an accepted request counts as proof. The API may lower its limit later. */
const PROVEN_MS = MINUTE_MS

/** The state after an accepted request, with `others` requests in flight at the time. */
export function withProven(
  state: ConcurrencyState,
  { others, at }: ConcurrencyState['proven'],
): ConcurrencyState {
  const isLess = others < state.proven.others && at - state.proven.at < PROVEN_MS
  return isLess ? state : { ...state, proven: { others, at } }
}

/** Whether the API accepted a request with at least as many others in flight. A refusal then has another reason. */
export function isProven({ proven }: ConcurrencyState, { others, at }: ConcurrencyState['proven']): boolean {
  return others <= proven.others && at - proven.at < PROVEN_MS
}

/** Leaves a pause out of the time over which the trial measures the speed. */
export function withoutPause(state: ConcurrencyState, pausedMs: number): ConcurrencyState {
  const { since } = state.trial
  return since === undefined ? state : { ...state, trial: { ...state.trial, since: since + pausedMs } }
}

/** The state after an answer. `full`: the in-flight limit had held the request back. */
export function afterAnswer(
  state: ConcurrencyState,
  { at, full }: { at: number; full: boolean },
): ConcurrencyState {
  if (!full) return state.trial === NEW_TRIAL ? state : { ...state, trial: NEW_TRIAL }
  const answers = state.trial.answers + 1
  if (answers <= state.limit) return { ...state, trial: { since: at, answers } }
  const since = state.trial.since ?? at
  const measured = answers - state.limit
  if (measured < Math.max(ROUNDS * state.limit, MIN_ANSWERS)) return { ...state, trial: { since, answers } }
  return afterTrial(state, measured / Math.max(1, at - since), at)
}

/** The state after a refusal. `othersInFlight`: other requests in flight when it arrived. */
export function afterConcurrencyRefusal(
  state: ConcurrencyState,
  { at, othersInFlight }: { at: number; othersInFlight: number },
): ConcurrencyState {
  const limit = Math.max(1, Math.min(state.limit, othersInFlight))
  return { ...rested(state, limit, at), crowded: true }
}

/** The state at a lower limit. Several refusals at once are one rest, or twenty would make it one of ten minutes. */
function rested(state: ConcurrencyState, limit: number, at: number): ConcurrencyState {
  const longer = Math.min(MAX_REST_MS, Math.max(FIRST_REST_MS, 2 * state.restMs))
  const restMs = at < state.restUntil ? state.restMs : longer
  return { ...state, limit, trial: NEW_TRIAL, before: undefined, restUntil: at + restMs, restMs }
}

function afterTrial(state: ConcurrencyState, speed: number, at: number): ConcurrencyState {
  const { limit, before } = state
  if (before !== undefined && before.limit < limit) {
    const wanted = before.speed * (1 + WORTHWHILE * (limit / before.limit - 1))
    if (speed < wanted) return rested(state, before.limit, at)
  }
  const measured = { ...state, trial: NEW_TRIAL, before: { limit, speed } }
  const { restUntil, restMs, max } = state
  if (at < restUntil) return measured
  const growth = restMs === 0 ? FIRST_GROWTH : LATER_GROWTH
  return { ...measured, limit: Math.min(max, Math.max(limit + 1, Math.floor(limit * growth))) }
}
