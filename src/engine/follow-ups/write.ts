import type { ParsedItem } from '../../catalog/parsed-item.ts'
import type { FollowUp, RecordFollowUp } from '../../catalog/resource.ts'
import type { StoredItem, WriteOptions } from '../../store/rows/write-items.ts'
import type { EngineContext } from '../context.ts'
import type { FeedName } from '../feeds.ts'
import { writeRecordTasks } from './changed-records.ts'
import { writeTask } from './tasks.ts'

/** Stores rows and counts them for the run. Call it in the transaction of the answer. */
export function storeRows(
  context: EngineContext,
  { resource }: FeedName,
  table: string,
  items: readonly ParsedItem[],
  options: WriteOptions,
): StoredItem[] {
  const stored = context.store.write(table, items, options)
  const counts = context.runs.counts(resource)
  counts.rowsRead += items.length
  counts.rowsChanged += stored.filter(({ written }) => written.status !== 'unchanged').length
  return stored
}

/** Writes the follow-ups of rows that were stored, in the same transaction. */
export function writeFollowUps(
  context: EngineContext,
  table: string,
  stored: readonly StoredItem[],
  followUps: readonly (FollowUp | RecordFollowUp)[] = [],
): void {
  const { store, urgent } = context
  for (const entry of stored) {
    if (entry.written.status === 'unchanged') continue
    urgent.addNewRow(table, entry)
    if (entry.written.isExtraAlone) continue
    for (const followUp of followUps) {
      if ('records' in followUp) writeRecordTasks(context, followUp, table, entry)
      else writeTask(store, followUp, table, entry, context.now(), urgent.add)
    }
  }
}

/** Stores rows and writes their follow-ups, for an answer that is not a page of a list. */
export function writeRows(
  context: EngineContext,
  where: FeedName,
  table: string,
  items: readonly ParsedItem[],
  options: WriteOptions,
  followUps: readonly (FollowUp | RecordFollowUp)[] = [],
): StoredItem[] {
  const stored = storeRows(context, where, table, items, options)
  writeFollowUps(context, table, stored, followUps)
  return stored
}
