import { longestBackoffMs } from '../backoff.ts'
import { HOUR, WEEK } from './context.ts'

/**
 * What is asked next about something that failed, so that one bad thing never stops its neighbours: what fails is made
 * smaller until the bad part is alone, and that part is put off by itself. Pure.
 */

/** Failures of a feed in a row after which the feed itself fails, and not what was asked for. */
export const MOST_FAILURES_IN_A_ROW = 10

/** How long a key that could not be read is left alone, in ms. */
export function keyBackoffMs(failures: number): number {
  return longestBackoffMs({ firstMs: 2 * HOUR, mostMs: WEEK }, failures)
}

/** The parts to ask for in place of keys that one request named and that failed together; none for a single key. */
export function halves<T>(keys: readonly T[]): (readonly T[])[] {
  if (keys.length < 2) return []
  const middle = Math.ceil(keys.length / 2)
  return [keys.slice(0, middle), keys.slice(middle)]
}
