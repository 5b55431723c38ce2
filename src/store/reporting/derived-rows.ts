import { quote } from '../database/sql.ts'
import type { Prepare } from '../database/sqlite-types.ts'

/** Replaces rows of a derived table where they differ, so that a change of one row writes one. */

export type DerivedCell = string | number | null

export interface DerivedRows<Column extends string> {
  /**
   * @param scope values of the scope's column, of which the table then has exactly these rows
   * @returns the rows that are gone and those that have come; a changed row is in both
   */
  replace(scope: readonly DerivedCell[], rows: readonly DerivedRow<Column>[]): Replaced<Column>
}

export type DerivedRow<Column extends string> = Readonly<Record<Column, DerivedCell>>

export interface Replaced<Column extends string> {
  gone: DerivedRow<Column>[]
  come: DerivedRow<Column>[]
}

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
  const update = others.map(column => `${quote(column)} = excluded.${quote(column)}`).join(', ')
  const isKey = key.map(column => `${quote(column)} = ?`).join(' AND ')
  const sql = {
    read: `SELECT ${columns.map(column => `t.${quote(column)}`).join(', ')}
      FROM json_each(?) k CROSS JOIN ${quote(table)} t ON t.${quote(scope)} = k.value WHERE ${where}`,
    write: `INSERT INTO ${quote(table)} (${names}) VALUES (${columns.map(() => '?').join(', ')})
      ON CONFLICT (${key.map(quote).join(', ')}) DO ${update === '' ? 'NOTHING' : `UPDATE SET ${update}`}`,
    remove: `DELETE FROM ${quote(table)} WHERE ${isKey}`,
  }
  const keyOf = (row: DerivedRow<Column>) => JSON.stringify(key.map(column => row[column]))
  return {
    replace(scopes, rows) {
      const stored = new Map(
        prepare<DerivedRow<Column>>(sql.read)
          .all(JSON.stringify(scopes))
          .map(row => [keyOf(row), row]),
      )
      const [gone, come]: DerivedRow<Column>[][] = [[], []]
      const write = prepare(sql.write)
      for (const row of rows) {
        const id = stored.size === 0 ? '' : keyOf(row)
        const before = stored.get(id)
        stored.delete(id)
        if (before && columns.every(column => before[column] === row[column])) continue
        if (before) gone?.push(before)
        come?.push(row)
        write.run(...columns.map(column => row[column]))
      }
      const remove = prepare(sql.remove)
      for (const row of stored.values()) {
        gone?.push(row)
        remove.run(...key.map(column => row[column]))
      }
      return { gone: gone ?? [], come: come ?? [] }
    },
  }
}
