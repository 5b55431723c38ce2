import { TABLES, tableNamed } from '../../catalog/catalog.ts'
import type { Table } from '../../declare/table.ts'
import { isLive, isRow, quote } from '../database/sql.ts'
import type { Prepare } from '../database/sqlite-types.ts'
import { onlyRow } from '../database/statements.ts'
import { keyValuesOf, type RowKey } from '../deletions/suspicions.ts'

/**
 * `unknown`: not stored. `open`: live and readable. `withheld`: live, but the API refuses its content. `deleted`:
 * `_deleted_at` is set.
 */
export type RowState = 'unknown' | 'open' | 'withheld' | 'deleted'

export interface Dependants {
  /** The table that refers to another. */
  table: string
  /** Its columns → the key columns of the other table. */
  on: Readonly<Record<string, string>>
}

/** By table: the columns of other tables that refer to the table's key. */
const NAMED_BY: ReadonlyMap<string, readonly { table: Table; column: string }[]> = new Map(
  [...TABLES.values()].map(({ table: { name, key } }) => [
    name,
    [...TABLES.values()]
      .filter(({ table, root }) => root === undefined && table.name !== name)
      .flatMap(({ table }) =>
        Object.entries(table.columns)
          .filter(([, { refersTo }]) => refersTo?.includes(`${name}.${key[0]}`))
          .map(([column]) => ({ table, column })),
      ),
  ]),
)

export type StoredRows = ReturnType<typeof createStoredRows>

/** Queries about the stored rows of any table. */
export function createStoredRows(prepare: Prepare) {
  const find = (table: string, condition = 'true') =>
    prepare(`SELECT 1 FROM ${quote(table)} WHERE ${isRow(tableNamed(table).key)} AND ${condition}`)
  return {
    /** @param row a row of an entity table */
    state(row: RowKey) {
      const { name, key, openWhen = 'true' } = tableNamed(row.table)
      const state = prepare<RowState>(
        `SELECT iif(_deleted_at IS NOT NULL, 'deleted', iif(${openWhen}, 'open', 'withheld')) FROM ${quote(name)}
         WHERE ${isRow(key)}`,
      )
      return state.pluck().get(...keyValuesOf(row)) ?? 'unknown'
    },
    /** Whether a row with this key is stored, deleted or not. */
    has: (table: string, key: readonly string[]) => find(table).get(...key) !== undefined,
    /** The keys among `keys` whose rows are deleted. `table` has one key column. */
    deletedAmong(table: string, keys: readonly string[]) {
      const { name, key } = tableNamed(table)
      const deleted = prepare<string>(
        `SELECT value FROM json_each(?)
         WHERE EXISTS (SELECT 1 FROM ${quote(name)} WHERE ${quote(key[0] ?? '')} = value AND _deleted_at IS NOT NULL)`,
      )
      return deleted.pluck().all(JSON.stringify(keys))
    },
    /** Whether a live row of another table refers to this row, which need not be stored. `table` has one key column. */
    isNamed: ({ table, key }: Pick<RowKey, 'table' | 'key'>) =>
      (NAMED_BY.get(table) ?? []).some(by => {
        const naming = `SELECT 1 FROM ${quote(by.table.name)} WHERE ${quote(by.column)} = ? AND ${isLive(by.table)}`
        return prepare(`${naming} LIMIT 1`).get(key) !== undefined
      }),
    /** Whether an entity table has a live row with this key. */
    isLive: (table: string, key: readonly unknown[]) =>
      find(table, '_deleted_at IS NULL').get(...key) !== undefined,
    /** Whether a table has live rows of a scope, which is the first column of the table's key. */
    hasLiveOf(table: string, scope: string) {
      const { name, key } = tableNamed(table)
      const [first = ''] = key
      const any = prepare(
        `SELECT 1 FROM ${quote(name)} WHERE ${quote(first)} = ? AND ${isLive(tableNamed(table))} LIMIT 1`,
      )
      return any.get(scope) !== undefined
    },
    /** The values of a column of all live rows, sorted. */
    liveValues(table: string, column: string) {
      const values = prepare<string>(
        `SELECT ${quote(column)} FROM ${quote(table)} WHERE _deleted_at IS NULL ORDER BY 1`,
      )
      return values.pluck().all()
    },
    /** The text in a column of a row; undefined when the row is not stored or the column is null. */
    valueOf(row: RowKey, column: string) {
      const { name, key } = tableNamed(row.table)
      const value = prepare<string | null>(`SELECT ${quote(column)} FROM ${quote(name)} WHERE ${isRow(key)}`)
      return value.pluck().get(...keyValuesOf(row)) ?? undefined
    },
    /** The highest `_id` of a table; 0 when it is empty. */
    newestId: (table: string) =>
      onlyRow(prepare<number>(`SELECT coalesce(max(_id), 0) FROM ${quote(table)}`).pluck()),
    /** The ids of the live rows that have this value in a column. */
    liveIdsWith(table: string, column: string, value: string) {
      const ids = prepare<string>(
        `SELECT id FROM ${quote(table)} WHERE ${quote(column)} = ? AND _deleted_at IS NULL`,
      )
      return ids.pluck().all(value)
    },
    /**
     * The number of live rows that refer to rows of `name` whose deletion is confirmed (store/deletions/suspicions.ts).
     * A row that refers to two such rows counts twice. The table `name` has one or two key columns.
     */
    countDependants(name: string, { table, on }: Dependants) {
      const { key } = tableNamed(name)
      const refers = Object.entries(on).map(
        ([column, to]) => `d.${quote(column)} = a.${key.at(-1) === to ? 'key' : 'scope'}`,
      )
      // CROSS JOIN, since SQLite might otherwise scan the whole table of dependants.
      const count = prepare<number>(
        `SELECT count(*) FROM sync_suspicions a CROSS JOIN ${quote(table)} d ON ${refers.join(' AND ')}
         WHERE a.table_name = ? AND a.confirmed = 1 AND ${isLive(tableNamed(table))}`,
      )
      return onlyRow(count.pluck(), name)
    },
  }
}
