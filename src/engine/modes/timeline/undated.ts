import { tableNamed } from '../../../catalog/catalog.ts'
import type { TimelineFeed } from '../../../catalog/resource.ts'
import type { ParsedItem } from '../../../catalog/row.ts'
import type { EngineContext } from '../../context.ts'
import type { Missing } from '../../deletions/probe-later.ts'

/**
 * Rows of a timeline whose time cannot be read lie in no segment. Where they appear in a list, their keys are noted.
 * When the oldest segment was read to its end, every other was read since it last was: what is not noted by then is
 * missing.
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

/** Of rows without a time that can be read, there are few. */
const FORGOTTEN_AT_ONCE = 1000

/** At the end of the oldest segment. What is noted counts from then on for the next time. */
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
