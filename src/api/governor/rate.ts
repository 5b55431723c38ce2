import type { RateRange } from './limit-fit.ts'
import {
  hasRefusal,
  NEW_SEARCH,
  nextRateStep,
  type RateSearch,
  withAnswer,
  withRefusal,
} from './limit-search.ts'
import {
  type RefusedSpan,
  type StrayRefusals,
  spanToReturnTo,
  startStray,
  strayAfter,
  withSpan,
} from './stray-refusals.ts'

/**
 * Learns the rate that an API allows. The API's limit may be a token bucket, a fixed window or a sliding window. A
 * refusal is a 429 because of the rate. Pure. Times are monotonic milliseconds.
 *
 * - At first the rate grows with each accepted request, until the first refusal.
 * - Then `limit-search.ts` searches for the limit (`search`).
 * - Once the search has ended, the rate follows a cubic curve around the plateau, which is the estimated limit, as in
 *   TCP CUBIC (RFC 9438). It starts a little below the plateau, returns to it, and then grows faster and faster until
 *   the next refusal.
 * - A refusal shows two rates: the limit is below the refused rate, and not below the mean rate of the requests accepted
 *   since the last pause. The next plateau lies between the two. After a burst the mean is the limit. A burst ends after
 *   few requests, so the plateau is the closer to the refused rate the more were accepted.
 * - If lower rates are refused as often, the refusals have nothing to do with the rate (`stray-refusals.ts`).
 * - A server that refused for some seconds, whatever the rate, looks like a very low limit. So while the rate is below the
 *   one that was accepted before the first refusal, it doubles after a few requests, until it is refused, and again after
 *   more requests each time (`Comeback`).
 */

export interface RateState {
  /** The current rate in requests per second. */
  readonly rate: number
  readonly bounds: RateRange
  /** Whether the API ever refused because of the rate. Until then the rate only grows. */
  readonly limited: boolean
  /** The estimated limit, at which the curve is flat. During a pause, the refused rate. */
  readonly plateau: number
  /** The plateau before the last refusal. */
  readonly previousPlateau: number
  /** Whether the search found the plateau, or two plateaus in a row agree. If not, the curve rises faster. */
  readonly sure: boolean
  /** The search for the limit; undefined once it has ended. */
  readonly search: RateSearch | undefined
  /** When the search chose the current rate. */
  readonly soughtAt: number
  /** The requests since the last pause. A span with too few of them goes on after the next pause. */
  readonly span: RateSpan
  /** When a request was accepted for the first time. */
  readonly since: number | undefined
  /** When a request was last accepted. */
  readonly acceptedAt: number | undefined
  /** When the current pause started; undefined once a request is accepted again. */
  readonly refusedAt: number | undefined
  /** The latest spans, which show whether a lower rate has fewer refusals. */
  readonly refusedSpans: readonly RefusedSpan[]
  /** Set as long as there are refusals that have nothing to do with the rate. */
  readonly stray: StrayRefusals | undefined
  /** Set from the first refusal until a pause as long as that of a window. */
  readonly comeback: Comeback | undefined
}

interface Comeback {
  /** Requests per second that were accepted before the first refusal. */
  readonly to: number
  /** The plateau before the last doubling, to which a refusal leads back. */
  readonly from: Pick<RateState, 'plateau' | 'sure'> | undefined
  /** The number of accepted requests before the first doubling. It grows with each refusal on the way. */
  readonly after: number
}

interface RateSpan {
  readonly accepted: number
  /** Refused requests, those of the pauses included. */
  readonly refused: number
  /** The length of the span without the time in which there was nothing to send. */
  readonly activeMs: number
  /** Position on the curve: how long the rate has held requests back. */
  readonly heldMs: number
}

