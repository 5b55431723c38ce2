import { columnAt } from '../../catalog/catalog.ts'
import type { DeclaredFeed } from '../../catalog/feeds.ts'
import type { TimelineFeed } from '../../declare/resource.ts'
import type { StoredItem } from '../../store/rows/write-items.ts'
import type { EngineContext } from '../context/context.ts'

/**
 * Notes how long after their event time new rows have appeared. Call it for rows in spans that were listed before,
 * whether the list shows them or they were requested by id.
 */
export function noteArrivals(
  { store, server }: EngineContext,
  { resource, feed }: DeclaredFeed<TimelineFeed>,
  stored: readonly StoredItem[],
): void {
  const timeIndex = columnAt(feed.table, feed.time)
  for (const { item, written } of stored) {
    const time = item.cells[timeIndex]
    if (written.status !== 'inserted' || typeof time !== 'string') continue
    store.arrivals.note(resource, server.now() - Date.parse(time))
  }
}
