import { type Clock, isoInstant } from '../base/clock.ts'
import { EXIT_STATUS, ParleyError, StopError } from '../base/errors.ts'
import { atOneInstant } from '../export/export.ts'
import { createRowCounter, type TableProgress } from '../export/partitions.ts'
import type { Sqlite } from '../store/database/sqlite-types.ts'
import { readCompleteness } from '../store/status/status.ts'
import { META, readMeta } from '../store/sync/meta.ts'
import { type BegunPublication, beginPublication, stoppedAfter } from './begin-publication.ts'
import { comparisonWith, type PartsComparison, type PartsToCompare, partsToCompare } from './comparison.ts'
import { inParallel } from './in-parallel.ts'
import { isOvertaken, writeHint } from './metadata-file.ts'
import {
  keptRows,
  lastCompared,
  PUBLICATIONS,
  type PublicationRow,
  publicationsTable,
  rowsIn,
  snapshotsShown,
} from './publications.ts'
import {
  type TablePublication,
  type TablePublishing,
  type WrittenTable,
  writeTable,
} from './publish-table.ts'
import { type PublishedTarget, readTarget } from './published-state.ts'
import { droppedTable, type PublishedTable, publishedTables } from './published-tables.ts'
import type { Storage } from './storage/storage.ts'
import type { TargetReader } from './storage/target-reader.ts'
import { ERASED_PROPERTY, expireSnapshots, removeUncommitted, removeUnneeded } from './unneeded-files.ts'

/**
 * Publishes the warehouse as of one instant: every table as an Iceberg table. Tables whose rows belong to rows of other
 * tables come first, the table `publications` last. If a publication is interrupted, the target still shows the last
 * complete one, and the next one takes a new number and compares again.
 */
export interface PublishOptions {
  /** Opened read-only. */
  db: Sqlite
  storage: Storage
  clock: Clock
  /** Version of this program. */
  version: string
  /** How many publications stay readable. */
  keep: number
  /** Names of the tables to publish, or of their folders. Tables of the target that are not named lose their rows. */
  tables?: readonly string[] | undefined
  /** Compares every row, including rows of which no change was noted. */
  full: boolean
  signal: AbortSignal
  onProgress(progress: TableProgress): void
}

export interface PublishSummary {
  publication: number
  published_at: string
  /** As in the row of the table `publications`. */
  complete_as_of: string | null
  fresh_as_of: string | null
  tables: readonly Omit<TablePublication, 'metadata'>[]
  files_removed: number
  /** Why files that no reader needs are still there. The publication is complete. */
  removal_error: { code: string; message: string; hint: string | null } | null
}

/**
 * @throws StopError (exit status 64) when the target has another warehouse, 73 when something cannot be read or written
 */
export async function publishWarehouse(options: PublishOptions): Promise<PublishSummary> {
  try {
    return await atOneInstant(options.db, () => publishInstant(options))
  } catch (error) {
    throw options.storage.fault(error)
  }
}

/** The properties of every table and snapshot. */
const PROPERTIES = {
  warehouse: 'parley.warehouse',
  completeAsOf: 'parley.complete-as-of',
  freshAsOf: 'parley.fresh-as-of',
} as const

/**
 * How often a publication may begin. It begins again if an earlier publication's commit arrives after its beginning.
 */
const MOST_BEGINNINGS = 3

async function publishInstant(options: PublishOptions): Promise<PublishSummary> {
  const { db, storage, clock } = options
  const publishedAt = isoInstant(clock.now())
  const warehouse = readMeta(db, META.identity) ?? ''
  const properties = { [PROPERTIES.warehouse]: warehouse, [ERASED_PROPERTY]: purgedAtIn(db) }
  for (let beginnings = 1; ; beginnings += 1) {
    const found = await readTarget(storage)
    refuseOtherWarehouse(storage, found, warehouse)
    const begun = await beginPublication({ storage, clock, properties }, found)
    try {
      return await publishBegun(options, { begun, publishedAt, warehouse })
    } catch (error) {
      const isLast = beginnings === MOST_BEGINNINGS
      if (isLast || !isOvertaken(error) || !(await begun.mayBeginAgain())) throw error
    }
  }
}

interface PublicationStart {
  begun: BegunPublication
  publishedAt: string
  warehouse: string
}

