import { TABLES } from '../catalog/catalog.ts'
import type { ResourceName } from '../declare/resource-names.ts'
import { type DescribedColumn, fullMeaning } from '../dictionary/described-table.ts'
import { DICTIONARY } from '../dictionary/dictionary.ts'
import { REPORT_VIEWS } from '../dictionary/report-tables.ts'
import { DIVISIONS, type Division, isExported } from '../store/changes/divisions.ts'
import { columnNames } from '../store/database/existing-tables.ts'
import { quote } from '../store/database/sql.ts'
import type { Sqlite } from '../store/database/sqlite-types.ts'
import { olderWarehouseError } from '../store/file/open.ts'
import { absentReportObjects } from '../store/reporting/derived-tables.ts'
import type { ExportKind } from './parquet-types.ts'

/** The exported tables, derived from the declarations and the dictionary. */

export interface ExportColumn {
  name: string
  kind: ExportKind
  /** The warehouse's column. Default: `name`. */
  source?: string
  /** True: a value that does not fit the kind is exported as NULL. Otherwise such a value is an error. */
  mayMisfit?: boolean | undefined
  /** What the column means. */
  doc?: string
}

/** The warehouse's columns to read, without duplicates, since SQLite limits the number of columns of a result. */
export function sourcesOf(columns: readonly ExportColumn[]): string[] {
  return [...new Set(columns.map(({ name, source }) => source ?? name))]
}

export interface ExportTable {
  /** Name of the table or view in the warehouse. */
  name: string
  /** Folder in the target, which is the table's name for readers. */
  folder: string
  /** The resource that determines the table's freshness; null for the sync state and the dictionary. */
  resource: ResourceName | null
  columns: readonly ExportColumn[]
  rows: RowSource
  /** A view is read as a whole. */
  isView?: boolean
}

/** How the rows are read: SQL in which the exported table is called `t`. */
export interface RowSource {
  /** FROM clause for the rows that have a time. In a table without a time, for all rows. */
  from: string
  /** Columns, each with `t.`, separated by a comma and a space. In a table without a time, a key of the rows. */
  order: string
  time?: Time
}

export interface Time {
  /** The column's name for the manifest; `table.column` where the column is in another table. */
  column: string
  /** SQL expression of the time. Its month is the partition. */
  sql: string
  /** FROM clause for all rows, including those whose time is NULL. */
  fromAll: string
}

/** The exported views, with the order of their rows. */
const VIEWS: Readonly<Record<string, string>> = {
  sync_status: 't.resource',
  sync_coverage: 't.resource, t.from_at',
  ...Object.fromEntries(
    REPORT_VIEWS.filter(({ selectBy }) => selectBy === undefined).map(({ name, columns }) => {
      const key = columns.filter(({ isKey }) => isKey)
      const order = (key.length > 0 ? key : columns).map(column => `t.${column.name}`).join(', ')
      return [name, order] as const
    }),
  ),
}

/**
 * The exported tables that this warehouse has, except the typed CRM tables. A table for reports is missing if another
 * program's object has its name.
 * @throws StopError (73) when an older version wrote the warehouse
 */
export function presentTables(db: Sqlite): readonly ExportTable[] {
  if (lacksColumns(db)) throw olderWarehouseError(db)
  return ownTables(db)
}

/**
 * Whether the warehouse lacks a column of an exported table. The next process that writes it creates the column, also
 * when no migration does: the views and the tables for reports follow their descriptions.
 */
export function lacksColumns(db: Sqlite): boolean {
  return ownTables(db).some(({ name, columns }) => {
    const present = columnNames(db, name)
    return columns.some(column => !present.has(column.name))
  })
}

function ownTables(db: Sqlite): readonly ExportTable[] {
  const absent = absentReportObjects(db)
  return declaredTables().filter(({ name }) => !absent.has(name))
}

/** All exported tables except the typed CRM tables, which depend on the workspace. */
export function declaredTables(): readonly ExportTable[] {
  return DICTIONARY.flatMap(described => {
    const { name } = described
    const rows = rowSourceOf(name)
    if (!rows) return []
    const resource = TABLES.get(name)?.resource ?? null
    const columns = described.columns.filter(column => isExported(column.name)).map(exportColumn)
    return [{ name, folder: name, resource, columns, rows, isView: VIEWS[name] !== undefined }]
  })
}

export function exportColumn(column: DescribedColumn): ExportColumn {
  const { name, mayMisfit } = column
  return { name, kind: exportKind(column), mayMisfit, doc: fullMeaning(column) }
}

function exportKind({ kind, mayMisfit }: DescribedColumn): ExportKind {
  if (kind === 'any') return 'number'
  if (mayMisfit && kind === 'timestamp') return 'instant'
  return mayMisfit && kind === 'date' ? 'day' : kind
}

/** @returns undefined where the table or view is not exported */
function rowSourceOf(name: string): RowSource | undefined {
  const order = VIEWS[name]
  if (order !== undefined) return { from: `${quote(name)} t`, order }
  const division = DIVISIONS.get(name)
  switch (division?.by) {
    case 'month':
      return byOwnTime(quote(name), division.column)
    case 'month-of-owner':
      return byTimeOfOwner(quote(name), division)
    case 'key':
      return byKey(quote(name), division.columns)
    default:
      return undefined
  }
}

function byOwnTime(table: string, column: string): RowSource {
  const sql = `t.${quote(column)}`
  return { from: `${table} t`, order: sql, time: { column, sql, fromAll: `${table} t` } }
}

/** Rows are read by the time of the rows that own them: a transcript is in its meeting's month. */
function byTimeOfOwner(
  table: string,
  { owner, column, on }: Extract<Division, { by: 'month-of-owner' }>,
): RowSource {
  const condition = `p.${quote(on.theirs)} = t.${quote(on.mine)}`
  const sql = `p.${quote(column)}`
  return {
    // CROSS JOIN makes SQLite read the owners by their time index, which gives the order, and look up rows by key.
    from: `${quote(owner)} p CROSS JOIN ${table} t ON ${condition}`,
    order: sql,
    time: {
      column: `${owner}.${column}`,
      sql,
      fromAll: `${table} t LEFT JOIN ${quote(owner)} p ON ${condition}`,
    },
  }
}

function byKey(table: string, columns: readonly string[]): RowSource {
  return { from: `${table} t`, order: columns.map(column => `t.${quote(column)}`).join(', ') }
}
