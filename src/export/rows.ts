import type { Sqlite } from '../store/open.ts'
import { quote } from '../store/sql.ts'
import type { StoredCell } from './parquet-types.ts'
import type { ExportTable } from './tables.ts'

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

export function createRowReader(db: Sqlite, { name, columns, rows }: ExportTable): RowReader {
  const { gathered, time, from, order } = rows
  if (gathered) {
    db.exec(`DROP TABLE IF EXISTS temp.${quote(gathered.name)}`)
    db.exec(`CREATE TEMP TABLE ${quote(gathered.name)} AS ${gathered.select}`)
  }
  const whole = gathered ? `temp.${quote(gathered.name)}` : quote(name)
  const cells = columns.map(column => `t.${quote(column.name)}`).join(', ')
  const reading = (sql: string) => db.prepare<unknown[]>(sql).raw().safeIntegers()
  const read = (sql: string, ...bound: string[]) => reading(sql).iterate(...bound) as Iterable<StoredCell[]>
  return {
    timed(range) {
      if (!time) return read(`SELECT ${cells}, NULL FROM ${from} ORDER BY ${order}`)
      const bounds = [range.from ?? '', range.to === undefined ? '~' : afterMonth(range.to)]
      const where = `${time.sql} >= ? AND ${time.sql} < ?`
      return read(
        `SELECT ${cells}, substr(${time.sql}, 1, 7) FROM ${from} WHERE ${where} ORDER BY ${order}`,
        ...bounds,
      )
    },
    timeless: () =>
      time ? read(`SELECT ${cells}, NULL FROM ${time.fromAll} WHERE ${time.sql} IS NULL`) : [],
    count: () => db.prepare(`SELECT count(*) FROM ${whole}`).pluck().get() as number,
  }
}
