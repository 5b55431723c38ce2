import { quote } from '../store/database/sql.ts'
import type { Sqlite, StoredCell } from '../store/database/sqlite-types.ts'
import { type ExportTable, sourcesOf } from './export-tables.ts'
import type { Partition } from './partitions.ts'

export type RowReader = ReturnType<typeof createRowReader>

/** Each row has the cells of the columns in `sourcesOf`, followed by its month. Pure. */
export function rowQueries({ columns, rows }: ExportTable) {
  const { time, from, order } = rows
  const cells = sourcesOf(columns)
    .map(column => `t.${quote(column)}`)
    .join(', ')
  return {
    /**
     * Two parameters: the start of the range, and the exclusive end, both as text. Undefined where the table has no
     * time.
     */
    withTime:
      time &&
      `SELECT ${cells}, substr(${time.sql}, 1, 7) FROM ${from}
      WHERE ${time.sql} >= ? AND ${time.sql} < ? ORDER BY ${order}`,
    withoutTime: time
      ? `SELECT ${cells}, NULL FROM ${time.fromAll} WHERE ${time.sql} IS NULL`
      : `SELECT ${cells}, NULL FROM ${from} ORDER BY ${order}`,
  }
}

/** A text that sorts after every instant of all months, and at the end of a month after those of the month. */
const LAST = '~'

/** Reads the rows of a table by months. The last cell of each row is its month, or null. */
export function createRowReader(db: Sqlite, table: ExportTable) {
  const { withTime, withoutTime } = rowQueries(table)
  const between = (from: string, to: string) =>
    withTime === undefined ? [] : readRows(db, withTime, [from, to])
  /** The rows of a month; for null those without a time, which are all rows of a table that has none. */
  const of = (month: Partition) =>
    month === null ? readRows(db, withoutTime) : between(month, `${month}${LAST}`)
  return {
    of,
    /** All rows, earliest first, then those without a time. With a month: only the rows from that month on. */
    *from(month?: string) {
      yield* between(month ?? '', LAST)
      if (month === undefined) yield* of(null)
    },
  }
}

/** Reads the rows of a query one by one, with whole numbers as bigints. */
export const readRows = (
  db: Sqlite,
  sql: string,
  parameters: readonly StoredCell[] = [],
): Iterable<StoredCell[]> =>
  db
    .prepare<unknown[]>(sql)
    .raw()
    .safeIntegers()
    .iterate(...parameters) as Iterable<StoredCell[]>
