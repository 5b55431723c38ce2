import { randomUUID } from 'node:crypto'
import { type Clock, isoInstant } from '../../clock.ts'
import type { Sqlite } from '../../store/database/sqlite-types.ts'
import { META, readMeta } from '../../store/sync/meta.ts'
import type { PublishProgress } from '../publish.ts'
import { atOneInstant, statusInstants } from '../warehouse-instant.ts'
import { type Compared, lookingAt, type WhereToLook, whereToLook } from '../where-to-look.ts'
import type { ClickHouseAddress } from './address.ts'
import { type ClickHouseConnection, openClickHouse } from './connection.ts'
import { dialectOf } from './dialect.ts'
import { knownTable } from './known-parts.ts'
import { isSource } from './layout.ts'
import { type Prepared, prepareTables } from './prepare.ts'
import { removeUnneeded } from './remove-unneeded.ts'
import { replaceViews } from './replace-views.ts'
import {
  beginPublication,
  completePublication,
  countParts,
  type DatabaseState,
  measurePublications,
  readCompared,
  readPublications,
  readRelations,
  readState,
  recordCompared,
  recordParts,
  refuseOtherWarehouse,
  type StoredPart,
} from './state.ts'
import type { CompletedRow, PartRow } from './state-tables.ts'
import { type DatabaseSummary, tableSummaries } from './summary.ts'
import { writeTable } from './write-table.ts'

/**
 * Publishes the warehouse as of one instant to a ClickHouse database. Rows are only added: those of each changed part of
 * a table, with the number of the publication. Then one row completes the publication, and all views show its parts.
 * At last, what no kept publication shows is removed. Interrupted at any instant, the views show the last complete
 * publication, and the next one continues with the parts that the server has. As for other targets, only parts that are
 * noted as changed since the last complete publication are compared.
 */
export interface ClickHousePublishing {
  /** Opened read-only. */
  db: Sqlite
  address: ClickHouseAddress
  user: string
  password: string | undefined
  clock: Clock
  /** Of this program. */
  version: string
  /** How many publications stay readable: at least two, for queries that run while the next one completes. */
  keep: number
  /** Names of the tables to publish; undefined: all. */
  tables?: readonly string[] | undefined
  /** Compares everything, also what is not noted as changed. */
  full: boolean
  signal: AbortSignal
  onProgress(progress: PublishProgress): void
}

/** @throws StopError 64 when the database has other content, 73 when it cannot be used, 75 when another process publishes */
export async function publishToClickHouse(options: ClickHousePublishing): Promise<DatabaseSummary> {
  const connection = await openClickHouse(options)
  try {
    return await atOneInstant(options.db, () => publishInstant(options, connection))
  } finally {
    await connection.close()
  }
}

async function publishInstant(
  options: ClickHousePublishing,
  connection: ClickHouseConnection,
): Promise<DatabaseSummary> {
  const { db, clock, address: place, tables, version, full } = options
  const keep = Math.max(LEAST_KEPT, options.keep)
  const publishedAt = isoInstant(clock.now())
  const warehouse = readMeta(db, META.identity) ?? ''
  const purgedAt = readMeta(db, META.purgedAt) ?? ''
  const prepared = await prepareTables({
    db,
    connection,
    place,
    names: tables,
    dialect: dialectOf(connection.version),
  })
  refuseOtherWarehouse(connection, await readPublications(connection, place, keep), warehouse)
  const attempt = { token: randomUUID(), warehouse, began_at: publishedAt }
  const publication = await beginPublication(connection, place, attempt)
  // Read only now: whatever completes later finds that this publication has begun, and leaves its parts alone.
  const known = await readBegun(prepared, keep)
  const looking = whereToLook(db, { before: known.before, at: publishedAt, version, full })
  const begun: Begun = { ...prepared, ...known, publication, looking }
  const parts = await writeTables(options, begun)
  await replaceViews(prepared)
  const status = statusInstants(db)
  const row: CompletedRow = {
    publication,
    published_at: publishedAt,
    ...status,
    warehouse,
    purged_at: purgedAt,
  }
  await recordCompared(connection, place, publication, looking.compared)
  await completePublication(connection, place, row)
  const state = {
    publications: [...begun.state.publications, row],
    parts: [...begun.state.parts, ...parts],
  }
  const removed = await removeUnneeded({ ...begun, state }, keep)
  const size = await measurePublications(connection, place, publication)
  return {
    publication,
    published_at: publishedAt,
    ...status,
    tables: tableSummaries(prepared.tables, parts, { publication, size }),
    parts_removed: removed,
  }
}

const LEAST_KEPT = 2

interface KnownDatabase {
  state: DatabaseState
  stored: readonly StoredPart[]
  /** What the last complete publication compared. */
  before: Compared | undefined
}

interface Begun extends Prepared, KnownDatabase {
  publication: number
  looking: WhereToLook
}

async function readBegun({ connection, place }: Prepared, keep: number): Promise<KnownDatabase> {
  const state = await readState(connection, place, keep)
  const last = state.publications.at(-1)
  const before = last && (await readCompared(connection, place, last.publication))
  const sources = [...(await readRelations(connection, place)).keys()].filter(isSource)
  return { state, before, stored: await countParts(connection, place, sources) }
}

async function writeTables(options: ClickHousePublishing, begun: Begun): Promise<PartRow[]> {
  const { connection, place, tables, publication, looking } = begun
  const all: PartRow[] = []
  let unrecorded: PartRow[] = []
  for (const [done, { table, layout }] of tables.entries()) {
    let rows = 0
    const onRows = (read: number) => {
      rows += read
      options.onProgress({ table: table.read.name, done, tables: tables.length, rows })
    }
    const { parts: known, isShown } = knownTable(begun.state, begun.stored, layout.name)
    const lookAt = lookingAt(looking, table.read, isShown)
    const parts = await writeTable({ ...options, ...begun, onRows }, table, { layout, known, lookAt })
    all.push(...parts)
    unrecorded.push(...parts)
    // An interrupted publication is continued with what is recorded.
    if (!parts.some(({ written_in }) => written_in === publication)) continue
    await recordParts(connection, place, unrecorded)
    unrecorded = []
  }
  await recordParts(connection, place, unrecorded)
  return all
}
