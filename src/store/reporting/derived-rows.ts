import { quote } from '../database/sql.ts'
import type { Prepare } from '../database/sqlite-types.ts'

/** Replaces rows of a derived table where they differ, so that a change of one row writes one. */

export type DerivedCell = string | number | null

export interface DerivedRows<Column extends string> {
  /**
   * @param scope values of the scope's column, of which the table then has exactly these rows
   * @returns the rows that are gone and those that have come; a changed row is in both
   */
  replace<Row extends DerivedRow<Column>>(
    scope: readonly DerivedCell[],
    rows: readonly Row[],
  ): { gone: DerivedRow<Column>[]; come: Row[] }
}

export type DerivedRow<Column extends string> = Readonly<Record<Column, DerivedCell>>

interface DerivedTable<Column extends string> {
  table: string
  columns: readonly Column[]
  /** Each row is known by them. */
  key: readonly NoInfer<Column>[]
  scope: NoInfer<Column>
  /** SQL about the row `t`, for a table that has rows of others too. */
  where?: string
}

export function createDerivedRows<Column extends string>(
  prepare: Prepare,
  { table, columns, key, scope, where = 'true' }: DerivedTable<Column>,
): DerivedRows<Column> {
  const names = columns.map(quote).join(', ')
  const others = columns.filter(column => !key.includes(column))
  const isKey = key.map(column => `${quote(column)} = ?`).join(' AND ')
  const sql = {
    read: `SELECT ${columns.map(column => `t.${quote(column)}`).join(', ')}
      FROM json_each(?) k CROSS JOIN ${quote(table)} t ON t.${quote(scope)} = k.value WHERE ${where}`,
    insert: `INSERT INTO ${quote(table)} (${names}) VALUES (${columns.map(() => '?').join(', ')})`,
    update: `UPDATE ${quote(table)} SET ${others.map(column => `${quote(column)} = ?`).join(', ')} WHERE ${isKey}`,
    remove: `DELETE FROM ${quote(table)} WHERE ${isKey}`,
  }
  const keyOf = (row: DerivedRow<Column>) => JSON.stringify(key.map(column => row[column]))
  return {
    replace<Row extends DerivedRow<Column>>(scopes: readonly DerivedCell[], rows: readonly Row[]) {
      const stored = new Map(
        prepare<DerivedRow<Column>>(sql.read)
          .all(JSON.stringify(scopes))
          .map(row => [keyOf(row), row]),
      )
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
