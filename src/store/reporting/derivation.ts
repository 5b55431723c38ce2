import { isRow, placeholders, quote } from '../database/sql.ts'
import type { Prepare } from '../database/sqlite-types.ts'
import type { LocalTime } from './calendar-days.ts'
import type { Domains } from './sides.ts'
import type { WaitingKeys } from './waiting-keys.ts'

/** What the functions that follow changed keys share. */
export interface Deriving {
  prepare: Prepare
  waiting: WaitingKeys
  time: LocalTime
  /** The hour of the local day, from 0 to 23. */
  localHour(ms: number): number
  domains: Domains
  replyLimitDays: number
  /**
   * SQL for the contacts and companies with the ids in a JSON array, undefined when the CRM has none; the contacts' CRM
   * object.
   */
  crm: { contacts: string | undefined; companies: string | undefined; contactObject: string }
}

/** The rows of a query about the keys in the JSON array `:keys`. */
export const rowsFor = <Row>(prepare: Prepare, sql: string, keys: readonly DerivedCell[]): Row[] =>
  prepare<Row>(sql).all({ keys: JSON.stringify(keys) })

/** Rows by the key that `keyOf` returns; of several rows with one key, the last. */
export const rowsBy = <Row, Key>(rows: readonly Row[], keyOf: (row: Row) => Key): Map<Key, Row> =>
  new Map(rows.map(row => [keyOf(row), row]))

/** Lists of rows by the key that `keyOf` returns. */
export function listsBy<Row, Key>(rows: readonly Row[], keyOf: (row: Row) => Key): Map<Key, Row[]> {
  const lists = new Map<Key, Row[]>()
  for (const row of rows) {
    const list = lists.get(keyOf(row))
    if (list) list.push(row)
    else lists.set(keyOf(row), [row])
  }
  return lists
}

/** Undefined when the text is not an instant. */
export function msOf(instant: string | null): number | undefined {
  const ms = instant === null ? Number.NaN : Date.parse(instant)
  return Number.isNaN(ms) ? undefined : ms
}

export type DerivedCell = string | number | null

export type DerivedRow<Column extends string> = Readonly<Record<Column, DerivedCell>>

interface DerivedTable<Column extends string> {
  table: string
  columns: readonly Column[]
  /** The columns that identify a row. */
  key: readonly NoInfer<Column>[]
  scope: NoInfer<Column>
  /** SQL condition on the row `t`, for a table that has other rows too. */
  where?: string
}

/** Replaces rows of a derived table where they differ, so that a change of one row writes one row. */
export function createDerivedRows<Column extends string>(
  prepare: Prepare,
  { table, columns, key, scope, where = 'true' }: DerivedTable<Column>,
) {
  const others = columns.filter(column => !key.includes(column))
  const sql = {
    read: `SELECT ${columns.map(column => `t.${quote(column)}`).join(', ')}
      FROM json_each(?) k CROSS JOIN ${quote(table)} t ON t.${quote(scope)} = k.value WHERE ${where}`,
    insert: `INSERT INTO ${quote(table)} (${columns.map(quote).join(', ')}) VALUES (${placeholders(columns.length)})`,
    update: `UPDATE ${quote(table)} SET ${others.map(column => `${quote(column)} = ?`).join(', ')} WHERE ${isRow(key)}`,
    remove: `DELETE FROM ${quote(table)} WHERE ${isRow(key)}`,
  }
  const keyOf = (row: DerivedRow<Column>) => JSON.stringify(key.map(column => row[column]))
  return {
    /**
     * @param scopes values of the scope's column; afterwards the table has exactly `rows` with these values
     * @returns the removed rows and the new rows; a changed row is in both
     */
    replace<Row extends DerivedRow<Column>>(scopes: readonly DerivedCell[], rows: readonly Row[]) {
      const stored = rowsBy(prepare<DerivedRow<Column>>(sql.read).all(JSON.stringify(scopes)), keyOf)
      const gone: DerivedRow<Column>[] = []
      const come: Row[] = []
      const insert = prepare(sql.insert)
      for (const row of rows) {
        const id = stored.size === 0 ? '' : keyOf(row)
        const before = stored.get(id)
        stored.delete(id)
        if (before && columns.every(column => before[column] === row[column])) continue
        come.push(row)
        if (before) {
          gone.push(before)
          prepare(sql.update).run(...[...others, ...key].map(column => row[column]))
        } else insert.run(...columns.map(column => row[column]))
      }
      const remove = prepare(sql.remove)
      for (const row of stored.values()) {
        gone.push(row)
        remove.run(...key.map(column => row[column]))
      }
      return { gone, come }
    },
  }
}
