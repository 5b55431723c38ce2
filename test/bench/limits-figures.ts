import type { LimitRule } from '../../src/simulator/faults/limits.ts'

/** The arithmetic of how well a rate limit was used. Pure: from what the simulator recorded. Times in ms of its clock. */

/** Requests by the moment at which they came. The first bin begins at 0, as do the windows of a fixed window. */
export interface RequestRecord {
  binMs: number
  bins: readonly Bin[]
  /** When the limit was changed. */
  changes: readonly number[]
  endedMs: number
}

/** `heldMs`: for how long the accepted ones were there until they were answered, all together. */
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
  /** What was measured: after convergence. */
  span: Span
  accepted: number
  /** What the limit would have let in, see `allowedIn`. */
  allowed: number
  utilisation: number
  /** Of all that were sent. */
  refusedShare: number
  /** Mean time from the coming of an accepted request to its answer. */
  heldMs: number
}

const WARM_UP_MS = 30_000
const WARM_UP_WINDOWS = 2
/** Of the running mean, where the limit has no window of its own. */
const RUNNING_MS = 10_000

/** Undefined when no request came. */
export function firstRequestAt({ bins, binMs }: RequestRecord): number | undefined {
  const first = bins.findIndex(([accepted, refused]) => accepted + refused > 0)
  return first < 0 ? undefined : first * binMs
}

/** What came in whole bins from `from` to before `to`. */
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
 * What is left when the time until convergence is left out: 30 s from the first request, or two windows if that is
 * longer. A fixed window is measured from the beginning of one to the end of another, and a sliding one over a
 * multiple of its length, so that a program that asks at once and then waits is not judged by where the cut falls.
 * Undefined when nothing is left.
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
 * Requests that a limit would have let in during a span as `measuredSpan` gives it.
 * - Token bucket: rate x time. What was left in the bucket at the beginning belongs to the time before.
 * - Windows: count x number of windows.
 * - Concurrency: max x time / how long an accepted request held its place on average, as measured in the simulator
 *   and not as set, since timers and a busy machine make it longer. Accepted over this is the mean number of places
 *   that were taken, over max; a place is empty while its answer goes out and the next request comes in.
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
  /** When it began; by `to` the whole running mean must have been seen. */
  span: Span
  /** Of what the limit allows. */
  utilisation: number
  /** The share of 429 that is let pass, all by default. */
  refusedShare?: number
}

/**
 * How long it took until a running mean was as wanted, from the beginning of the span to the beginning of the first
 * stretch of 10 s (or of one window of the limit) that was. Undefined when none was.
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
