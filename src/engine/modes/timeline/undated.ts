import { tableNamed } from '../../../catalog/catalog.ts'
import type { TimelineFeed } from '../../../catalog/resource.ts'
import type { ParsedItem } from '../../../catalog/row.ts'
import type { EngineContext } from '../../context.ts'
import type { Missing } from '../../deletions/probe-later.ts'

/**
 * Rows of a timeline whose time cannot be parsed belong to no segment, so their keys are noted whenever a list shows
 * them. Every other segment was read at least once between two passes over the oldest one, so undated rows that are
 * not noted at the end of the oldest segment are missing.
 */

export function noteUndated(
  { store }: EngineContext,
  feedId: string,
  { table, time }: TimelineFeed,
  items: readonly ParsedItem[],
): void {
  const columns = Object.keys(tableNamed(table).columns)
  const [timeAt, keyAt] = [columns.indexOf(time), columns.indexOf('id')]
  for (const { cells } of items) {
    if (cells[timeAt] === null) store.seen.note(feedId, '', String(cells[keyAt]))
  }
}

/** Keys forgotten per statement; there are few undated rows. */
const FORGOTTEN_AT_ONCE = 1000

/** Call it at the end of the oldest segment. Notes from then on count for its next pass. */
export function missingUndated(
  { store, now }: EngineContext,
  feedId: string,
  feed: TimelineFeed,
  sentAt: string,
): Missing[] {
  const keys = store.rowTimes.undated(feed, feedId, { before: sentAt, now: now() })
  while (store.seen.forget(feedId, '', FORGOTTEN_AT_ONCE));
  return keys.map(key => ({ key, at: null }))
}
