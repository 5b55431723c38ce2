import { quote } from '../database/sql.ts'
import type { Prepare } from '../database/sqlite-types.ts'
import { onlyRow } from '../database/statements.ts'
import { createMeta, META, readNote } from '../sync/meta.ts'
import { DIVISIONS, LARGE_OWNERS } from './divisions.ts'

/**
 * Finds the new rows of the largest tables by their `_id`, which grows with each insertion. The greatest that was looked
 * at is stored in the transaction, so a rollback applies to it too.
 */
export interface NewRows {
  /** Looks only at rows that are inserted from now on. Call it inside a transaction. */
  begin(): void
  /** A deleted row, whose `_id` the next row may get. */
  removed(table: string, id: number): void
  /** The months of rows that were inserted since the last call, by table. Call it inside a transaction. */
  take(): ReadonlyMap<string, readonly (string | null)[]>
}

/** By table: the greatest `_id`. */
type Looked = Readonly<Record<string, number>>

export function createNewRows(prepare: Prepare): NewRows {
  const meta = createMeta(prepare)
  const removals = new Map<string, number>()
  const tables = LARGE_OWNERS.map(table => {
    const division = DIVISIONS.get(table)
    if (division?.by !== 'month') throw new TypeError(`${table} has no time`)
    const month = `substr(${quote(division.column)}, 1, 7)`
    return {
      table,
      greatest: prepare<number>(`SELECT coalesce(max(_id), 0) FROM ${quote(table)}`).pluck(),
      months: prepare<string | null>(`SELECT DISTINCT ${month} FROM ${quote(table)} WHERE _id > ?`).pluck(),
    }
  })
  const save = (looked: Looked) => meta.set(META.notedRows, JSON.stringify(looked))
  const present = (): Looked =>
    Object.fromEntries(tables.map(({ table, greatest }) => [table, onlyRow(greatest)]))
  return {
    begin: () => save(present()),
    removed: (table, id) => void removals.set(table, Math.min(id, removals.get(table) ?? id)),
    take() {
      const looked = readNote<Looked>(meta.get, META.notedRows) ?? {}
      const now = present()
      const found = new Map<string, readonly (string | null)[]>()
      for (const { table, months } of tables) {
        const after = Math.min(looked[table] ?? 0, (removals.get(table) ?? Number.POSITIVE_INFINITY) - 1)
        if ((now[table] ?? 0) > after) found.set(table, months.all(after))
      }
      if (tables.some(({ table }) => now[table] !== looked[table])) save(now)
      removals.clear()
      return found
    },
  }
}
