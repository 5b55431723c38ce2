import type { DescribedTable } from '../../src/dictionary/described-table.ts'
import { DICTIONARY } from '../../src/dictionary/dictionary.ts'
import { type ExportColumn, exportColumn } from '../../src/export/export-tables.ts'
import { namesForReaders } from '../../src/publish/iceberg/iceberg-schema.ts'
import { type PublishedTable, publishedTables } from '../../src/publish/published-tables.ts'
import { readCrmTables } from '../../src/store/crm/dictionary.ts'
import type { Sqlite } from '../../src/store/database/sqlite-types.ts'

/**
 * The rows that a publication must have, from SQLite. From `src/` come only the names and kinds of the tables and
 * columns; the conversion of the values is a second implementation.
 */

/** Times are microseconds since 1970 as text, days `YYYY-MM-DD`, whole numbers text. */
export type Cell = string | number | boolean | null

export interface ExpectedTable {
  folder: string
  columns: readonly { name: string; kind: ExportColumn['kind'] }[]
  rows(): Iterable<Cell[]>
}

type Stored = string | number | bigint | null

/** A view whose rows depend on the time of the query. */
export const CLOCK_TABLE = 'sync_status'

/** Every table except `publications`, which the warehouse does not have. */
export function expectedTables(db: Sqlite): readonly ExpectedTable[] {
  return publishedTables(db).map(table => expectedTable(db, table))
}

function expectedTable(db: Sqlite, { read, written }: PublishedTable): ExpectedTable {
  const { columns, folder, rows } = read
  const cells = columns.map(({ name, source }) => `t.${quoted(source ?? name)}`)
  // The month of the owner is in no column of the table.
  const hasMonth = written.columns.length > columns.length
  const month = hasMonth ? [`substr(${rows.time?.sql}, 1, 7)`] : []
  const sql = `SELECT ${[...cells, ...month].join(', ')} FROM ${rows.time?.fromAll ?? rows.from}`
  const statement = db.prepare(sql).raw().safeIntegers()
  return {
    folder,
    columns: written.columns,
    *rows() {
      for (const row of statement.iterate() as Iterable<Stored[]>)
        yield written.columns.map(({ kind }, place) => expectedCell(kind, row[place] ?? null))
    },
  }
}

/** A view of the warehouse that is also printed for engines. */
export interface ExpectedView {
  /** Its name for engines. */
  name: string
  columns: string[]
  rows: Cell[][]
}

/** The views `live_…` and `labelled_…` over published tables. */
export function expectedViews(db: Sqlite): readonly ExpectedView[] {
  const tables = new Map(publishedTables(db).map(({ read }) => [read.name, read.folder]))
  const described = [...DICTIONARY, ...readCrmTables(sql => db.prepare(sql))]
  return described.flatMap(({ name, form, columns }) => {
    const [, prefix = '', table = ''] = /^(live_|labelled_)(.*)$/s.exec(name) ?? []
    const folder = tables.get(table)
    if (form !== 'view' || folder === undefined) return []
    const rows = describedRows(db, { name, columns })
    return [
      { name: `${prefix}${folder}`, columns: namesForReaders(columns.map(column => column.name)), rows },
    ]
  })
}

/** The rows of a table or view that the dictionary describes. */
export function describedRows(
  db: Sqlite,
  { name, columns }: Pick<DescribedTable, 'name' | 'columns'>,
): Cell[][] {
  const kinds = columns.map(column => exportColumn(column).kind)
  const sql = `SELECT ${columns.map(column => quoted(column.name)).join(', ')} FROM ${quoted(name)}`
  const stored = db.prepare(sql).raw().safeIntegers().all() as Stored[][]
  return stored.map(row => kinds.map((kind, place) => expectedCell(kind, row[place] ?? null)))
}

const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`

const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/
const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

function expectedCell(kind: ExportColumn['kind'], cell: Stored): Cell {
  if (cell === null) return null
  switch (kind) {
    case 'text':
    case 'json':
      return String(cell)
    case 'digits':
      return typeof cell === 'string' && NUMBER.test(cell) ? cell : null
    case 'integer':
      return typeof cell === 'bigint' ? String(cell) : null
    case 'boolean':
      return cell === 1n
    case 'real':
    case 'number': {
      const isNumber = typeof cell !== 'string' || NUMBER.test(cell)
      return isNumber && Number.isFinite(Number(cell)) ? Number(cell) : null
    }
    case 'timestamp':
    case 'instant': {
      const ms = INSTANT.test(String(cell)) ? Date.parse(String(cell)) : Number.NaN
      return Number.isNaN(ms) ? null : String(BigInt(ms) * 1000n)
    }
    case 'date':
    case 'day':
      return dayOf(String(cell))
  }
}

/** The day of a date or a date-time; null for any other text. */
function dayOf(text: string): string | null {
  const day = /^(\d{4}-\d\d-\d\d)(?:[T ]|$)/.exec(text)?.[1]
  if (day === undefined) return null
  const date = new Date(`${day}T00:00:00Z`)
  return !Number.isNaN(date.valueOf()) && date.toISOString().startsWith(day) ? day : null
}

/** A text for each row: equal rows have equal texts. JSON has no minus zero. */
export const rowText = (row: readonly Cell[]): string =>
  JSON.stringify(row, (_, cell: unknown) => (Object.is(cell, -0) ? '-0' : cell))
