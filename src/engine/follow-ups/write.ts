import type { FollowUp, RecordFollowUp } from '../../catalog/resource.ts'
import type { ParsedItem } from '../../catalog/row.ts'
import type { StoredItem, WriteOptions } from '../../store/rows/write.ts'
import type { EngineContext } from '../context.ts'
import type { FeedName } from '../feeds.ts'
import { writeRecordTasks } from './changed-records.ts'
import { writeTask } from './tasks.ts'

/** Stores rows, writes their follow-ups and counts them for the run. Call it in the transaction of the answer. */
export function writeRows(
  context: EngineContext,
  { resource }: FeedName,
  table: string,
  items: readonly ParsedItem[],
  options: WriteOptions,
  followUps: readonly (FollowUp | RecordFollowUp)[] = [],
): StoredItem[] {
  const { store, urgent } = context
  const stored = store.write(table, items, options)
  const counts = context.counts(resource)
  counts.rowsRead += items.length
  for (const entry of stored) {
    if (entry.written.status === 'unchanged') continue
    counts.rowsChanged += 1
    urgent.addNewRow(table, entry)
    if (entry.written.isExtraAlone) continue
    for (const followUp of followUps) {
      if ('records' in followUp) writeRecordTasks(context, followUp, table, entry)
      else writeTask(store, followUp, table, entry, context.now(), urgent.add)
    }
  }
  return stored
}
