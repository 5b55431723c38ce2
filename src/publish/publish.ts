import { type Clock, isoInstant } from '../clock.ts'
import { EXIT_STATUS, StopError } from '../errors.ts'
import type { Sqlite } from '../store/database/sqlite-types.ts'
import { refuseOlder } from '../store/migrations/current.ts'
import { appliedMigrations } from '../store/migrations/journal.ts'
import { noWarehouseError, readStatus } from '../store/status/status.ts'
import { META, readMeta } from '../store/sync/meta.ts'
import { earlierPublications, PUBLICATIONS, type PublicationRow, publicationsTable } from './publications.ts'
import { publishTable, type TablePublication, type TablePublishing } from './publish-table.ts'
import { type PublishedState, readPublished } from './published-state.ts'
import type { Storage } from './storage/storage.ts'
import { sweepTable } from './sweep.ts'
import { type PublishedTable, publishedTables } from './tables.ts'

/**
 * Publishes the warehouse as of one instant: every table as an Iceberg table, those with the rows that others own first,
 * the table `publications` last. Interrupted at any instant, the target still shows the last complete publication there,
 * and the next publication begins with a new number and compares again.
 */
export interface PublishOptions {
  /** Opened read-only. */
  db: Sqlite
  storage: Storage
  clock: Clock
  mode: number
  /** Version of this program. */
  version: string
  /** How many snapshots of each table stay. */
  keep: number
  signal: AbortSignal
  onProgress(progress: PublishProgress): void
}

export interface PublishProgress {
  table: string
  done: number
  tables: number
  /** Rows read so far, including rows that were only compared. */
  rows: number
}

export interface PublishSummary {
  publication: number
  published_at: string
  tables: readonly Omit<TablePublication, 'metadata'>[]
  files_removed: number
}

/** @throws StopError 64 when the target has another warehouse, 73 when something cannot be read or written */
export async function publishWarehouse(options: PublishOptions): Promise<PublishSummary> {
  const { db } = options
  if (appliedMigrations(db).length === 0) throw noWarehouseError(db.name)
  refuseOlder(db)
  db.pragma('temp_store = FILE')
  db.exec('BEGIN')
  try {
    return await publishInstant(options)
  } finally {
    // Some errors of SQLite have already ended the transaction.
    if (db.inTransaction) db.exec('ROLLBACK')
  }
}

/** The properties of every table and snapshot. */
const PROPERTIES = {
  warehouse: 'parley.warehouse',
  completeAsOf: 'parley.complete-as-of',
  freshAsOf: 'parley.fresh-as-of',
} as const

async function publishInstant(options: PublishOptions): Promise<PublishSummary> {
  const { db, storage, clock } = options
  const publishedAt = isoInstant(clock.now())
  const warehouse = readMeta(db, META.identity) ?? ''
  const tables = publishedTables(db)
  const before = await readTarget(storage, tables)
  refuseOtherWarehouse(storage, before, warehouse)
  const publication = 1 + Math.max(0, ...[...before.values()].map(lastNumber))
  const status = statusInstants(db)
  const properties = {
    [PROPERTIES.warehouse]: warehouse,
    ...(status.complete_as_of !== null && { [PROPERTIES.completeAsOf]: status.complete_as_of }),
    ...(status.fresh_as_of !== null && { [PROPERTIES.freshAsOf]: status.fresh_as_of }),
  }
  const published: TablePublication[] = []
  for (const [done, table] of tables.entries()) {
    const work = workOf(
      options,
      { table: table.read.name, done, tables: tables.length },
      { publication, properties },
    )
    published.push(await publishTable(work, table, before.get(table.read.folder)))
  }
  const row: PublicationRow = {
    publication,
    published_at: publishedAt,
    ...status,
    warehouse,
    snapshots: Object.fromEntries(published.map(({ folder, snapshotId }) => [folder, snapshotId])),
  }
  const earlier = before.get(PUBLICATIONS)
  const last = publicationsTable([...earlierPublications(earlier), row])
  const where = { table: PUBLICATIONS, done: tables.length, tables: tables.length }
  const work = workOf(options, where, { publication, properties: { ...properties, ...last.properties } })
  published.push(await publishTable(work, last.table, earlier))
  return {
    publication,
    published_at: publishedAt,
    tables: published.map(({ metadata: _, ...summary }) => summary),
    files_removed: await sweep(storage, published),
  }
}

async function readTarget(
  storage: Storage,
  tables: readonly PublishedTable[],
): Promise<ReadonlyMap<string, PublishedState>> {
  const states = new Map<string, PublishedState>()
  for (const folder of [...tables.map(({ read }) => read.folder), PUBLICATIONS]) {
    const state = await readPublished(storage, folder)
    if (state) states.set(folder, state)
  }
  return states
}

const lastNumber = ({ metadata }: PublishedState): number => metadata['last-sequence-number']

function refuseOtherWarehouse(
  storage: Storage,
  before: ReadonlyMap<string, PublishedState>,
  warehouse: string,
): void {
  const others = [...before.values()].map(({ metadata }) => metadata.properties[PROPERTIES.warehouse])
  if (others.every(other => other === warehouse)) return
  throw new StopError(`${storage.name} has the tables of another warehouse`, {
    code: 'publish-other-warehouse',
    hint: 'Each warehouse needs a target of its own: name another folder or prefix. Nothing was changed.',
    exitStatus: EXIT_STATUS.usage,
  })
}

/** Up to when the warehouse as a whole is fresh and complete. */
function statusInstants(db: Sqlite): Pick<PublicationRow, 'complete_as_of' | 'fresh_as_of'> {
  const offered = readStatus(db).filter(({ state }) => state !== 'unavailable')
  const complete = offered.map(({ complete_as_of: at }) => at)
  const fresh = offered.flatMap(({ fresh_as_of: at }) => at ?? [])
  return {
    complete_as_of: complete.some(at => at === null) ? null : (complete.toSorted()[0] ?? null),
    fresh_as_of: fresh.toSorted()[0] ?? null,
  }
}

function workOf(
  { db, storage, clock, mode, version, keep, signal, onProgress }: PublishOptions,
  where: Omit<PublishProgress, 'rows'>,
  { publication, properties }: Pick<TablePublishing, 'publication' | 'properties'>,
): TablePublishing {
  let rows = 0
  return {
    db,
    storage,
    clock,
    publication,
    properties,
    mode,
    keep,
    createdBy: `parley ${version}`,
    purgedAt: readMeta(db, META.purgedAt) ?? '',
    signal,
    onRows(read) {
      rows += read
      onProgress({ ...where, rows })
    },
  }
}

async function sweep(storage: Storage, published: readonly TablePublication[]): Promise<number> {
  let removed = 0
  for (const table of published) removed += await sweepTable(storage, table)
  return removed
}
