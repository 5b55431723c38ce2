/**
 * Recognises stray refusals: 429s that have nothing to do with the rate, so that a lower rate has as many of them.
 * Pure.
 *
 * - Each span of requests until a refusal is remembered (`RefusedSpan`).
 * - When three rates below the best mean were refused as often as the others, the lower rates were in vain. The rate
 *   returns to that of the best span, and a share of refusals is allowed (`StrayRefusals`).
 * - As long as no more than that share is refused, a refusal does not lower the rate. Each refusal uses up credit, and
 *   accepted requests earn credit. Without credit, a refusal lowers the rate again.
 */

/** The requests until a refusal. A span in which few were accepted goes on to a later refusal. */
export interface RefusedSpan {
  /** The rate that was refused at the end, in requests per second. */
  readonly rate: number
  /** Accepted requests per second, from the end of a pause to the end of the next. */
  readonly mean: number
  readonly accepted: number
  /** Those of the pauses included. */
  readonly refused: number
}

export interface StrayRefusals {
  /** The share of requests that are refused, which is measured all the time. */
  readonly share: number
  /** Upper bound of `share`, so that refusals caused by the rate do not count as stray. */
  readonly mostShare: number
  /** How many refusals do not lower the rate. */
  readonly credit: number
  /** Whether all credit was ever earned. Until then, stray refusals are assumed only while credit is left. */
  readonly isProven: boolean
}

const MAX_SPANS = 8
/** A rate below this share of a mean that was accepted is not the reason for a refusal. */
const FAR_BELOW = 0.8
const MIN_VAIN = 3
/**
 * The least share of the usual number of accepted requests before a refusal in vain. With fewer, the limit has dropped.
 */
const AS_MANY = 0.5
/** The credit at the start. Refusals come at random, so several may come soon after each other. */
const FIRST_CREDIT = 2
const MAX_CREDIT = 5
const EARNED = 2
/** Number of answers over which the share is measured. */
const MEASURED_ANSWERS = 500
/** With a smaller share, there are no stray refusals any more. */
const LEAST_SHARE = 0.0005

export function withSpan(spans: readonly RefusedSpan[], span: RefusedSpan): readonly RefusedSpan[] {
  return [...spans.slice(1 - MAX_SPANS), span]
}

/** @returns the best of the spans if rates below its mean were refused in vain */
export function spanToReturnTo(spans: readonly RefusedSpan[]): RefusedSpan | undefined {
  const most = Math.max(...spans.map(({ mean }) => mean))
  const isVain = ({ rate }: RefusedSpan) => rate < FAR_BELOW * most
  const vain = spans.filter(isVain)
  const others = spans.filter(span => !isVain(span))
  if (vain.length < MIN_VAIN || acceptedEach(vain) < AS_MANY * acceptedEach(others)) return undefined
  return spans.find(({ mean }) => mean === most)
}

export function startStray(spans: readonly RefusedSpan[]): StrayRefusals {
  const share = 1 / (1 + acceptedEach(spans))
  return { share, mostShare: share, credit: FIRST_CREDIT, isProven: false }
}

/** The state after an accepted or refused request. Undefined when stray refusals are no longer assumed. */
export function strayAfter(stray: StrayRefusals, isAccepted: boolean): StrayRefusals | undefined {
  const measured = stray.share + ((isAccepted ? 0 : 1) - stray.share) / MEASURED_ANSWERS
  if (measured < LEAST_SHARE) return undefined
  const share = Math.min(stray.mostShare, measured)
  const credit = isAccepted ? Math.min(MAX_CREDIT, stray.credit + EARNED * share) : stray.credit - 1
  if (credit <= 0 && !stray.isProven) return undefined
  return { ...stray, share, credit: Math.max(0, credit), isProven: stray.isProven || credit === MAX_CREDIT }
}

/** The number of accepted requests for each refused one. */
function acceptedEach(spans: readonly RefusedSpan[]): number {
  const sum = (count: 'accepted' | 'refused') => spans.reduce((total, span) => total + span[count], 0)
  return sum('accepted') / Math.max(1, sum('refused'))
}
