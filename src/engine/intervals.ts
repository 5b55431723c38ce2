/** Lengths of time, in ms, and the owner's scale for them. */

export const MINUTE = 60_000
export const HOUR = 60 * MINUTE
export const DAY = 24 * HOUR
/** No interval is longer: the bound within which the warehouse is true. */
export const WEEK = 7 * DAY

/** An interval with the owner's scale, never below a second. */
export function scaled(ms: number, { intervalScale }: { intervalScale: number }): number {
  return Math.max(1000, ms * intervalScale)
}
