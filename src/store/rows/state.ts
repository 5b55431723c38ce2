import { tableNamed } from '../../catalog/catalog.ts'
import type { Prepare } from '../database/connection.ts'
import { quote } from '../database/sql.ts'
import { columnsOfRow, type RowKey } from '../deletions/suspicions.ts'

/** `unknown`: not stored. `open`: live and readable. `withheld`: live, but the API refuses its content. `deleted`. */
export type RowState = 'unknown' | 'open' | 'withheld' | 'deleted'

/** @param row of an entity table */
export type RowStateOf = (row: RowKey) => RowState

export function createRowState(prepare: Prepare): RowStateOf {
  return row => {
    const { name, key, openWhen = 'true' } = tableNamed(row.table)
    const where = key.map(column => `${quote(column)} = ?`).join(' AND ')
    const find = prepare(
      `SELECT iif(_deleted_at IS NOT NULL, 'deleted', iif(${openWhen}, 'open', 'withheld')) FROM ${quote(name)}
       WHERE ${where}`,
    )
    return (find.pluck().get(...columnsOfRow(row)) as RowState | undefined) ?? 'unknown'
  }
}

/** Whether a table has live rows of a scope. The scope is the first column of its key. */
export type HasLiveRows = (table: string, scope: string) => boolean

export function createHasLiveRows(prepare: Prepare): HasLiveRows {
  return (table, scope) => {
    const { name, key } = tableNamed(table)
    const [first = ''] = key
    const find = prepare(
      `SELECT 1 FROM ${quote(name)} WHERE ${quote(first)} = ? AND _deleted_at IS NULL LIMIT 1`,
    )
    return find.get(scope) !== undefined
  }
}
