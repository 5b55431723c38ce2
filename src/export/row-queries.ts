import { quote } from '../store/database/sql.ts'
import type { Sqlite, StoredCell } from '../store/database/sqlite-types.ts'
import { type ExportTable, sourcesOf } from './export-tables.ts'

/** Reads the rows of a table partition by partition. */
export interface RowReader {
  /**
   * Rows with a time, earliest first; all rows of a table without a time. `from` and `to` are months, both inclusive.
   * The last cell of each row is its month, or null where the table has no time.
   */
  withTime(range: MonthRange): Iterable<StoredCell[]>
  /** Rows whose time is NULL. The last cell of each row is null. */
  withoutTime(): Iterable<StoredCell[]>
  /** Number of rows of the whole table. */
  count(): number
}

export interface MonthRange {
  from?: string | undefined
  to?: string | undefined
}

/** A text that sorts after every instant of the month and before those of the next. */
const afterMonth = (month: string): string => `${month}~`

export interface RowQueries {
  /** If the table has a time, two parameters: the start of the range, and the exclusive end, both as text. */
  withTime: string
  /** Undefined where the table has no time. */
  withoutTime: string | undefined
  count: string
}

/** Each row has the cells of the columns in `sourcesOf`, followed by its month. Pure. */
export function rowQueries({ name, columns, rows }: ExportTable): RowQueries {
  const { time, from, order } = rows
  const cells = sourcesOf(columns)
    .map(column => `t.${quote(column)}`)
    .join(', ')
  const count = `SELECT count(*) FROM ${quote(name)}`
  if (!time)
    return { withTime: `SELECT ${cells}, NULL FROM ${from} ORDER BY ${order}`, withoutTime: undefined, count }
  return {
    withTime: `SELECT ${cells}, substr(${time.sql}, 1, 7) FROM ${from}
      WHERE ${time.sql} >= ? AND ${time.sql} < ? ORDER BY ${order}`,
    withoutTime: `SELECT ${cells}, NULL FROM ${time.fromAll} WHERE ${time.sql} IS NULL`,
    count,
  }
}

export function createRowReader(db: Sqlite, table: ExportTable): RowReader {
  const { time } = table.rows
  const { withTime: timed, withoutTime: timeless, count } = rowQueries(table)
  const read = (sql: string, ...bound: string[]) =>
    db
      .prepare<unknown[]>(sql)
      .raw()
      .safeIntegers()
      .iterate(...bound) as Iterable<StoredCell[]>
  return {
    withTime: ({ from = '', to }) =>
      time ? read(timed, from, to === undefined ? '~' : afterMonth(to)) : read(timed),
    withoutTime: () => (timeless === undefined ? [] : read(timeless)),
    count: () => db.prepare(count).pluck().get() as number,
  }
}