/** Growth per accepted answer until the first refusal: from 10/s to unpaced in little more than a second. */
const OPENING_GROWTH = 1.1
/** Share by which the rate starts below the plateau. */
const DROP = 0.02
/**
 * Shape of the curve. The rate is back at the plateau after `backMs`, or after the time of `requests` requests if that is
 * longer: at a low rate, refusals would otherwise be a large share of all requests. `beyondMs`: the time from the plateau
 * until the rate is above it by the share `DROP`.
 */
const SURE = { backMs: 40_000, requests: 300, beyondMs: 10_000 }
const UNSURE = { backMs: 5_000, requests: 40, beyondMs: 6_000 }
const MAX_BACK_MS = 150_000
/** Two plateaus that differ by less than this share agree. */
const AGREEMENT = 0.06
/** Position of the plateau between the mean and the refused rate on a logarithmic scale, after very many requests. */
const CLOSEST = 0.45
/** After this number of accepted requests, the plateau is half as close to the refused rate as it can be. */
const HALF_AS_CLOSE = 30
/** A pause longer than this ended because a window of the limit ended, so the mean rate of the span is the limit. */
const END_OF_WINDOW_MS = 3000
/** Fewer accepted requests do not measure a rate. */
const MIN_ACCEPTED = 8
/** Share by which a sure plateau drops at most after a refusal, and the rate for the first requests after the pause. */
const CAUTION = 0.1
/** Share by which another plateau drops at most: a pause of a second makes the mean of a short span too low. */
const MOST_DROP = 0.25
/** The rate was reached if it held requests back for at least this share of the span. */
const MIN_HELD_SHARE = 0.6
/** A comeback doubles the rate after this number of accepted requests. */
const COMEBACK_ACCEPTED = 4
/** Factor between the numbers of accepted requests before one comeback and the next, after a refusal on the way. */
const COMEBACK_PATIENCE = 4
/** Requests that were accepted in a shorter time may have been a burst. */
const SHORTEST_PROOF_MS = 60_000
/** After a longer pause, what was accepted before the first refusal was that of a window, and no rate to return to. */
const LONGEST_STORM_MS = 60_000
/** How often the search chooses a new rate. */
const SEEK_EVERY_MS = 200
/** The search ends after more refused requests than this. Several may be refused at once. */
const MAX_SEARCH_REFUSALS = 20
/** Longest delay of a request turn on a busy machine, in ms. */
const MAX_LATE_MS = 50

export interface FirstRate {
  rate: number
  /** Whether an earlier process found the limit. If so, the curve starts at once. */
  limited: boolean
  bounds: RateRange
}

const EMPTY_SPAN: RateSpan = { accepted: 0, refused: 0, activeMs: 0, heldMs: 0 }

export function startRate({ rate, limited, bounds }: FirstRate): RateState {
  const first = inBounds(bounds, rate)
  return {
    rate: first,
    bounds,
    limited,
    plateau: first,
    previousPlateau: first,
    sure: limited,
    search: limited ? undefined : NEW_SEARCH,
    soughtAt: Number.NEGATIVE_INFINITY,
    span: EMPTY_SPAN,
    since: undefined,
    acceptedAt: undefined,
    refusedAt: undefined,
    refusedSpans: [],
    stray: undefined,
    comeback: undefined,
  }
}

export interface AcceptedRequest {
  at: number
  waitedFor: 'pace' | 'concurrency' | undefined
  /** Whether the rate may grow. Has an effect only before the first refusal. */
  mayGrow: boolean
}

/** Records an accepted or refused request. */
export function withAnswerNoted(
  state: RateState,
  { sentAt, accepted }: { sentAt: number; accepted: boolean },
): RateState {
  const stray = state.stray && strayAfter(state.stray, accepted)
  const search = state.search && withAnswer(state.search, { at: sentAt, accepted })
  return { ...state, stray, search }
}

/** Whether the refusal that was just recorded has nothing to do with the rate. */
export function isStrayRefusal({ stray }: RateState): boolean {
  return stray !== undefined && stray.credit > 0
}

