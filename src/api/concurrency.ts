/**
 * Finds how many requests are worth having under way together: more as long as that lets more through, and no more
 * than the API takes. Pure; times are monotonic milliseconds.
 */

export interface ConcurrencyState {
  readonly limit: number
  /** Whether the API ever refused because of too many at a time. */
  readonly crowded: boolean
  /** The largest that may be tried, by the owner's ceiling and by what parley itself can handle. */
  readonly most: number
  /** Under measurement: how fast answers come while this limit is what holds requests back. */
  readonly trial: Trial
  /** The limit before, and how fast answers came with it, in requests a millisecond; undefined before the first. */
  readonly before: { readonly limit: number; readonly speed: number } | undefined
  /** Doubled until more brought nothing for the first time, then a quarter more at a time. */
  readonly growth: number
  /** When the next trial may begin, and how long it is waited when that brings nothing either. */
  readonly restUntil: number
  readonly restMs: number
}

interface Trial {
  readonly since: number | undefined
  readonly answers: number
}

/** Latency is what limits most, and from here on more of it would be the API's trouble: 107 requests/s at 300 ms. */
export const MOST_CONCURRENCY = 64
export const FIRST_CONCURRENCY = 4
const FIRST_GROWTH = 2
const LATER_GROWTH = 1.25
/** Of what would be gained if every further request were answered as fast as the others. */
const WORTHWHILE = 0.25
/** Answers under way when a limit was changed belong to the one before; then so many more are measured. */
const ROUNDS = 3
const FEWEST_ANSWERS = 12
const FIRST_REST_MS = 30_000
const LONGEST_REST_MS = 600_000

const NEW_TRIAL: Trial = { since: undefined, answers: 0 }

export interface FirstConcurrency {
  limit: number
  crowded: boolean
  most: number
}

export function startConcurrency({ limit, crowded, most }: FirstConcurrency): ConcurrencyState {
  return {
    limit: Math.max(1, Math.min(limit, most)),
    crowded,
    most,
    trial: NEW_TRIAL,
    before: undefined,
    growth: crowded ? LATER_GROWTH : FIRST_GROWTH,
    restUntil: Number.NEGATIVE_INFINITY,
    restMs: FIRST_REST_MS,
  }
}

/** A request was answered. `full`: it had waited because so many others were under way. */
export function answered(
  state: ConcurrencyState,
  { at, full }: { at: number; full: boolean },
): ConcurrencyState {
  if (!full) return state.trial === NEW_TRIAL ? state : { ...state, trial: NEW_TRIAL }
  const answers = state.trial.answers + 1
  if (answers <= state.limit) return { ...state, trial: { since: at, answers } }
  const since = state.trial.since ?? at
  const measured = answers - state.limit
  if (measured < Math.max(ROUNDS * state.limit, FEWEST_ANSWERS))
    return { ...state, trial: { since, answers } }
  return judged(state, measured / Math.max(1, at - since), at)
}

/** The API takes so many and refuses what goes beside them: no more is tried for a long while. */
export function refuseCrowd(
  state: ConcurrencyState,
  { at, beside }: { at: number; beside: number },
): ConcurrencyState {
  return {
    ...state,
    limit: Math.max(1, Math.min(state.limit, beside)),
    crowded: true,
    trial: NEW_TRIAL,
    before: undefined,
    growth: LATER_GROWTH,
    restUntil: at + Math.max(state.restMs, 2 * FIRST_REST_MS),
    restMs: Math.min(2 * Math.max(state.restMs, 2 * FIRST_REST_MS), LONGEST_REST_MS),
  }
}

function judged(state: ConcurrencyState, speed: number, at: number): ConcurrencyState {
  const { limit, before } = state
  if (before !== undefined && before.limit < limit) {
    const wanted = before.speed * (1 + WORTHWHILE * (limit / before.limit - 1))
    if (speed < wanted) return rest(state, before.limit, at)
  }
  const more = Math.min(state.most, Math.max(limit + 1, Math.floor(limit * state.growth)))
  if (more <= limit || at < state.restUntil) return { ...state, trial: NEW_TRIAL, before: { limit, speed } }
  return { ...state, limit: more, trial: NEW_TRIAL, before: { limit, speed } }
}

/** More has brought nothing but waiting. */
function rest(state: ConcurrencyState, limit: number, at: number): ConcurrencyState {
  return {
    ...state,
    limit,
    trial: NEW_TRIAL,
    before: undefined,
    growth: LATER_GROWTH,
    restUntil: at + state.restMs,
    restMs: Math.min(state.restMs * 2, LONGEST_REST_MS),
  }
}
