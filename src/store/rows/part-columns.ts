import { quote } from '../database/sql.ts'
import type { Prepare } from '../database/sqlite-types.ts'

/** A part of a row: a separate single read returns it, and one column of the row stores it. */
export interface PartColumn {
  table: string
  column: string
  /** The row's id. */
  id: string
}

export interface PartColumns {
  /** Null when the part or its row is not stored. */
  get(part: PartColumn): string | null
  /** Replaces the part of a live row. Returns how many rows changed. The first value does not set `_changed_at`. */
  replace(part: PartColumn, value: string | null, now: string): number
}

export function createPartColumns(prepare: Prepare): PartColumns {
  return {
    get({ table, column, id }) {
      const find = prepare<string | null>(`SELECT ${quote(column)} FROM ${quote(table)} WHERE id = ?`)
      return find.pluck().get(id) ?? null
    },
    replace({ table, column, id }, value, now) {
      const part = quote(column)
      const update = prepare(
        `UPDATE ${quote(table)} SET ${part} = @value, _synced_at = @now,
           _changed_at = iif(${part} IS NULL, _changed_at, @now)
         WHERE id = @id AND _deleted_at IS NULL`,
      )
      return update.run({ value, now, id }).changes
    },
  }
}