export function rateAfterAcceptance(
  state: RateState,
  { at, waitedFor, mayGrow }: AcceptedRequest,
): RateState {
  const { rate, acceptedAt = at } = state
  // At most two request intervals count, or `MAX_LATE_MS` if that is longer: in the rest of a longer gap there was
  // nothing to send.
  const longestMs =
    waitedFor === 'concurrency' ? Number.POSITIVE_INFINITY : Math.max(2000 / rate, MAX_LATE_MS)
  const stepMs = state.refusedAt === undefined ? Math.min(at - acceptedAt, longestMs) : 0
  const span = {
    ...state.span,
    accepted: state.span.accepted + 1,
    activeMs: state.span.activeMs + stepMs,
    heldMs: state.span.heldMs + (waitedFor === 'pace' ? stepMs : 0),
  }
  const counted = { ...state, span, since: state.since ?? at, acceptedAt: at }
  if (state.refusedAt !== undefined) return afterPause(counted, at - state.refusedAt)
  if (!state.limited)
    return mayGrow ? { ...counted, rate: inBounds(state.bounds, rate * OPENING_GROWTH) } : counted
  if (state.search)
    return at - state.soughtAt < SEEK_EVERY_MS ? counted : afterSearchStep(counted, state.search)
  return afterDoubling(counted) ?? { ...counted, rate: curve(counted) }
}

/** The state at twice the plateau, if a comeback is due. */
function afterDoubling(state: RateState): RateState | undefined {
  const { comeback, plateau, sure, span } = state
  if (comeback === undefined || span.accepted < (comeback.from ? COMEBACK_ACCEPTED : comeback.after))
    return undefined
  if (plateau >= comeback.to)
    return (
      comeback.from && {
        ...state,
        comeback: { ...comeback, from: undefined, after: COMEBACK_ACCEPTED },
        rate: curve(state),
      }
    )
  const from = { plateau, sure }
  return withPlateau(
    { ...state, sure: false, comeback: { ...comeback, from } },
    Math.min(2 * plateau, comeback.to),
  )
}

export function afterRefusal(state: RateState, at: number): RateState {
  const span = { ...state.span, refused: state.span.refused + 1 }
  if (state.refusedAt !== undefined) return { ...state, span }
  const isReached = span.accepted < MIN_ACCEPTED / 2 || span.heldMs >= MIN_HELD_SHARE * span.activeMs
  const plateau = isReached ? state.rate : Math.min(state.rate, meanRate(span, 0))
  const search = state.search && withRefusal(state.search, state.rate)
  const sought = search && nextRateStep(search)?.rate
  // The rate is lowered by `CAUTION`, so that the first requests after the pause are not refused as well.
  const rate = inBounds(state.bounds, sought ?? plateau * (1 - CAUTION))
  const provenMs = Math.max(SHORTEST_PROOF_MS, at - (state.since ?? at))
  const comeback = state.limited
    ? state.comeback
    : { to: (1000 * span.accepted) / provenMs, from: undefined, after: COMEBACK_ACCEPTED }
  return { ...state, rate, limited: true, plateau, search, span, refusedAt: at, comeback }
}

function afterSearchStep(state: RateState, before: RateSearch): RateState {
  const ended = { ...state, search: undefined, sure: false }
  const step = nextRateStep(before)
  if (!step) return withPlateau(ended, hasRefusal(before) ? state.plateau : state.rate)
  if (step.isFound) return withPlateau({ ...ended, sure: true }, step.rate)
  // The search ends after some time, since answers without a refusal may never tell the limit from a lower rate. It
  // also ends after many refusals, which do not tell either.
  const { heldMs, refused } = state.span
  if (heldMs > comeBackMs(step.rate, SURE) || refused > MAX_SEARCH_REFUSALS)
    return withPlateau(ended, step.rate)
  return {
    ...state,
    rate: inBounds(state.bounds, step.rate),
    search: step.search,
    soughtAt: state.acceptedAt ?? 0,
  }
}

