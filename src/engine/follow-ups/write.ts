import { HOUR_MS, isoInstant } from '../../base/clock.ts'
import { columnAt, tableNamed } from '../../catalog/catalog.ts'
import { feedNamed } from '../../catalog/feeds.ts'
import type { ParsedItem, ReadCell } from '../../declare/parsed-item.ts'
import type { FollowUp, RecordFollowUp } from '../../declare/resource.ts'
import type { ResourceName } from '../../declare/resource-names.ts'
import type { StoredItem, WriteOptions } from '../../store/rows/write-items.ts'
import type { Store } from '../../store/store.ts'
import type { EngineContext } from '../context/context.ts'
import { scaled } from '../context/intervals.ts'
import { writeRecordTasks } from './changed-records.ts'

/** Stores rows and counts them for the run. Call it in the transaction of the answer. */
export function storeRows(
  context: EngineContext,
  resource: ResourceName,
  table: string,
  items: readonly ParsedItem[],
  options: Omit<WriteOptions, 'olderSince'>,
): StoredItem[] {
  const olderSince = isoInstant(context.clock.now() - scaled(HOUR_MS, context.options))
  const stored = context.store.write(table, items, { ...options, olderSince })
  const counts = context.runs.counts(resource)
  counts.rowsRead += items.length
  counts.rowsChanged += stored.filter(({ written }) => written.status !== 'unchanged').length
  counts.rowsNew += stored.filter(({ written }) => written.status === 'inserted').length
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
  let dueAt: string | undefined
  for (const entry of stored) {
    const { status, isExtraAlone } = entry.written
    if (status === 'unchanged') continue
    urgent.addNewRow(table, entry)
    if (isExtraAlone) continue
    const cell = cellsOf(table, entry)
    for (const followUp of followUps) {
      if (!followUp.on.includes(status) || !isMet(followUp, cell)) continue
      if ('records' in followUp) writeRecordTasks(context, followUp, cell, entry)
      else if (!isOfNoConcern(followUp, entry)) {
        dueAt ??= store.dueClock.after(0)
        writeTask(store, followUp, cell, dueAt, urgent.add)
      }
    }
  }
}

/** Cells of a stored row. An answer has no value for most columns that parley fills, so these are as stored before. */
function cellsOf(table: string, { item, written }: StoredItem): ReadCell {
  const { columns } = tableNamed(table)
  return column => {
    const at = columnAt(table, column)
    const isOurs = columns[column]?.source.from === 'parley'
    return item.cells[at] ?? (isOurs ? written.before?.[at] : null) ?? null
  }
}

const isOfNoConcern = ({ unlessOnly }: FollowUp, { written }: StoredItem): boolean =>
  unlessOnly !== undefined && written.onlyColumns?.every(column => unlessOnly.includes(column)) === true

function isMet({ when = {} }: FollowUp | RecordFollowUp, cell: ReadCell): boolean {
  return Object.entries(when).every(([column, values]) => values.includes(String(cell(column))))
}

/** Stores rows and writes their follow-ups, for an answer that is not a page of a list. */
export function writeRows(
  context: EngineContext,
  resource: ResourceName,
  table: string,
  items: readonly ParsedItem[],
  options: Omit<WriteOptions, 'olderSince'>,
  followUps: readonly (FollowUp | RecordFollowUp)[] = [],
): StoredItem[] {
  const stored = storeRows(context, resource, table, items, options)
  writeFollowUps(context, table, stored, followUps)
  return stored
}

/** Whether the row that a feed reads is suspected, withheld or deleted. */
function isDenied({ stored, suspicions }: Store, feed: string, key: string): boolean {
  const row = { table: feedNamed(feed).feed.table, scope: '', key }
  const state = stored.state(row)
  return state === 'withheld' || state === 'deleted' || suspicions.find(row) !== undefined
}

function writeTask(
  store: Store,
  followUp: FollowUp,
  cell: ReadCell,
  dueAt: string,
  addUrgent: (feed: string, key: string) => void,
): void {
  const key = cell(followUp.key)
  if (typeof key !== 'string' || key === '') return
  const sortAt = followUp.sort === undefined ? null : (cell(followUp.sort) as string | null)
  // A denied row that another row now names may have come back, so it is read at once.
  const how = followUp.how === 'add' && isDenied(store, followUp.feed, key) ? 'demand' : followUp.how
  store.tasks[how]({ feed: followUp.feed, key, sortAt, dueAt })
  addUrgent(followUp.feed, key)
}
