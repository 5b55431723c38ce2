import type { Cause, PointCause } from '../../catalog/resource.ts'
import type { ParsedItem } from '../../catalog/row.ts'
import type { StoredItem, WriteOptions } from '../../store/store.ts'
import type { EngineContext } from '../context.ts'
import type { FeedName } from '../feeds.ts'
import { followPoints } from './changed-records.ts'
import { followCause } from './tasks.ts'

/** Stores rows and writes the follow-ups that they cause, in the transaction of the answer. Counts them for the run. */
export function writeRows(
  context: EngineContext,
  { resource }: FeedName,
  table: string,
  items: readonly ParsedItem[],
  options: WriteOptions,
  causes: readonly (Cause | PointCause)[] = [],
): StoredItem[] {
  const { store, urgent } = context
  const stored = store.write(table, items, options)
  const counts = context.counts(resource)
  counts.rowsRead += items.length
  for (const entry of stored) {
    if (entry.written.status === 'unchanged') continue
    counts.rowsChanged += 1
    urgent.stored(table, entry)
    if (entry.written.isExtraAlone) continue
    for (const cause of causes) {
      if ('points' in cause) followPoints(context, cause, table, entry)
      else followCause(store, cause, table, entry, context.now(), urgent.caused)
    }
  }
  return stored
}
