import { Cron } from 'croner'

/**
 * When maintenance purges, prunes and optimizes: at a time of night with few queries, in the machine's time zone. Only
 * this file uses croner. Reads of the API are scheduled by intervals instead.
 */
export const MAINTENANCE = '17 3 * * *'

/** The daemon asks for the same occurrence each minute, and croner computes for a fifth of a millisecond. */
let latest: { pattern: string; after: number; next: number } | undefined

/** The next occurrence after an instant, both in ms since the epoch; Infinity when there is none. */
export function nextOccurrence(pattern: string, after: number): number {
  if (latest?.pattern === pattern && latest.after === after) return latest.next
  const found = new Cron(pattern, { mode: '5-part' }).nextRun(new Date(after))
  const next = found?.getTime() ?? Number.POSITIVE_INFINITY
  latest = { pattern, after, next }
  return next
}
