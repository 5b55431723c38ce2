import { longestBackoffMs } from '../base/backoff.ts'
import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../base/clock.ts'
import { nextOccurrence } from '../config/calendar.ts'
import type { Recurrence } from '../config/kinds.ts'

/** When the daemon publishes, and when a missing publication is a problem. Pure. All times in ms since the epoch. */

export interface LastAttempts {
  /** When the newest complete publication started; undefined when there is none. */
  completeFrom: number | undefined
  /** How many attempts have failed since `completeFrom`, and when the last of these attempts ended. */
  failures: number
  failedAt: number
}

const FIRST_RETRY_MS = 30 * SECOND_MS
const LONGEST_RETRY_MS = HOUR_MS

/**
 * The first publication, and one that was missed, is due at once. So is the one after a last attempt in the future: it
 * was recorded under a wrong clock.
 */
export function nextPublication(every: Recurrence, last: LastAttempts, now: number): number {
  const { completeFrom, failures, failedAt } = last
  const from = failures === 0 ? completeFrom : failedAt
  if (from === undefined || from > now) return now
  const regular = regularAfter(every, from)
  if (failures === 0) return regular
  const mostMs = Math.min(LONGEST_RETRY_MS, regular - from)
  return from + longestBackoffMs({ firstMs: Math.min(FIRST_RETRY_MS, mostMs), mostMs }, failures)
}

/** How much later than usual a publication may be: publishing takes some time, and a short fault ends by itself. */
const LEAST_GRACE_MS = 15 * MINUTE_MS
const MOST_GRACE_MS = HOUR_MS

/** When the publication after one that started at `from` is late. */
export function lateAfter(every: Recurrence, from: number): number {
  const due = regularAfter(every, from)
  return due + Math.min(Math.max(due - from, LEAST_GRACE_MS), MOST_GRACE_MS)
}

/** No `lateAfter` of a start up to `now` is later. One that is comes from a start under a wrong clock. */
export function latestLateAfter(every: Recurrence, now: number): number {
  return regularAfter(every, now) + MOST_GRACE_MS
}

function regularAfter(every: Recurrence, from: number): number {
  return every.by === 'interval' ? from + every.ms : nextOccurrence(every.pattern, from)
}
