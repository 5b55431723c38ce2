import { type Clock, isoInstant } from '../base/clock.ts'
import { EXIT_STATUS, StopError } from '../base/errors.ts'
import { completeSentence } from '../health/completeness.ts'
import type { Sqlite } from '../store/database/sqlite-types.ts'
import { refuseOlder } from '../store/file/open.ts'
import { workspaceOf } from '../store/file/workspace.ts'
import { appliedMigrations } from '../store/migrations/journal.ts'
import { noWarehouseError, readCompleteness, readStatus } from '../store/status/status.ts'
import { META, readMeta } from '../store/sync/meta.ts'
import { dealViews } from '../store/views/deal-views.ts'
import { chosenTables } from './chosen-tables.ts'
import { exportedCrmTables } from './crm-tables.ts'
import { duckdbViews, VIEWS_SCRIPT } from './duckdb-views.ts'
import { type ExportTable, presentTables } from './export-tables.ts'
import { createFingerprint } from './fingerprint.ts'
import {
  FORMAT,
  MANIFEST,
  type Manifest,
  type ManifestResource,
  type ManifestTable,
  manifestTable,
  type TargetFile,
} from './manifest.ts'
import { createParquetFile } from './parquet-file.ts'
import {
  createRowCounter,
  nextTurn,
  type Partition,
  type PartitionReading,
  readPartitions,
  type Sink,
  type TableProgress,
} from './partitions.ts'
import { createRowReader, type RowReader } from './row-queries.ts'
import { EXPORT_FOLDER, filePath, type Target } from './target.ts'
import { targetError } from './target-folder.ts'

/**
 * Exports the warehouse as of one instant: Parquet files and a manifest. Each file is replaced atomically (target.ts).
 * The manifest and `views.sql` are written after all files, and outdated files are removed last, so an export after a
 * kill compares and continues. parquet-file.ts writes a file.
 */

export interface ExportOptions {
  /** Opened read-only. */
  db: Sqlite
  target: Target
  clock: Clock
  /** Version of this program. */
  version: string
  /** Names of tables or of their folders. Default: all. */
  tables?: readonly string[] | undefined
  /** An instant: partitions of earlier months are not touched. */
  since?: string | undefined
  full: boolean
  signal: AbortSignal
  onProgress(progress: TableProgress): void
}

export type ExportSummary = Awaited<ReturnType<typeof exportInstant>>
export type TableSummary = ReturnType<typeof summaryOf>

/**
 * @throws StopError (exit status 64) for an unknown table or a part of another warehouse's export, 73 when something
 * cannot be read or written
 */
export async function exportWarehouse(options: ExportOptions): Promise<ExportSummary> {
  return atOneInstant(options.db, () =>
    exportInstant(options).catch(error => {
      throw targetError(error, options.target.path, EXPORT_FOLDER)
    }),
  )
}

/** Reads a warehouse as of one instant: all statements of `work` see the same rows. */
export async function atOneInstant<Result>(db: Sqlite, work: () => Promise<Result>): Promise<Result> {
  if (appliedMigrations(db).length === 0) throw noWarehouseError(db.name)
  refuseOlder(db)
  // Sorting may need more memory than the machine has.
  db.pragma('temp_store = FILE')
  db.exec('BEGIN')
  try {
    // The view `sync_status` counts all rows whenever it is read, and depends on the clock. The rollback removes this
    // copy.
    db.exec('CREATE TEMP TABLE sync_status AS SELECT * FROM main.sync_status')
    return await work()
  } finally {
    // Some errors of SQLite have already ended the transaction.
    if (db.inTransaction) db.exec('ROLLBACK')
  }
}