/** Accepted requests per second. */
function meanRate({ accepted, activeMs }: RateSpan, pausedMs: number): number {
  return (1000 * accepted) / Math.max(activeMs + pausedMs, MAX_LATE_MS)
}

/** The state after the first accepted request that follows a refusal. A search goes on, unless a window has ended. */
function afterPause(before: RateState, pausedMs: number): RateState {
  const state = pausedMs > LONGEST_STORM_MS ? { ...before, comeback: undefined } : before
  const { span, plateau: refusedRate, previousPlateau, search } = state
  if (search && pausedMs <= END_OF_WINDOW_MS) {
    const longer = { ...span, activeMs: span.activeMs + pausedMs, heldMs: 0 }
    return afterSearchStep({ ...state, span: longer, refusedAt: undefined }, search)
  }
  const { comeback } = state
  if (comeback?.from)
    return withPlateau(
      {
        ...state,
        sure: comeback.from.sure,
        comeback: { to: comeback.to, from: undefined, after: comeback.after * COMEBACK_PATIENCE },
      },
      comeback.from.plateau,
    )
  const mean = meanRate(span, pausedMs)
  const refusedSpans = refusedSpansAfter(state, { mean, pausedMs })
  const best = spanToReturnTo(refusedSpans)
  if (best) return withPlateau({ ...state, refusedSpans: [], stray: startStray(refusedSpans) }, best.rate)
  const isShort = span.accepted < MIN_ACCEPTED
  const closeness = (CLOSEST * span.accepted) / (span.accepted + HALF_AS_CLOSE)
  const between = pausedMs > END_OF_WINDOW_MS ? mean : mean ** (1 - closeness) * refusedRate ** closeness
  // The API accepted a sure plateau before, or some of the refusals were stray, so the plateau drops little.
  const least = state.sure || state.stray ? 1 - CAUTION : pausedMs > END_OF_WINDOW_MS ? 0 : 1 - MOST_DROP
  const plateau = Math.min(refusedRate, Math.max(least * refusedRate, between))
  const sure = !isShort && Math.abs(plateau - previousPlateau) < AGREEMENT * previousPlateau
  const next = withPlateau({ ...state, sure, search: undefined, refusedSpans }, plateau)
  return isShort ? { ...next, span: { ...span, activeMs: span.activeMs + pausedMs, heldMs: 0 } } : next
}

function withPlateau(state: RateState, plateau: number): RateState {
  const again = { ...state, plateau, previousPlateau: plateau, span: EMPTY_SPAN, refusedAt: undefined }
  return { ...again, rate: curve(again) }
}

/** The refused spans with the one that has ended, unless it is too short to measure a rate. */
function refusedSpansAfter(
  { refusedSpans, plateau: rate, span: { accepted, refused } }: RateState,
  { mean, pausedMs }: { mean: number; pausedMs: number },
): readonly RefusedSpan[] {
  // The spans are forgotten when a window of the limit has ended, or when so much was accepted that the rate is lowered
  // rarely.
  if (pausedMs > END_OF_WINDOW_MS || accepted >= SURE.requests * refused) return []
  return accepted < MIN_ACCEPTED ? refusedSpans : withSpan(refusedSpans, { rate, mean, accepted, refused })
}

/** The rate at the position on the curve. */
function curve({ plateau, sure, bounds, span: { heldMs } }: RateState): number {
  const shape = sure ? SURE : UNSURE
  const backMs = comeBackMs(plateau, shape)
  const beyond = heldMs - backMs
  return inBounds(bounds, plateau * (1 + DROP * (beyond / (beyond < 0 ? backMs : shape.beyondMs)) ** 3))
}

function comeBackMs(plateau: number, { backMs, requests }: typeof SURE): number {
  return Math.min(Math.max(backMs, (1000 * requests) / plateau), MAX_BACK_MS)
}

function inBounds({ least, most }: RateRange, rate: number): number {
  return Math.min(most, Math.max(least, rate))
}
