import type { RateRange } from './limit-fit.ts'
import { meanRate, NEW_SEARCH, nextStep, type Search, withAnswer, withRefusal } from './search.ts'

/**
 * Finds the rate that an API allows, whatever its rule: a bucket of tokens, so many in a fixed or a sliding window.
 * An unknown limit is searched for. From then on the rate
 * follows a cubic curve, as TCP's congestion control does (RFC 9438): after a refusal it drops a little, comes
 * back quickly to where it was refused, stays near it for long, and only then tries more and more. What was accepted
 * between two refusals bounds where that is. Pure; times are monotonic milliseconds.
 */

export interface RateState {
  /** Requests a second that may go now. */
  readonly rate: number
  readonly bounds: RateRange
  /** Whether the API ever refused because of its rate: until then the rate only grows. */
  readonly limited: boolean
  /** The rate at which the API refused last: the curve is flat there. */
  readonly plateau: number
  /** Whether it refused at about the same rate the time before; else the curve is run through sooner. */
  readonly sure: boolean
  /** How long the rate has held requests back since then, which is how far along the curve it is. */
  readonly heldMs: number
  /** The plateau before the present one. */
  readonly refusedBefore: number
  readonly pacedAt: number | undefined
  /** From a refusal until the next request is accepted: since when. */
  readonly refusedAt: number | undefined
  /** How many spans in a row were too short to tell much. */
  readonly shorts: number
  /** Whether the plateau is little more than a guess. */
  readonly isGuess: boolean
  /** Whether the time before it was refused again long before it was back. */
  readonly wasEarly: boolean
  /** Until the limit is found. */
  readonly search: Search | undefined
  /** When the rate to be tried was chosen. */
  readonly soughtAt: number
  /** Whether another request was refused in the present pause. */
  readonly isTriedInVain: boolean
  /** What was accepted since the API let a request through again after the refusal before the last. */
  readonly span: Span
  readonly flow: Flow
}

interface Span {
  /** Undefined before the first refusal: whatever burst the API allows is not yet used up. */
  readonly since: number | undefined
  readonly accepted: number
  /** How long the rate held requests back in it: only where it did is the limit used up. */
  readonly heldMs: number
}

/** Growth with each accepted answer until the first refusal: from 10/s to unpaced in little more than a second. */
const OPENING_GROWTH = 1.1
/** By what share the rate drops after a refusal. */
const DROP = 0.02
/**
 * How long it takes to be back, in ms and at least in requests, since each refusal is one of them; and how long from
 * there to be as far beyond.
 */
const SURE = { backMs: 60_000, requests: 300, beyondMs: 15_000 }
const UNSURE = { backMs: 5_000, requests: 40, beyondMs: 10_000 }
const GUESSED = { ...UNSURE, beyondMs: 5_000 }
const LONGEST_BACK_MS = 150_000
/** Refused again before such a share of the way back, the plateau is too high. */
const EARLY = 0.3
/** Two refusals at rates that differ by less are of the same limit. */
const AGREEMENT = 0.06
/** A longer pause is the end of a window and part of it; a short one may save nothing up. Also as a share of all. */
const LONGEST_GAP_MS = 1500
const MOST_GAP = 0.1
/** After so long a pause it was a window that ended, and what it let through is known. */
const END_OF_WINDOW_MS = 3000
/** Refused at so much more than the mean, the limit has grown meanwhile. */
const GROWN = 1.5
/** How far from the mean to the rate at which it was refused the limit lies, where nothing is saved up. */
const BETWEEN = 0.4
/** So many short spans in a row. */
const BELIEVED_AFTER = 2
/** Fewer accepted answers tell no rate, and the drop is this. */
const TELLING = 8
const CAUTION = 0.1
/** Refused again so soon, it was the rate. */
const SHORTEST_TELLING_MS = 2000
/** By so much the turns of requests may be late on a busy machine. */
const LONGEST_LATE_MS = 50
/** Where the rate held requests back for a smaller share of the time, the limit was not used up. */
const MOSTLY = 0.6
/** While the limit is searched for, what to try next is chosen so often. */
const SEEK_EVERY_MS = 200
/** A wait is rounded up to whole seconds, by half a second in the mean; a little less is safe. */
const LATE_MS = 400

export interface FirstRate {
  rate: number
  /** Whether an earlier process was refused. */
  limited: boolean
  bounds: RateRange
}

export function startRate({ rate, limited, bounds }: FirstRate): RateState {
  const first = within(bounds, rate)
  return {
    rate: first,
    bounds,
    limited,
    plateau: first,
    // What an earlier process learned may have changed since.
    sure: false,
    refusedBefore: first,
    heldMs: 0,
    pacedAt: undefined,
    refusedAt: undefined,
    shorts: 0,
    isGuess: false,
    wasEarly: false,
    search: limited ? undefined : NEW_SEARCH,
    soughtAt: Number.NEGATIVE_INFINITY,
    isTriedInVain: false,
    span: { since: undefined, accepted: 0, heldMs: 0 },
    flow: { level: 0, at: 0, since: undefined },
  }
}