async function exportInstant(options: ExportOptions) {
  const { db, target, clock } = options
  const exportedAt = isoInstant(clock.now())
  const resources = readStatus(db).map(
    ({ resource, state, fresh_as_of, complete_as_of }): ManifestResource => ({
      resource,
      state,
      fresh_as_of,
      complete_as_of,
    }),
  )
  const completeness = readCompleteness(db)
  const all = [...presentTables(db), ...exportedCrmTables(db)]
  const chosen = chosenTables(all, options.tables)
  const warehouse = { identity: readMeta(db, META.identity) ?? null, workspace: workspaceOf(db) ?? null }
  const before = target.readManifest()
  if (before && isPartial(options) && !isExportOf(before, warehouse)) throw otherWarehouseError(target)
  const earlier = before?.tables ?? []
  const stale: string[] = []
  const current: ManifestTable[] = []
  const summaries: TableSummary[] = []
  const work = {
    ...options,
    createdBy: `parley ${options.version}`,
    sinceMonth: options.since?.slice(0, 7),
  }
  for (const [done, table] of chosen.entries()) {
    const at = { table: table.name, done, tables: chosen.length }
    const onRows = createRowCounter(at, options.onProgress)
    const outcome = await exportTable({ ...work, onRows }, table)
    const files = [
      ...outcome.untouched.map(file => ({ ...file, exported_at: earlierExportedAt(earlier, file.path) })),
      ...[...outcome.verified, ...outcome.written].map(file => ({ ...file, exported_at: exportedAt })),
    ].toSorted((one, other) => (one.path < other.path ? -1 : 1))
    const entry = manifestTable(table, files, { exported_at: exportedAt, resources })
    current.push(entry)
    summaries.push(summaryOf(entry, outcome.written))
    stale.push(...outcome.stale)
  }
  if (!options.tables) stale.push(...filesOfUnknownTables(target, all))
  target.syncFolders()
  const manifest: Manifest = {
    format: FORMAT,
    parley: options.version,
    warehouse: warehouse.identity,
    workspace: warehouse.workspace,
    schema_version: appliedMigrations(db).length,
    exported_at: exportedAt,
    purged_at: purgedAtOf(options, before),
    resources,
    tables: mergedTables(all, earlier, current, options.tables !== undefined),
  }
  const isWhole = all.every(({ name }) => manifest.tables.some(({ table }) => table === name))
  target.writeText(VIEWS_SCRIPT, duckdbViews(manifest.tables, isWhole ? dealViews(db) : []))
  target.writeText(MANIFEST, `${JSON.stringify(manifest, null, 1)}\n`)
  for (const file of stale) target.remove(file)
  return {
    exported_at: exportedAt,
    /** The value for the whole warehouse; null while history is loading. */
    complete_as_of: completeness.complete_as_of,
    /** The same as a sentence, with the resources that it is about and what `sync.since` leaves out. */
    completeness: completeSentence(completeness),
    purged_at: manifest.purged_at,
    tables: summaries,
    files_removed: stale.length,
  }
}

/** If files are left out, the earlier value stays, which holds for them. */
function purgedAtOf(options: ExportOptions, before: Pick<Manifest, 'purged_at'> | undefined): string | null {
  if (isPartial(options) && before) return before.purged_at ?? null
  return readMeta(options.db, META.purgedAt) ?? null
}

/** Whether files of an earlier export may stay unread. */
const isPartial = ({ tables, since }: ExportOptions): boolean => tables !== undefined || since !== undefined

/** A manifest of an earlier version does not name the warehouse. Then the workspace decides, where both are known. */
function isExportOf(
  before: Manifest,
  { identity, workspace }: { identity: string | null; workspace: Manifest['workspace'] },
): boolean {
  if (before.warehouse) return before.warehouse === identity
  return !before.workspace || !workspace || before.workspace.id === workspace.id
}

const otherWarehouseError = ({ path }: Target): StopError =>
  new StopError(
    `${path} has the export of another warehouse, of which --tables or --since would keep files`,
    {
      code: 'export-other-warehouse',
      hint: 'Export all tables and months, which replaces that export, or export to another folder. Nothing was changed.',
      exitStatus: EXIT_STATUS.usage,
    },
  )

function earlierExportedAt(tables: readonly ManifestTable[], path: string): string | null {
  return tables.flatMap(({ files }) => files).find(file => file.path === path)?.exported_at ?? null
}

/** Files of tables that no longer exist, such as those of deleted CRM objects. */
function filesOfUnknownTables(target: Target, all: readonly ExportTable[]): string[] {
  const known = new Set(all.map(({ folder }) => folder))
  return target
    .folders()
    .filter(folder => !known.has(folder))
    .flatMap(folder => target.files(folder).map(({ path }) => path))
}

