import type { RowOf } from '../../catalog/bookkeeping/table-declaration.ts'
import type { DAY_TABLE } from '../../catalog/bookkeeping/tables.ts'
import type { Prepare } from '../database/sqlite-types.ts'

/** A row of `sync_days`. */
export type ResourceDay = RowOf<typeof DAY_TABLE>

export interface Days {
  /** Adds to the row of the day and resource. */
  add(day: ResourceDay): void
}

export function createDays(prepare: Prepare): Days {
  const add = prepare(
    `INSERT INTO sync_days (day, resource, rows_new, rows_changed, rows_deleted)
     VALUES (@day, @resource, @rows_new, @rows_changed, @rows_deleted)
     ON CONFLICT (day, resource) DO UPDATE SET rows_new = rows_new + excluded.rows_new,
       rows_changed = rows_changed + excluded.rows_changed, rows_deleted = rows_deleted + excluded.rows_deleted`,
  )
  return { add: day => void add.run(day) }
}
