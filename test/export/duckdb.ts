import {
  DuckDBDateValue,
  DuckDBInstance,
  DuckDBTimestampTZValue,
  DuckDBTimestampValue,
  type DuckDBValue,
} from '@duckdb/node-api'

/** DuckDB as an independent reader of an export. */

export type DuckCell = string | number | bigint | boolean | null

export interface DuckTable {
  /** DuckDB's type of each column. */
  types: Readonly<Record<string, string>>
  rows: DuckCell[][]
}

export interface Duck {
  /** Instants have the warehouse's format, days `YYYY-MM-DD`. */
  read(sql: string): Promise<DuckTable>
  /** All files of a table, with `month` as the last column of a partitioned table. */
  table(target: string, folder: string): Promise<DuckTable>
}

export async function openDuck(): Promise<Duck> {
  const instance = await DuckDBInstance.create(':memory:')
  const connection = await instance.connect()
  const read: Duck['read'] = async sql => {
    const result = await connection.runAndReadAll(sql)
    const names = result.columnNames()
    return {
      types: Object.fromEntries(result.columnTypes().map((type, index) => [names[index], String(type)])),
      rows: result.getRows().map(row => row.map(plain)),
    }
  }
  return {
    read,
    table: (target, folder) =>
      read(`SELECT * FROM read_parquet('${target}/${folder}/**/*.parquet', hive_partitioning = true)`),
  }
}

function plain(value: DuckDBValue): DuckCell {
  if (value instanceof DuckDBTimestampTZValue) return new Date(Number(value.micros / 1000n)).toISOString()
  if (value instanceof DuckDBTimestampValue) return String(value)
  if (value instanceof DuckDBDateValue) return new Date(value.days * 86_400_000).toISOString().slice(0, 10)
  if (value === null || ['string', 'number', 'bigint', 'boolean'].includes(typeof value))
    return value as DuckCell
  throw new Error(`DuckDB gives a value of an unexpected kind: ${String(value)}`)
}

/** Sorts rows by their text, so that two lists can be compared. */
export function sorted(rows: readonly (readonly DuckCell[])[]): string[] {
  return rows
    .map(row => JSON.stringify(row, (_, value: unknown) => comparable(value)))
    .sort((a, b) => (a < b ? -1 : 1))
}

/** JSON has neither whole numbers beyond a double nor the sign of zero. */
function comparable(value: unknown): unknown {
  if (typeof value === 'bigint') return `${value}n`
  return Object.is(value, -0) ? '-0' : value
}
