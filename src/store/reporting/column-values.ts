import { HOUR_MS } from '../../base/clock.ts'
import { COLUMN_VALUES, ENUMERATED, type EnumeratedTable } from '../../dictionary/column-values.ts'
import { quote } from '../database/sql.ts'
import type { Prepare } from '../database/sqlite-types.ts'
import { createMeta, META, readNote } from '../sync/meta.ts'
import { createDerivedRows, type DerivedRow } from './derivation.ts'
import type { FollowDeps } from './follow.ts'

/** By table: the number of the table's last change when it was counted, and the counted columns. */
type Counted = Readonly<Record<string, string>>

/**
 * Keeps `column_values` up to date. A table is counted again when it has changed since, in one scan for all its
 * columns, and at most once an hour: for 140,000 activities a scan takes a tenth of a second.
 * @returns a function to call while there are tables about deals. It returns when a postponed table may be counted, by
 * `clock.elapsed`, in ms; Infinity when none was postponed
 */
export function createColumnValues({
  prepare,
  clock,
  transaction,
}: Pick<FollowDeps, 'prepare' | 'clock' | 'transaction'>): () => Promise<number> {
  const meta = createMeta(prepare)
  const values = createDerivedRows(prepare, {
    table: COLUMN_VALUES.name,
    columns: ['table_name', 'column_name', 'value', 'rows'],
    key: ['table_name', 'column_name', 'value'],
    scope: 'table_name',
  })
  /** When this process may count a table again, by `clock.elapsed`. */
  const dueTimes = new Map<string, number>()

  return async () => {
    let again = Number.POSITIVE_INFINITY
    const changes = lastChanges(prepare)
    // After this version has created the table, it is empty, so everything is counted.
    const isEmpty = prepare('SELECT 1 FROM column_values').get() === undefined
    const counted = isEmpty ? {} : (readNote<Counted>(meta.get, META.countedValues) ?? {})
    let note = counted
    for (const each of ENUMERATED) {
      const change = Math.max(...each.follows.map(name => changes.get(name) ?? 0))
      const state = [change, ...each.columns].join(' ')
      if (note[each.table] === state) continue
      const dueAt = dueTimes.get(each.table) ?? 0
      if (clock.elapsed() < dueAt) {
        again = Math.min(again, dueAt)
        continue
      }
      const found = countValues(prepare, each)
      note = { ...note, [each.table]: state }
      // A transaction for each table, so that the sync goes on between two tables.
      await transaction(() => {
        values.replace([each.table], found)
        meta.set(META.countedValues, JSON.stringify(note))
      })
      dueTimes.set(each.table, clock.elapsed() + HOUR_MS)
    }
    return again
  }
}

function lastChanges(prepare: Prepare): ReadonlyMap<string, number> {
  const changes = prepare<[table: string, change: number]>(
    'SELECT table_name, max(change) FROM sync_changed_parts GROUP BY table_name',
  )
  return new Map(changes.raw().all())
}

const MOST_VALUES = 200
const LONGEST = 100

/**
 * Counts the live rows with each value. Leaves out columns with more than MOST_VALUES values or with a longer value
 * than LONGEST.
 */
function countValues(
  prepare: Prepare,
  { table, columns }: EnumeratedTable,
): DerivedRow<'table_name' | 'column_name' | 'value' | 'rows'>[] {
  const list = columns.map(quote).join(', ')
  const groups = prepare<unknown[]>(
    `SELECT ${list}, count(*) FROM ${quote(`live_${table}`)} GROUP BY ${list}`,
  ).raw()
  const counts = new Map(columns.map(column => [column, new Map<string, number>()]))
  for (const row of groups.iterate()) {
    for (const [index, column] of columns.entries()) {
      const value = row[index]
      const found = counts.get(column)
      if (value === null || found === undefined) continue
      const text = String(value)
      found.set(text, (found.get(text) ?? 0) + Number(row.at(-1)))
      if (found.size > MOST_VALUES || text.length > LONGEST) counts.delete(column)
    }
  }
  return [...counts].flatMap(([column_name, found]) =>
    [...found].map(([value, rows]) => ({ table_name: table, column_name, value, rows })),
  )
}