export interface Accepted {
  at: number
  /** The request had waited for its turn, so that the rate is what held it back. */
  paced: boolean
  /** Whether the rate may grow by it before the first refusal. */
  mayGrow: boolean
}

/** Any answer, also one that the rate is not learned from. `sentAt`: when its request was sent. */
export function noteAnswer(
  state: RateState,
  { sentAt, accepted }: { sentAt: number; accepted: boolean },
): RateState {
  return state.search ? { ...state, search: withAnswer(state.search, { at: sentAt, accepted }) } : state
}

/** A request was accepted. */
export function accept(state: RateState, { at, paced, mayGrow }: Accepted): RateState {
  const { span, rate, pacedAt = at } = state
  // Two turns apart there was something else to wait for.
  const stepMs = paced ? Math.min(at - pacedAt, Math.max(2000 / rate, LONGEST_LATE_MS)) : 0
  const counted: RateState = {
    ...state,
    flow: addToFlow(state.flow, at),
    span: { ...span, accepted: span.accepted + 1, heldMs: span.heldMs + stepMs },
    heldMs: state.heldMs + stepMs,
    pacedAt: paced ? at : state.pacedAt,
  }
  if (state.refusedAt !== undefined) return letThrough(counted, at, state.refusedAt)
  if (!state.limited)
    return mayGrow ? { ...counted, rate: within(state.bounds, rate * OPENING_GROWTH) } : counted
  if (state.search) return at - state.soughtAt < SEEK_EVERY_MS ? counted : sought(counted, at)
  return { ...counted, rate: curve(state, counted.heldMs) }
}

/** The API has refused a request because of its rate. */
export function refuse(state: RateState, at: number): RateState {
  if (state.refusedAt !== undefined) return { ...state, isTriedInVain: true }
  if (state.search) return refuseSought(state, state.search, at)
  const plateau = wasUsedUp(state, at) ? state.rate : Math.min(state.rate, flowRate(state, at))
  // What goes until it is known better must not be refused as well.
  return {
    ...state,
    rate: within(state.bounds, plateau * (1 - CAUTION)),
    limited: true,
    plateau,
    refusedAt: at,
  }
}

/** Not all answers are there yet, so the search goes on from where it was when the next request is accepted. */
function refuseSought(state: RateState, before: Search, at: number): RateState {
  const search = withRefusal(before, state.rate)
  const plateau = Math.min(state.rate, flowRate(state, at))
  const rate = within(state.bounds, nextStep(search)?.rate ?? plateau * (1 - CAUTION))
  return { ...state, rate, plateau, limited: true, refusedAt: at, isTriedInVain: false, search }
}

function sought(state: RateState, at: number): RateState {
  const step = state.search && nextStep(state.search)
  if (!step) return settled(state, { at, plateau: state.plateau, sure: false })
  if (step.isFound) return settled(state, { at, plateau: step.rate, sure: true })
  return { ...state, rate: within(state.bounds, step.rate), search: step.search, soughtAt: at }
}

/** The search is over. */
function settled(
  state: RateState,
  { at, plateau, sure }: { at: number; plateau: number; sure: boolean },
): RateState {
  const found: RateState = {
    ...state,
    plateau,
    sure,
    refusedBefore: plateau,
    heldMs: 0,
    search: undefined,
    span: { since: at, accepted: 0, heldMs: 0 },
  }
  return { ...found, rate: curve(found, 0) }
}

/** Whether the rate was what held requests back, up to a refusal. */
function wasUsedUp({ span: { since, heldMs } }: RateState, refusedAt: number): boolean {
  if (since === undefined) return false
  const spanMs = refusedAt - since
  return spanMs < SHORTEST_TELLING_MS || heldMs >= MOSTLY * spanMs
}

/** The first request that is accepted after a refusal: what came in since the last such moment bounds the rate. */
function letThrough(state: RateState, at: number, refusedAt: number): RateState {
  const { span, refusedBefore, search } = state
  const pausedMs = at - refusedAt
  if (search) {
    const through = { ...state, refusedAt: undefined, heldMs: 0, pacedAt: at }
    if (pausedMs <= END_OF_WINDOW_MS) return sought(through, at)
    return settled(through, { at, plateau: meanRate(search, LATE_MS), sure: !state.isTriedInVain })
  }
  const isShort = isShortSpan(span, at, pausedMs)
  const plateau = Math.min(state.plateau, bound(state, { at, pausedMs, isShort }))
  const isConfirmed = span.since !== undefined && Math.abs(plateau - refusedBefore) <= AGREEMENT * plateau
  const again: RateState = {
    ...state,
    plateau,
    sure: isConfirmed,
    refusedBefore: plateau,
    heldMs: 0,
    pacedAt: at,
    refusedAt: undefined,
    shorts: isShort ? state.shorts + 1 : 0,
    isGuess: isShort,
    wasEarly: isEarly(state),
  }
  const tells = span.accepted >= TELLING || span.since === undefined
  return {
    ...again,
    rate: curve(again, 0),
    span: tells ? { since: at, accepted: 0, heldMs: 0 } : { ...span, heldMs: span.heldMs + pausedMs },
  }
}

