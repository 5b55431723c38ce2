import { columnAt, keyAt } from '../../../catalog/catalog.ts'
import type { DeclaredFeed } from '../../../catalog/feeds.ts'
import type { ParsedItem } from '../../../declare/parsed-item.ts'
import type { TimelineFeed } from '../../../declare/resource.ts'
import type { EngineContext } from '../../context/context.ts'
import type { Missing } from '../../deletions/probe-later.ts'

/**
 * An undated row of a timeline has no time, or one that cannot be parsed. It belongs to no segment, so its key is noted
 * whenever a page shows it. Between two passes over the oldest segment, every other segment is read at least once. So
 * an undated row whose key is not noted when a pass over the oldest segment ends is missing.
 */

export function noteUndated(
  { store }: EngineContext,
  { id, feed: { table, time } }: DeclaredFeed<TimelineFeed>,
  items: readonly ParsedItem[],
): void {
  const [timeIndex, keyIndex] = [columnAt(table, time), keyAt(table)]
  for (const { cells } of items) {
    if (cells[timeIndex] === null) store.seen.note(id, '', String(cells[keyIndex]))
  }
}

/** How many noted keys one statement removes. There are few undated rows. */
const FORGOTTEN_AT_ONCE = 1000

/** Call it when a pass over the oldest segment ends. It removes all notes, so later notes count for the next pass. */
export function missingUndated(
  { store, now }: EngineContext,
  { id, feed }: DeclaredFeed<TimelineFeed>,
  sentAt: string,
): Missing[] {
  const keys = store.rowTimes.undated(feed, id, { before: sentAt, now: now() })
  while (store.seen.forget(id, '', FORGOTTEN_AT_ONCE));
  return keys.map(key => ({ key, at: null }))
}