/** A table that `--tables` left out keeps its entry from the earlier manifest. */
function mergedTables(
  all: readonly ExportTable[],
  earlier: readonly ManifestTable[],
  written: readonly ManifestTable[],
  isChoice: boolean,
): ManifestTable[] {
  const names = new Set([
    ...all.map(({ name }) => name),
    ...(isChoice ? earlier.map(({ table }) => table) : []),
  ])
  return [...names].flatMap(
    name => written.find(({ table }) => table === name) ?? earlier.find(({ table }) => table === name) ?? [],
  )
}

/** The whole table, then what this export wrote of it. */
function summaryOf(table: ManifestTable, written: readonly TargetFile[]) {
  const sum = (of: 'rows' | 'bytes') => written.reduce((total, file) => total + file[of], 0)
  return {
    table: table.table,
    rows: table.rows,
    bytes: table.bytes,
    files: table.files.length,
    files_written: written.length,
    rows_written: sum('rows'),
    bytes_written: sum('bytes'),
  }
}

interface TableWork extends PartitionReading, Pick<ExportOptions, 'db' | 'target' | 'full'> {
  createdBy: string
  /** Partitions of earlier months are neither read nor touched. */
  sinceMonth: string | undefined
}

/**
 * Updates the files of one table to its rows at the instant of the export. Only partitions that differ are written, or
 * all of them if `full`.
 */
async function exportTable(work: TableWork, table: ExportTable) {
  const { target, full, signal } = work
  // Signals only arrive between two turns of the event loop.
  await nextTurn()
  if (signal.aborted) throw signal.reason
  const sinceMonth = table.rows.time ? work.sinceMonth : undefined
  const present = target.files(table.folder)
  const isInRange = ({ month }: TargetFile) =>
    sinceMonth === undefined || (month !== null && month >= sinceMonth)
  const before = new Map(present.filter(isInRange).map(file => [file.path, file]))
  const untouched = present.filter(file => !isInRange(file))
  const reader = createRowReader(work.db, table)
  const reading = { ...work, table, sinceMonth, reader, hasOthers: untouched.length > 0 }

  const written: TargetFile[] = []
  const verified: TargetFile[] = []
  if (full || present.length === 0) {
    written.push(...(await readAll(reading, month => fileFor(reading, month))).values())
  } else {
    for (const [month, mark] of await readAll(reading, () => createFingerprint(table.columns))) {
      const file = before.get(filePath(table, month))
      if (file && file.fingerprint === mark.fingerprint && file.rows === mark.rows) verified.push(file)
      else written.push(await writePartition(reading, month))
    }
  }
  const current = new Set([...verified, ...written].map(({ path }) => path))
  return {
    written,
    /** Those that compared equal. */
    verified,
    /** Those of earlier months, which were not checked. */
    untouched,
    /** Paths of files that are no longer part of the table. They are removed after the manifest is written. */
    stale: [...before.keys()].filter(path => !current.has(path)),
  }
}

interface TableRead extends TableWork {
  table: ExportTable
  reader: RowReader
  /** Whether the table keeps files that are not read. */
  hasOthers: boolean
}

/** Reads every partition into a sink. An empty table has one empty partition, so that readers find the table. */
async function readAll<Result>(
  reading: TableRead,
  open: (month: Partition) => Sink<Result>,
): Promise<Map<Partition, Result>> {
  const { reader, sinceMonth, hasOthers } = reading
  const results = await readPartitions(reading, reader.from(sinceMonth), open)
  if (results.size === 0 && !hasOthers) results.set(null, open(null).finish())
  return results
}

async function writePartition(reading: TableRead, month: Partition): Promise<TargetFile> {
  const open = () => fileFor(reading, month)
  const files = await readPartitions(reading, reading.reader.of(month), open)
  return files.get(month) ?? open().finish()
}

function fileFor({ target, table, createdBy }: TableRead, month: Partition): Sink<TargetFile> {
  const path = filePath(table, month)
  const { file, end, abandon } = target.beginFile(path)
  const { add, finish } = createParquetFile({ file, table, createdBy })
  return {
    add,
    finish() {
      const { fingerprint, rows, bytes } = finish()
      end()
      return { path, month, rows, bytes, fingerprint }
    },
    abandon,
  }
}