async function publishBegun(
  options: PublishOptions,
  { begun, publishedAt, warehouse }: PublicationStart,
): Promise<PublishSummary> {
  const { db, storage, keep, version, full } = options
  const { publication } = begun
  const leftovers = await removing(options, removeUncommitted(storage, begun.target, publication))
  const removed = new Set(leftovers.paths)
  const target = { ...begun.target, paths: begun.target.paths.filter(path => !removed.has(path)) }
  const { complete_as_of, fresh_as_of } = readCompleteness(db)
  const properties = {
    [PROPERTIES.warehouse]: warehouse,
    ...(complete_as_of !== null && { [PROPERTIES.completeAsOf]: complete_as_of }),
    ...(fresh_as_of !== null && { [PROPERTIES.freshAsOf]: fresh_as_of }),
  }
  const before = lastCompared(target.tables.get(PUBLICATIONS))
  const comparison = comparisonWith(db, { before, at: publishedAt, version, full })
  const context = { options, target, publication, properties, comparison }
  const published = await publishTables({ ...context, options: { ...options, storage: begun.storage } })
  const row: PublicationRow = {
    publication,
    published_at: publishedAt,
    complete_as_of,
    fresh_as_of,
    warehouse,
    snapshots: Object.fromEntries(published.map(({ folder, snapshotId }) => [folder, snapshotId])),
  }
  const rows = keptRows([...rowsIn(target), row], keep)
  const completed = await publishRows(context, rows, published.length)
  const expired = await removing(options, removeExpired(context, { published, completed, rows }))
  return {
    publication,
    published_at: publishedAt,
    complete_as_of,
    fresh_as_of,
    tables: [...published, completed].map(({ metadata: _, ...summary }) => summary),
    files_removed: leftovers.paths.length + expired.paths.length,
    removal_error: expired.error ?? leftovers.error,
  }
}

/**
 * Waits for a removal of files. A publication is complete without it, and a later one makes up for it.
 * @throws the error itself when the publication was stopped, or when it is not one of the target
 */
async function removing(
  { storage, signal }: PublishOptions,
  removed: Promise<readonly string[]>,
): Promise<{ paths: readonly string[]; error: PublishSummary['removal_error'] }> {
  try {
    return { paths: await removed, error: null }
  } catch (thrown) {
    const error = storage.fault(thrown)
    if (signal.aborted || !(error instanceof ParleyError)) throw error
    const { code, message, hint = null } = error
    return { paths: [], error: { code, message, hint } }
  }
}

interface PublicationContext extends Pick<TablePublishing, 'publication' | 'properties'> {
  options: PublishOptions
  target: PublishedTarget
  comparison: PartsComparison
}

async function publishTables(context: PublicationContext): Promise<TablePublication[]> {
  const { options, target } = context
  const current = publishedTables(options.db, options.tables)
  const names = new Set([...current.map(({ read }) => read.folder), PUBLICATIONS])
  const dropped = [...target.tables.values()].filter(({ folder }) => !names.has(folder))
  const tables = [...dropped.map(({ folder, metadata }) => droppedTable(folder, metadata)), ...current]
  const owned = tables.filter(({ isOwner }) => !isOwner)
  const owners = tables.filter(({ isOwner }) => isOwner)
  const writeThem = (some: readonly PublishedTable[], done: number) =>
    writeTables(context, some, { done, tables: tables.length })
  const commit = commitInTurn(options.storage)
  return [
    ...(await inParallel(writeThem(owned, 0), MOST_COMMITS, commit)),
    ...(await inParallel(writeThem(owners, owned.length), MOST_COMMITS, commit)),
  ]
}

/**
 * Commits tables in the order of the calls. Only commits wait for each other; uploads and hints do not. Two
 * publications that commit in different orders could stop each other.
 */
function commitInTurn(storage: Storage): (table: WrittenTable) => Promise<TablePublication> {
  let last: Promise<unknown> = Promise.resolve()
  return async table => {
    const committed = table.commit(last)
    last = committed
    const published = await committed
    if (!table.isHinted) await writeHint(storage, published)
    return published
  }
}

/** How many tables are uploaded and committed at a time. Each takes a few round trips, one after the other. */
const MOST_COMMITS = 8

/** When a table wrote this many bytes, its files are uploaded before the next table is read, to save local space. */
const LARGE_BYTES = 32 * 2 ** 20

