import type { LimitRule } from '../../src/simulator/faults/limits.ts'

/** Computes how well a rate limit was used, from the simulator's record. Pure. Times are ms of the simulator's clock. */

/** Requests by their time of arrival. The first bin begins at 0, and so do fixed windows. */
export interface RequestRecord {
  binMs: number
  bins: readonly Bin[]
  /** When the limit was changed. */
  changes: readonly number[]
  endedMs: number
}

/** `heldMs`: the total time from arrival to answer of the accepted requests. */
export type Bin = readonly [accepted: number, refused: number, heldMs: number]

export type KnownLimit = Exclude<LimitRule, { kind: 'none' }>

export interface Span {
  from: number
  to: number
}

export interface Tally {
  accepted: number
  refused: number
  heldMs: number
}

export interface SteadyFigures {
  /** The measured span, after convergence. */
  span: Span
  accepted: number
  /** The requests that the limit allows, see `allowedIn`. */
  allowed: number
  utilisation: number
  /** Share of all requests. */
  refusedShare: number
  /** Mean time from the arrival of an accepted request to its answer. */
  heldMs: number
}

const WARM_UP_MS = 30_000
const WARM_UP_WINDOWS = 2
/** Window of the running mean for limits without a window. */
const RUNNING_MS = 10_000

/** Undefined when no request came. */
export function firstRequestAt({ bins, binMs }: RequestRecord): number | undefined {
  const first = bins.findIndex(([accepted, refused]) => accepted + refused > 0)
  return first < 0 ? undefined : first * binMs
}

/** The requests in whole bins from `from` up to, not including, `to`. */
export function tallyOf({ bins, binMs }: RequestRecord, { from, to }: Span): Tally {
  return bins.slice(Math.round(from / binMs), Math.round(to / binMs)).reduce<Tally>(
    (sum, [accepted, refused, heldMs]) => ({
      accepted: sum.accepted + accepted,
      refused: sum.refused + refused,
      heldMs: sum.heldMs + heldMs,
    }),
    { accepted: 0, refused: 0, heldMs: 0 },
  )
}

/**
 * The span to measure, without the time until convergence: 30 s from the first request, or two windows if that is
 * longer. Fixed windows are measured from the start of one to the end of another, sliding windows over a multiple of
 * their length. Otherwise the cut would change the figure of a program that sends a burst and then waits. Undefined
 * when nothing is left.
 */
export function measuredSpan(rule: KnownLimit, record: RequestRecord): Span | undefined {
  const first = firstRequestAt(record)
  if (first === undefined) return undefined
  const windowMs = windowOf(rule)
  const converged = first + Math.max(WARM_UP_MS, WARM_UP_WINDOWS * (windowMs ?? 0))
  const ended = floorTo(record.endedMs, record.binMs)
  const from = rule.kind === 'fixed-window' ? Math.ceil(converged / rule.windowMs) * rule.windowMs : converged
  const to = windowMs === undefined ? ended : from + floorTo(ended - from, windowMs)
  return to > from ? { from, to } : undefined
}

/**
 * The number of requests that a limit allows during a span from `measuredSpan`.
 * - Token bucket: rate x time. Tokens that were left at the start belong to the time before.
 * - Windows: count x number of windows.
 * - Concurrency: max x time / mean time that an accepted request was in flight. That time is measured in the
 *   simulator, since timers and a busy machine make it longer than the set one. Accepted requests over this number are
 *   the mean number in flight, over max. A place is empty while its answer is sent and the next request arrives.
 */
export function allowedIn(rule: KnownLimit, { from, to }: Span, { accepted, heldMs }: Tally): number {
  const ms = to - from
  switch (rule.kind) {
    case 'token-bucket':
      return (rule.rate * ms) / 1000
    case 'fixed-window':
    case 'sliding-window':
      return (rule.count * ms) / rule.windowMs
    case 'concurrency':
      return accepted === 0 ? Number.NaN : (rule.max * ms * accepted) / heldMs
  }
}

/** Undefined when the record is too short. */
export function steadyFigures(rule: KnownLimit, record: RequestRecord): SteadyFigures | undefined {
  const span = measuredSpan(rule, record)
  if (span === undefined) return undefined
  const tally = tallyOf(record, span)
  const { accepted, refused, heldMs } = tally
  const allowed = allowedIn(rule, span, tally)
  return {
    span,
    accepted,
    allowed,
    utilisation: accepted === 0 ? 0 : accepted / allowed,
    refusedShare: refused / Math.max(1, accepted + refused),
    heldMs: heldMs / Math.max(1, accepted),
  }
}

export interface Reach {
  rule: KnownLimit
  /** Start of the search; the whole window of the running mean must end before `to`. */
  span: Span
  /** Share of the limit that must be used. */
  utilisation: number
  /** The allowed share of 429; default: any. */
  refusedShare?: number
}

/**
 * The time until a running mean met the target: from the start of the span to the start of the first 10 s (or the
 * first window of the limit) that did. Undefined when none did.
 */
export function timeToReach(record: RequestRecord, wanted: Reach): number | undefined {
  const { rule, span, utilisation, refusedShare = 1 } = wanted
  const runningMs = windowOf(rule) ?? RUNNING_MS
  for (let from = ceilTo(span.from, record.binMs); from + runningMs <= span.to; from += record.binMs) {
    const stretch = { from, to: from + runningMs }
    const tally = tallyOf(record, stretch)
    const { accepted, refused } = tally
    const isUsed = accepted >= utilisation * allowedIn(rule, stretch, tally)
    if (isUsed && refused <= refusedShare * (accepted + refused)) return Math.max(0, from - span.from)
  }
  return undefined
}

function windowOf(rule: KnownLimit): number | undefined {
  return 'windowMs' in rule ? rule.windowMs : undefined
}

function floorTo(ms: number, step: number): number {
  return Math.floor(ms / step) * step
}

function ceilTo(ms: number, step: number): number {
  return Math.ceil(ms / step) * step
}
