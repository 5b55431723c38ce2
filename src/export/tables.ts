import { ownerOf, type PlacedTable, TABLES } from '../catalog/catalog.ts'
import type { ColumnKind } from '../catalog/resource.ts'
import type { ResourceName } from '../catalog/resource-names.ts'
import { quote } from '../store/database/sql.ts'
import type { ExportKind } from './parquet-types.ts'

/** The exported tables, derived from the declarations. Pure. */

export interface ExportColumn {
  name: string
  kind: ExportKind
  /** The warehouse's column. Default: `name`. */
  source?: string
  /** True: a value that does not fit the kind is exported as NULL. Otherwise such a value is an error. */
  mayMisfit?: boolean
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
}

/** All exported tables except the typed CRM tables, which depend on the workspace. */
export function declaredTables(): readonly ExportTable[] {
  return [...[...TABLES.values()].map(declaredTable), ...SYNC_TABLES]
}

function declaredTable(placed: PlacedTable): ExportTable {
  const { table, resource } = placed
  const declared = Object.entries(table.columns).map(([name, { kind }]) => ({ name, kind }))
  return {
    name: table.name,
    folder: table.name,
    resource,
    columns: [
      ...declared.filter(({ name }) => !name.startsWith('_')),
      ...(table.kind === 'entity' ? ENTITY_COLUMNS : []),
      ...(table.kind === 'link' ? [] : [EXTRA]),
    ],
    rows: timeOf(placed) ?? {
      from: `${quote(table.name)} t`,
      order: table.storage === 'rowid' ? 't._id' : table.key.map(column => `t.${quote(column)}`).join(', '),
    },
  }
}

const ENTITY_COLUMNS: readonly ExportColumn[] = [
  '_first_seen_at',
  '_synced_at',
  '_changed_at',
  '_deleted_at',
].map(name => ({ name, kind: 'timestamp' }))

const EXTRA: ExportColumn = { name: '_extra', kind: 'json' }

/** Rows are read by their own time, or by that of the rows that own them: a transcript is in its meeting's month. */
function timeOf(placed: PlacedTable): RowSource | undefined {
  const { table } = placed
  const own = TIMES[table.name]
  if (own !== undefined) return byOwnTime(quote(table.name), own)
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

function byOwnTime(table: string, column: string): RowSource {
  const sql = `t.${quote(column)}`
  return { from: `${table} t`, order: sql, time: { column, sql, fromAll: `${table} t` } }
}

const columnsOf = (kind: ColumnKind, ...names: readonly string[]): ExportColumn[] =>
  names.map(name => ({ name, kind }))

interface PlainTable {
  name: string
  columns: readonly ExportColumn[]
  order: string
  time?: string
}

function plainTable({ name, columns, order, time }: PlainTable): ExportTable {
  const rows = time === undefined ? { from: `${name} t`, order } : byOwnTime(name, time)
  return { name, folder: name, resource: null, columns, rows }
}

/** The public sync state, the data dictionary and the questions. */
const SYNC_TABLES: readonly ExportTable[] = [
  plainTable({
    name: 'sync_status',
    columns: [
      ...columnsOf('text', 'resource', 'state', 'reason'),
      ...columnsOf('integer', 'rows_live', 'rows_deleted'),
      ...columnsOf('timestamp', 'newest_at', 'fresh_as_of', 'complete_as_of'),
      ...columnsOf('integer', 'backfill_done', 'backfill_total', 'pending_tasks', 'rejected'),
      ...columnsOf('timestamp', 'last_success_at', 'next_run_at'),
    ],
    order: 't.resource',
  }),
  plainTable({
    name: 'sync_coverage',
    columns: [
      ...columnsOf('text', 'resource'),
      ...columnsOf('timestamp', 'from_at', 'to_at', 'listed_at'),
      ...columnsOf('integer', 'rows_live', 'bodies_present', 'bodies_pending'),
    ],
    order: 't.resource, t.from_at',
  }),
  plainTable({
    name: 'sync_runs',
    columns: [
      ...columnsOf('integer', 'id'),
      ...columnsOf('text', 'resource', 'lane'),
      ...columnsOf('timestamp', 'started_at', 'ended_at'),
      ...columnsOf('text', 'outcome'),
      ...columnsOf('integer', 'requests', 'throttled', 'rows_read', 'rows_changed', 'rows_deleted'),
      ...columnsOf('text', 'error'),
    ],
    order: 't.id',
    time: 'started_at',
  }),
  plainTable({
    name: 'sync_rejects',
    columns: [
      ...columnsOf('integer', 'id'),
      ...columnsOf('text', 'resource'),
      ...columnsOf('json', 'item'),
      ...columnsOf('text', 'reason'),
      ...columnsOf('timestamp', 'first_seen_at', 'last_seen_at', 'resolved_at'),
    ],
    order: 't.id',
  }),
  plainTable({
    name: 'data_dictionary',
    columns: [
      ...columnsOf('text', 'table_name', 'column_name'),
      ...columnsOf('integer', 'position'),
      ...columnsOf('text', 'type', 'null_meaning', 'description', 'source_field', 'unit', 'example'),
    ],
    order: 't.table_name, t.column_name',
  }),
  plainTable({
    name: 'parley_questions',
    columns: [
      ...columnsOf('text', 'name', 'question'),
      ...columnsOf('json', 'parameters'),
      ...columnsOf('text', 'sql', 'duckdb_sql'),
    ],
    order: 't.name',
  }),
]