interface Pause {
  at: number
  pausedMs: number
  isShort: boolean
}

/** What was let through in the time that was not spent in a pause. */
function bound(state: RateState, { at, pausedMs, isShort }: Pause): number {
  const { span, plateau, shorts } = state
  const { since, accepted } = span
  if (since === undefined) return plateau
  const cautious = plateau * (1 - CAUTION)
  if (accepted < TELLING || !wasUsedUp(state, at - pausedMs)) return cautious
  const spanMs = at - since
  // Refused early again and again, more was expected than there is: the pauses have been made up for.
  const isMadeUpFor = state.wasEarly && isEarly(state)
  const gapMs = isMadeUpFor ? 0 : Math.min(pausedMs, LONGEST_GAP_MS, spanMs * MOST_GAP)
  const mean = (1000 * accepted) / (spanMs - gapMs)
  // Much of a short span are pauses, which may have cost more than they saved up; but not again and again.
  if (isShort && shorts < BELIEVED_AFTER) return Math.max(mean, cautious)
  if (state.heldMs <= comeBackMs(state) || pausedMs > END_OF_WINDOW_MS) return mean
  return boundBeyond(state, mean)
}

/** Refused only beyond the plateau: the limit may be a little higher than that, or have grown a lot meanwhile. */
function boundBeyond({ plateau, refusedBefore, isGuess }: RateState, mean: number): number {
  // A guess is left so fast that how far it came says little, and the mean says whether it was right.
  if (isGuess && Math.abs(mean - refusedBefore) <= CAUTION * mean) return mean * (1 + DROP)
  if (plateau > mean * GROWN) return plateau
  // More than was thought possible came through: what an API saves up has been used, and the mean is the limit.
  if (mean > refusedBefore) return mean * (1 + DROP)
  return mean + BETWEEN * (plateau - mean)
}

function isEarly(state: RateState): boolean {
  return state.sure && state.heldMs < EARLY * comeBackMs(state)
}

function isShortSpan({ since }: Span, at: number, pausedMs: number): boolean {
  if (since === undefined || pausedMs > END_OF_WINDOW_MS) return false
  return Math.min(pausedMs, LONGEST_GAP_MS) > (at - since) * MOST_GAP
}

type Curve = Pick<RateState, 'plateau' | 'sure' | 'isGuess' | 'bounds'>

/** The rate after it has held requests back for so long. */
function curve(shape: Curve, heldMs: number): number {
  const { beyondMs } = pathOf(shape)
  const back = heldMs - comeBackMs(shape)
  return within(
    shape.bounds,
    shape.plateau * (1 + DROP * (back / (back < 0 ? comeBackMs(shape) : beyondMs)) ** 3),
  )
}

function within({ least, most }: RateRange, rate: number): number {
  return Math.min(most, Math.max(least, rate))
}

function comeBackMs(shape: Curve): number {
  const { backMs, requests } = pathOf(shape)
  return Math.min(Math.max(backMs, (1000 * requests) / shape.plateau), LONGEST_BACK_MS)
}

function pathOf({ sure, isGuess }: Curve) {
  if (sure) return SURE
  return isGuess ? GUESSED : UNSURE
}

/** Accepted answers, each fading with time: about those of the last seconds. */
interface Flow {
  readonly level: number
  readonly at: number
  readonly since: number | undefined
}

const FADING_MS = 5000
const SHORTEST_SPAN_MS = 50

function addToFlow(flow: Flow, at: number): Flow {
  return { level: faded(flow, at) + 1, at, since: flow.since ?? at }
}

/** The rate really achieved lately, or the one allowed when too few answers came to tell. */
function flowRate({ flow, rate }: RateState, at: number): number {
  const level = faded(flow, at)
  if (level < TELLING / 2) return rate
  const span = Math.max(SHORTEST_SPAN_MS, at - (flow.since ?? at))
  // At a steady rate the level tends to rate times FADING_MS; a young flow has had less time to get there.
  return (level * 1000) / (FADING_MS * (1 - Math.exp(-span / FADING_MS)))
}

function faded(flow: Flow, at: number): number {
  return flow.level * Math.exp(-Math.max(0, at - flow.at) / FADING_MS)
}
