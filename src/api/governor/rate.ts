import type { RateRange } from './limit-fit.ts'
import {
  hasRefusal,
  meanRate,
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
 *   TCP CUBIC (RFC 9438). After a refusal the rate drops a little, returns quickly to the plateau, stays near it for a
 *   long time, and then grows faster and faster. The requests accepted between two refusals cap the plateau.
 * - If lower rates are refused as often, the refusals have nothing to do with the rate (`stray-refusals.ts`).
 */

export interface RateState {
  /** The current rate in requests per second. */
  readonly rate: number
  readonly bounds: RateRange
  /** Whether the API ever refused because of the rate. Until then the rate only grows. */
  readonly limited: boolean
  /** The estimated limit, at which the curve is flat. It comes from the last refusal or from the search. */
  readonly plateau: number
  /** Whether the search found the plateau, or two refusals in a row agree on it. If not, the curve rises faster. */
  readonly sure: boolean
  /** Position on the curve: how long the rate has held requests back since the last refusal. */
  readonly heldMs: number
  /** What the plateau was when the last pause or search ended. */
  readonly previousPlateau: number
  /** When a request that the rate had held back was last accepted. */
  readonly pacedAt: number | undefined
  /** When the current pause started; undefined once a request is accepted again. */
  readonly refusedAt: number | undefined
  /** Number of spans in a row that were too short to measure a rate. */
  readonly shorts: number
  /** Whether the plateau comes from a span that was too short. */
  readonly isGuess: boolean
  /** Whether the last completed pause started long before the rate was back at the plateau. */
  readonly wasEarly: boolean
  /** The search for the limit; undefined once it has ended. */
  readonly search: RateSearch | undefined
  /** When the search chose the current rate. */
  readonly soughtAt: number
  /** Whether another request was refused after the current pause started. */
  readonly isTriedInVain: boolean
  /** The accepted requests since the last pause ended. A span with too few of them also covers the next pause. */
  readonly span: RateSpan
  readonly flow: Flow
  /** The latest spans, which show whether a lower rate has fewer refusals. */
  readonly refusedSpans: readonly RefusedSpan[]
  /** Set as long as there are refusals that have nothing to do with the rate. */
  readonly stray: StrayRefusals | undefined
}

interface RateSpan {
  /** Start of the span. Undefined before the first refusal and during the search: the API may still allow a burst. */
  readonly since: number | undefined
  readonly accepted: number
  /** Refused requests, those of the pauses included. */
  readonly refused: number
  /** How long the rate held requests back during the span. At other times the limit was not used up. */
  readonly heldMs: number
}

/** Growth per accepted answer until the first refusal: from 10/s to unpaced in little more than a second. */
const OPENING_GROWTH = 1.1
/** Share by which the rate drops after a refusal. */
const DROP = 0.02
/**
 * Shape of the curve. After a refusal, the rate is back at the plateau after `backMs`, or after the time of `requests`
 * requests if that is longer: at a low rate, refusals would otherwise be a large share of all requests. `beyondMs`: the
 * time from the plateau until the rate is above it by the share `DROP`.
 */
const SURE = { backMs: 60_000, requests: 300, beyondMs: 15_000 }
const UNSURE = { backMs: 5_000, requests: 40, beyondMs: 10_000 }
const GUESSED = { ...UNSURE, beyondMs: 5_000 }
const MAX_BACK_MS = 150_000
/** A refusal before this share of the return time means that the plateau is too high. */
const EARLY = 0.3
/** Two refusals at rates that differ by less than this share count as one limit. */
const AGREEMENT = 0.06
/** Maximum part of a pause that is subtracted from the span, in ms and as a share of the span. */
const MAX_GAP_MS = 1500
const MAX_GAP_SHARE = 0.1
/** A pause longer than this ended because a window of the limit ended, so the mean rate of the span is the limit. */
const END_OF_WINDOW_MS = 3000
/** A plateau above the span's mean rate by this factor means that the limit has grown. */
const GROWN = 1.5
/** Position of the limit between the mean and the plateau, for an API without a burst allowance. */
const BETWEEN = 0.4
/** After this number of short spans in a row, the mean rate of a short span counts. */
const MAX_SHORT_SPANS = 2
/** Fewer accepted answers do not measure a rate. The plateau then drops by `CAUTION`. */
const MIN_ANSWERS = 8
const CAUTION = 0.1
/** In a shorter span, the limit always counts as used up. */
const MIN_SPAN_MS = 2000
/** Longest delay of a request turn on a busy machine, in ms. */
const MAX_LATE_MS = 50
/** The limit was used up when the rate held requests back for at least this share of the span. */
const MIN_HELD_SHARE = 0.6
/** How often the search chooses a new rate. */
const SEEK_EVERY_MS = 200
/** The search ends after more refused requests than this. Several may be refused at once. */
const MAX_SEARCH_REFUSALS = 20
/** The API rounds a wait up to whole seconds, which adds half a second on average. A little less is assumed. */
const LATE_MS = 400

export interface FirstRate {
  rate: number
  /** Whether an earlier process found the limit. If so, the curve starts at once. */
  limited: boolean
  bounds: RateRange
}

export function startRate({ rate, limited, bounds }: FirstRate): RateState {
  const first = inBounds(bounds, rate)
  return {
    rate: first,
    bounds,
    limited,
    plateau: first,
    // The limit may have changed since an earlier process learned it.
    sure: false,
    previousPlateau: first,
    heldMs: 0,
    pacedAt: undefined,
    refusedAt: undefined,
    shorts: 0,
    isGuess: false,
    wasEarly: false,
    search: limited ? undefined : NEW_SEARCH,
    soughtAt: Number.NEGATIVE_INFINITY,
    isTriedInVain: false,
    span: emptySpan(undefined),
    flow: { level: 0, at: 0, since: undefined },
    refusedSpans: [],
    stray: undefined,
  }
}

export interface AcceptedRequest {
  at: number
  /** Whether the rate had held the request back. */
  paced: boolean
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

export function rateAfterAcceptance(state: RateState, { at, paced, mayGrow }: AcceptedRequest): RateState {
  const { span, rate, pacedAt = at } = state
  // At most two request intervals count as held back by the rate, or `MAX_LATE_MS` if that is longer. In the rest of a
  // longer gap, something else held requests back.
  const stepMs = paced ? Math.min(at - pacedAt, Math.max(2000 / rate, MAX_LATE_MS)) : 0
  const counted: RateState = {
    ...state,
    flow: flowAfter(state.flow, at),
    span: { ...span, accepted: span.accepted + 1, heldMs: span.heldMs + stepMs },
    heldMs: state.heldMs + stepMs,
    pacedAt: paced ? at : state.pacedAt,
  }
  if (state.refusedAt !== undefined) return afterPause(counted, at, state.refusedAt)
  if (!state.limited)
    return mayGrow ? { ...counted, rate: inBounds(state.bounds, rate * OPENING_GROWTH) } : counted
  if (state.search) return at - state.soughtAt < SEEK_EVERY_MS ? counted : afterSearchStep(counted, at)
  return { ...counted, rate: curve(state, counted.heldMs) }
}

export function afterRefusal(state: RateState, at: number): RateState {
  const span = { ...state.span, refused: state.span.refused + 1 }
  if (state.refusedAt !== undefined) return { ...state, span, isTriedInVain: true }
  if (state.search) return afterSearchRefusal(state, state.search, at)
  const plateau = wasUsedUp(state, at) ? state.rate : Math.min(state.rate, flowRate(state, at))
  // The rate is lowered by `CAUTION`, so that the first requests after the pause are not refused as well.
  return {
    ...state,
    rate: inBounds(state.bounds, plateau * (1 - CAUTION)),
    limited: true,
    plateau,
    span,
    refusedAt: at,
  }
}

/** Some answers are still outstanding, so the search continues when the next request is accepted. */
function afterSearchRefusal(state: RateState, before: RateSearch, at: number): RateState {
  const search = withRefusal(before, state.rate)
  const plateau = Math.min(state.rate, flowRate(state, at))
  const rate = inBounds(state.bounds, nextRateStep(search)?.rate ?? plateau * (1 - CAUTION))
  return { ...state, rate, plateau, limited: true, refusedAt: at, isTriedInVain: false, search }
}

function afterSearchStep(state: RateState, at: number): RateState {
  const step = state.search && nextRateStep(state.search)
  if (!step) return withPlateau(state, { at, plateau: rateWithoutResult(state), sure: false })
  if (step.isFound) return withPlateau(state, { at, plateau: step.rate, sure: true })
  // The search ends after some time, since answers without a refusal may never tell the limit from a lower rate. It
  // also ends after many refusals, which do not tell either.
  const { refused } = step.search.totals
  const isLong = state.heldMs > comeBackMs({ ...state, plateau: step.rate, sure: true })
  if (isLong || refused > MAX_SEARCH_REFUSALS)
    return withPlateau({ ...state, isGuess: true }, { at, plateau: step.rate, sure: false })
  return { ...state, rate: inBounds(state.bounds, step.rate), search: step.search, soughtAt: at }
}

/** The plateau after a search without a result: the current rate if no refusal is remembered, else the old plateau. */
function rateWithoutResult({ search, rate, plateau }: RateState): number {
  return search && !hasRefusal(search) ? rate : plateau
}

function withPlateau(
  state: RateState,
  { at, plateau, sure }: { at: number; plateau: number; sure: boolean },
): RateState {
  const found: RateState = {
    ...state,
    plateau,
    sure,
    previousPlateau: plateau,
    heldMs: 0,
    search: undefined,
    span: emptySpan(at),
  }
  return { ...found, rate: curve(found, 0) }
}

const emptySpan = (since: number | undefined): RateSpan => ({ since, accepted: 0, refused: 0, heldMs: 0 })

/** Whether the rate held requests back for most of the span before a refusal, so that the limit was used up. */
function wasUsedUp({ span: { since, heldMs } }: RateState, refusedAt: number): boolean {
  if (since === undefined) return false
  const spanMs = refusedAt - since
  return spanMs < MIN_SPAN_MS || heldMs >= MIN_HELD_SHARE * spanMs
}

/** The state after the first accepted request that follows a refusal. The span gives an upper bound of the plateau. */
function afterPause(state: RateState, at: number, refusedAt: number): RateState {
  const { span, previousPlateau, search } = state
  const pausedMs = at - refusedAt
  if (search) {
    const through = { ...state, refusedAt: undefined, heldMs: 0, pacedAt: at }
    if (pausedMs <= END_OF_WINDOW_MS) return afterSearchStep(through, at)
    return withPlateau(through, { at, plateau: meanRate(search, LATE_MS), sure: !state.isTriedInVain })
  }
  const refusedSpans = refusedSpansAfter(state, { at, pausedMs })
  const best = spanToReturnTo(refusedSpans)
  if (best !== undefined) {
    const back = {
      ...state,
      refusedSpans: [],
      stray: startStray(refusedSpans),
      refusedAt: undefined,
      pacedAt: at,
    }
    return withPlateau({ ...back, isGuess: true }, { at, plateau: best.rate, sure: false })
  }
  const isShort = isShortSpan(span, at, pausedMs)
  // Some of the refusals that used up the credit were stray, so the plateau drops by at most `CAUTION`.
  const least = state.stray ? state.plateau * (1 - CAUTION) : 0
  const plateau = Math.min(state.plateau, Math.max(least, bound(state, { at, pausedMs, isShort })))
  const isConfirmed = span.since !== undefined && Math.abs(plateau - previousPlateau) <= AGREEMENT * plateau
  const again: RateState = {
    ...state,
    plateau,
    sure: isConfirmed,
    previousPlateau: plateau,
    heldMs: 0,
    pacedAt: at,
    refusedAt: undefined,
    shorts: isShort ? state.shorts + 1 : 0,
    isGuess: isShort,
    wasEarly: isEarly(state),
    refusedSpans,
  }
  const isConclusive = span.accepted >= MIN_ANSWERS || span.since === undefined
  return {
    ...again,
    rate: curve(again, 0),
    span: isConclusive ? emptySpan(at) : { ...span, heldMs: span.heldMs + pausedMs },
  }
}

/** The refused spans with the one that has ended, unless it is too short to measure a rate. */
function refusedSpansAfter(
  { refusedSpans, plateau: rate, span: { since, accepted, refused } }: RateState,
  { at, pausedMs }: Pick<Pause, 'at' | 'pausedMs'>,
): readonly RefusedSpan[] {
  // The spans are forgotten when a window of the limit has ended, or when so much was accepted that the rate is lowered
  // rarely.
  if (since === undefined || pausedMs > END_OF_WINDOW_MS || accepted >= SURE.requests * refused) return []
  if (accepted < MIN_ANSWERS) return refusedSpans
  return withSpan(refusedSpans, { rate, mean: (1000 * accepted) / (at - since), accepted, refused })
}

interface Pause {
  at: number
  pausedMs: number
  isShort: boolean
}

/** The highest plateau that the span allows. */
function bound(state: RateState, { at, pausedMs, isShort }: Pause): number {
  const { span, plateau, shorts } = state
  const { since, accepted } = span
  if (since === undefined) return plateau
  const cautious = plateau * (1 - CAUTION)
  if (accepted < MIN_ANSWERS || !wasUsedUp(state, at - pausedMs)) return cautious
  const spanMs = at - since
  // After repeated early refusals the plateau is too high. The whole pause then counts as part of the span, for a lower
  // mean.
  const isMadeUpFor = state.wasEarly && isEarly(state)
  const gapMs = isMadeUpFor ? 0 : Math.min(pausedMs, MAX_GAP_MS, spanMs * MAX_GAP_SHARE)
  const mean = (1000 * accepted) / (spanMs - gapMs)
  // The pause is a large part of a short span, so the mean is too low. It counts only after several short spans in a
  // row.
  if (isShort && shorts < MAX_SHORT_SPANS) return Math.max(mean, cautious)
  const isBack = state.heldMs > comeBackMs(state)
  // The API accepted a sure plateau before, so it was away during the long pause, and the plateau drops by at most
  // `CAUTION`. The plateau is not sure any more.
  if (pausedMs > END_OF_WINDOW_MS && state.sure && !isBack) return Math.max(mean, cautious)
  if (!isBack || pausedMs > END_OF_WINDOW_MS) return mean
  return boundBeyond(state, mean)
}

/** `bound` for a refusal above the old plateau: the limit may be a little higher, or may have grown a lot. */
function boundBeyond({ plateau, previousPlateau, isGuess }: RateState, mean: number): number {
  // The curve leaves a guessed plateau fast, so the refused rate says little. The mean shows if the guess was right.
  if (isGuess && Math.abs(mean - previousPlateau) <= CAUTION * mean) return mean * (1 + DROP)
  if (plateau > mean * GROWN) return plateau
  // More was accepted than expected: the burst allowance of the API is used up, and the mean is the limit.
  if (mean > previousPlateau) return mean * (1 + DROP)
  return mean + BETWEEN * (plateau - mean)
}

function isEarly(state: RateState): boolean {
  return state.sure && state.heldMs < EARLY * comeBackMs(state)
}

function isShortSpan({ since }: RateSpan, at: number, pausedMs: number): boolean {
  if (since === undefined || pausedMs > END_OF_WINDOW_MS) return false
  return Math.min(pausedMs, MAX_GAP_MS) > (at - since) * MAX_GAP_SHARE
}

type Curve = Pick<RateState, 'plateau' | 'sure' | 'isGuess' | 'bounds'>

/** The rate at a position on the curve. */
function curve(shape: Curve, heldMs: number): number {
  const { beyondMs } = curveShape(shape)
  const back = heldMs - comeBackMs(shape)
  return inBounds(
    shape.bounds,
    shape.plateau * (1 + DROP * (back / (back < 0 ? comeBackMs(shape) : beyondMs)) ** 3),
  )
}

function inBounds({ least, most }: RateRange, rate: number): number {
  return Math.min(most, Math.max(least, rate))
}

function comeBackMs(shape: Curve): number {
  const { backMs, requests } = curveShape(shape)
  return Math.min(Math.max(backMs, (1000 * requests) / shape.plateau), MAX_BACK_MS)
}

function curveShape({ sure, isGuess }: Curve) {
  if (sure) return SURE
  return isGuess ? GUESSED : UNSURE
}

/** A count of accepted answers that decays exponentially, for the rate of the last seconds. */
interface Flow {
  readonly level: number
  readonly at: number
  readonly since: number | undefined
}

const FADING_MS = 5000
const SHORTEST_SPAN_MS = 50

function flowAfter(flow: Flow, at: number): Flow {
  return { level: fadedLevel(flow, at) + 1, at, since: flow.since ?? at }
}

/** The rate of accepted requests in the last seconds, or the current rate if there were too few. */
function flowRate({ flow, rate }: RateState, at: number): number {
  const level = fadedLevel(flow, at)
  if (level < MIN_ANSWERS / 2) return rate
  const span = Math.max(SHORTEST_SPAN_MS, at - (flow.since ?? at))
  // At a steady rate the level approaches rate × FADING_MS / 1000. A young flow is below it, so the divisor is smaller.
  return (level * 1000) / (FADING_MS * (1 - Math.exp(-span / FADING_MS)))
}

function fadedLevel(flow: Flow, at: number): number {
  return flow.level * Math.exp(-Math.max(0, at - flow.at) / FADING_MS)
}
