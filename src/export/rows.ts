import type { Sqlite } from '../store/open.ts'
import { quote } from '../store/sql.ts'
import type { StoredCell } from './parquet-types.ts'
import { type ExportTable, sourcesOf } from './tables.ts'

/** Reads the rows of a table partition by partition. */
export interface RowReader {
  /**
   * Rows with a time, the earliest first, or those of a table without times; `from` and `to` are months, both
   * included. After its cells each row has its month, null where the table has no time.
   */
  timed(range: MonthRange): Iterable<StoredCell[]>
  /** Rows without a time, each with a null after its cells. */
  timeless(): Iterable<StoredCell[]>
  /** Of the whole table. */
  count(): number
}

export interface MonthRange {
  from?: string | undefined
  to?: string | undefined
}

/** Later than every instant of the month, and earlier than those of the next. */
const afterMonth = (month: string): string => `${month}~`

export interface RowQueries {
  /** Bound to the first instant of the range and to the first after it where the table has a time. */
  timed: string
  /** Undefined where the table has no time. */
  timeless: string | undefined
  count: string
}

/** Pure. The cells of a row are those of `sourcesOf` its columns; after them comes its month. */
export function rowQueries({ name, columns, rows }: ExportTable): RowQueries {
  const { time, from, order } = rows
  const cells = sourcesOf(columns)
    .map(column => `t.${quote(column)}`)
    .join(', ')
  const count = `SELECT count(*) FROM ${quote(name)}`
  if (!time)
    return { timed: `SELECT ${cells}, NULL FROM ${from} ORDER BY ${order}`, timeless: undefined, count }
  return {
    timed: `SELECT ${cells}, substr(${time.sql}, 1, 7) FROM ${from}
      WHERE ${time.sql} >= ? AND ${time.sql} < ? ORDER BY ${order}`,
    timeless: `SELECT ${cells}, NULL FROM ${time.fromAll} WHERE ${time.sql} IS NULL`,
    count,
  }
}

export function createRowReader(db: Sqlite, table: ExportTable): RowReader {
  const { time } = table.rows
  const { timed, timeless, count } = rowQueries(table)
  const read = (sql: string, ...bound: string[]) =>
    db
      .prepare<unknown[]>(sql)
      .raw()
      .safeIntegers()
      .iterate(...bound) as Iterable<StoredCell[]>
  return {
    timed: ({ from = '', to }) =>
      time ? read(timed, from, to === undefined ? '~' : afterMonth(to)) : read(timed),
    timeless: () => (timeless === undefined ? [] : read(timeless)),
    count: () => db.prepare(count).pluck().get() as number,
  }
}
