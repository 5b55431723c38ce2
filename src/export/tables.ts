import { ownerOf, type PlacedTable, TABLES } from '../catalog/catalog.ts'
import type { ResourceName } from '../catalog/resource-names.ts'
import type { DescribedColumn } from '../dictionary/described-table.ts'
import { DICTIONARY } from '../dictionary/dictionary.ts'
import { quote } from '../store/database/sql.ts'
import type { ExportKind } from './parquet-types.ts'

/** The exported tables, derived from the declarations and the dictionary. Pure. */

export interface ExportColumn {
  name: string
  kind: ExportKind
  /** The warehouse's column. Default: `name`. */
  source?: string
  /** True: a value that does not fit the kind is exported as NULL. Otherwise such a value is an error. */
  mayMisfit?: boolean | undefined
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
}

/** How the rows are read: SQL in which the exported table is called `t`. */
export interface RowSource {
  /** FROM clause for the rows that have a time. In a table without a time, for all rows. */
  from: string
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

/**
 * The event time by table. `crm_records` has none: `updated_at` changes whenever a record changes, so rows would move
 * between partitions.
 */
const TIMES: Readonly<Record<string, string>> = {
  activities: 'occurred_at',
  message_copies: 'received_at',
  messages: 'received_at',
  meetings: 'start_time',
  playbook_results: 'created_at',
  crm_record_changes: 'observed_at',
  access_logs: 'occurred_at',
  sync_runs: 'started_at',
  sync_minutes: 'at',
}

/** The order of the rows of tables and views that no resource declares and that have no time. */
const ORDERS: Readonly<Record<string, string>> = {
  sync_status: 't.resource',
  sync_coverage: 't.resource, t.from_at',
  sync_rejects: 't.id',
  sync_days: 't.day, t.resource',
  data_dictionary: 't.table_name, t.column_name',
  parley_questions: 't.name',
}

/** All exported tables except the typed CRM tables, which depend on the workspace. */
export function declaredTables(): readonly ExportTable[] {
  return DICTIONARY.flatMap(described => {
    const { name } = described
    const rows = rowSourceOf(name)
    if (!rows) return []
    const resource = TABLES.get(name)?.resource ?? null
    const columns = described.columns.filter(column => !isInternal(column)).map(exportColumn)
    return [{ name, folder: name, resource, columns, rows }]
  })
}

const GENERAL_COLUMNS = ['_first_seen_at', '_synced_at', '_changed_at', '_deleted_at', '_extra']

const isInternal = ({ name }: DescribedColumn): boolean =>
  name.startsWith('_') && !GENERAL_COLUMNS.includes(name)

export function exportColumn(column: DescribedColumn): ExportColumn {
  const { name, mayMisfit } = column
  return { name, kind: exportKind(column), mayMisfit }
}

function exportKind({ kind, mayMisfit }: DescribedColumn): ExportKind {
  if (kind === 'any') return 'number'
  if (mayMisfit && kind === 'timestamp') return 'instant'
  return mayMisfit && kind === 'date' ? 'day' : kind
}

/** Undefined where the table or view is not exported. */
function rowSourceOf(name: string): RowSource | undefined {
  const time = TIMES[name]
  if (time !== undefined) return byOwnTime(quote(name), time)
  const order = ORDERS[name]
  if (order !== undefined) return { from: `${quote(name)} t`, order }
  const placed = TABLES.get(name)
  return placed && (byTimeOfOwner(placed) ?? byKey(placed))
}

function byOwnTime(table: string, column: string): RowSource {
  const sql = `t.${quote(column)}`
  return { from: `${table} t`, order: sql, time: { column, sql, fromAll: `${table} t` } }
}

/** Rows are read by the time of the rows that own them: a transcript is in its meeting's month. */
function byTimeOfOwner(placed: PlacedTable): RowSource | undefined {
  const { table } = placed
  const owner = ownerOf(placed)
  const theirs = owner && TIMES[owner.table]
  if (!owner || theirs === undefined) return undefined
  const on = Object.entries(owner.on).map(([mine, other]) => `p.${quote(other)} = t.${quote(mine)}`)
  const sql = `p.${quote(theirs)}`
  return {
    // CROSS JOIN makes SQLite read the owners by their time index, which gives the order, and look up rows by key.
    from: `${quote(owner.table)} p CROSS JOIN ${quote(table.name)} t ON ${on.join(' AND ')}`,
    order: sql,
    time: {
      column: `${owner.table}.${theirs}`,
      sql,
      fromAll: `${quote(table.name)} t LEFT JOIN ${quote(owner.table)} p ON ${on.join(' AND ')}`,
    },
  }
}

function byKey({ table }: PlacedTable): RowSource {
  const key = table.storage === 'rowid' ? ['_id'] : table.key
  return { from: `${quote(table.name)} t`, order: key.map(column => `t.${quote(column)}`).join(', ') }
}