/** Writes the files of one table after the other. */
async function* writeTables(
  context: PublicationContext,
  tables: readonly PublishedTable[],
  progress: Pick<TableProgress, 'done' | 'tables'>,
): AsyncGenerator<WrittenTable> {
  const { options, target } = context
  for (const [place, table] of tables.entries()) {
    const { name, folder } = table.read
    const work = workOf(context, folder, { ...progress, table: name, done: progress.done + place })
    const toCompare = partsToCompareOf(context, table)
    const written = await writeTable({ ...work, toCompare }, table, target.tables.get(folder))
    if (written.bytesWritten >= LARGE_BYTES) await options.storage.uploaded()
    yield written
  }
}

/**
 * Which parts of a table to compare. All, if the last complete publication does not show the current snapshot: the
 * table was left out, or published without being completed. All, too, if the table has no rows in the target: it may
 * have been dropped and have come back.
 */
function partsToCompareOf(
  { options, target, comparison }: PublicationContext,
  { read }: PublishedTable,
): PartsToCompare {
  const before = target.tables.get(read.folder)
  const shown = rowsIn(target).at(-1)?.snapshots[read.folder]
  const isShown = before?.parts.length !== 0 && before?.metadata['current-snapshot-id'] === shown
  return comparison.changed && isShown ? partsToCompare(options.db, read, comparison.changed) : 'all'
}

/** Completes the publication by writing the table `publications`. */
async function publishRows(
  context: PublicationContext,
  rows: readonly PublicationRow[],
  done: number,
): Promise<TablePublication> {
  const { table, properties: tableProperties } = publicationsTable(rows, context.comparison.compared)
  const work = workOf(context, PUBLICATIONS, { table: PUBLICATIONS, done, tables: done })
  const all = { ...work, toCompare: 'all' as const, tableProperties }
  const written = await writeTable(all, table, context.target.tables.get(PUBLICATIONS))
  return commitInTurn(context.options.storage)(written)
}

const MOST_REMOVALS = 16

interface Completed {
  /** All tables but `publications`. */
  published: readonly TablePublication[]
  /** The table `publications`. */
  completed: TablePublication
  rows: readonly PublicationRow[]
}

/** Expires snapshots and removes the files that no table needs. @returns the removed paths */
async function removeExpired(
  { options, target, publication }: PublicationContext,
  { published, completed, rows }: Completed,
): Promise<readonly string[]> {
  const { db, clock, keep } = options
  const purgedAt = purgedAtIn(db)
  const storage = stoppedAfter(options.storage, completed)
  const remove = async (table: TablePublication) => {
    const kept = snapshotsShown(rows, table.folder, keep)
    const current = await expireSnapshots({ storage, clock, kept, purgedAt }, table)
    return removeUnneeded(storage, target, current, publication)
  }
  const removed = await inParallel(published, MOST_REMOVALS, remove)
  // The expiry of the snapshots of `publications` writes a newer version, after which `storage` refuses commits.
  removed.push(await remove(completed))
  return removed.flat()
}

/** When content of the warehouse was last purged; empty when it never was. */
export const purgedAtIn = (db: Sqlite): string => readMeta(db, META.purgedAt) ?? ''

/** @throws StopError (exit status 64) when the tables are those of another warehouse */
export function refuseOtherWarehouse(
  storage: Pick<TargetReader, 'name'>,
  { tables }: PublishedTarget,
  warehouse: string,
): void {
  const others = [...tables.values()].map(({ metadata }) => metadata.properties[PROPERTIES.warehouse])
  if (others.every(other => other === warehouse)) return
  throw new StopError(`${storage.name} has the tables of another warehouse`, {
    code: 'publish-other-warehouse',
    hint: 'Each warehouse needs a separate target: name another folder or prefix. Nothing was changed.',
    exitStatus: EXIT_STATUS.usage,
  })
}

function workOf(
  { options, target, publication, properties }: PublicationContext,
  folder: string,
  at: Omit<TableProgress, 'rows'>,
): Omit<TablePublishing, 'toCompare'> {
  // Until this publication is complete, the last one must stay readable.
  const kept = snapshotsShown(rowsIn(target), folder, Math.max(1, options.keep - 1))
  return {
    ...options,
    publication,
    properties,
    tableProperties: {},
    kept,
    createdBy: `parley ${options.version}`,
    purgedAt: purgedAtIn(options.db),
    onRows: createRowCounter(at, options.onProgress),
  }
}
