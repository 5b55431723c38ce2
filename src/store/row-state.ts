import { tableNamed } from '../catalog.ts'
import { quote } from './sql.ts'
import type { Prepare } from './statements.ts'
import { columnsOfRow, type RowKey } from './suspicions.ts'

/** How a row stands: not stored, seen by analysts, known to exist only, or deleted. */
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
