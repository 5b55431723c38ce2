import type { Clock } from '../../../clock.ts'
import { EXIT_STATUS, StopError } from '../../../errors.ts'
import type { Sqlite } from '../../../store/database/sqlite-types.ts'
import { META, readMeta } from '../../../store/sync/meta.ts'
import type { PublishProgress } from '../../publish.ts'
import { publishedTables } from '../../tables.ts'
import { atOneInstant } from '../../warehouse-instant.ts'
import type { ClickHouseAddress } from '../address.ts'
import { type ClickHouseConnection, openClickHouse } from '../connection.ts'
import { dialectOf } from '../dialect.ts'
import { folderOfSource, isSource } from '../layout.ts'
import { newestAttempt, readRelations, refuseOtherWarehouse } from '../state.ts'
import { STATE_TABLES } from '../state-tables.ts'
import type { DatabaseVerifyFault } from './fault.ts'
import { lastingFaults, viewFaults } from './lasting-faults.ts'
import { readShown, type ShownParts } from './shown-parts.ts'
import { type DatabaseTable, type SourceTableFindings, verifyTable } from './verify-table.ts'

/**
 * Checks the publications of a ClickHouse database that readers can see. It reads all rows that the server has, one
 * table at a time, and only reads. Each part that a kept publication shows must have the rows that were sent: as many,
 * and with the same checksum. No row of the server may have content that the warehouse has purged. A part that differs
 * from the warehouse has changed since: that is no fault. Other publications may go on meanwhile.
 */
export interface DatabaseVerifyOptions {
  /** Opened read-only. Undefined: the database is checked alone. */
  db: Sqlite | undefined
  address: ClickHouseAddress
  /** The address as the user named it. */
  target: string
  user: string
  password: string | undefined
  clock: Clock
  signal: AbortSignal
  onProgress(progress: PublishProgress): void
}

export interface DatabaseVerifySummary {
  publication: number
  published_at: string
  /** Whether parts were compared with the warehouse, and purged rows were searched for. */
  compared: boolean
  tables: readonly DatabaseTable[]
  faults: readonly DatabaseVerifyFault[]
}

/** @throws StopError 64 when nothing is published or another warehouse is, 73 when the server cannot be read */
export async function verifyDatabase(options: DatabaseVerifyOptions): Promise<DatabaseVerifySummary> {
  const { db, address: place } = options
  const connection = await openClickHouse({ ...options, isReadOnly: true })
  try {
    if (!(await readRelations(connection, place)).has(STATE_TABLES.publications))
      throw nothingPublished(connection)
    // Before the warehouse is read: a publication that begins later may know better what is purged.
    const newest = await newestAttempt(connection, place)
    const verifying = { ...options, connection, place, newest }
    return db ? await atOneInstant(db, () => verifyInstant(verifying)) : await verifyInstant(verifying)
  } finally {
    await connection.close()
  }
}

interface Verifying extends DatabaseVerifyOptions {
  connection: ClickHouseConnection
  place: ClickHouseAddress
  newest: number
}

async function verifyInstant(verifying: Verifying): Promise<DatabaseVerifySummary> {
  const { db, connection, place } = verifying
  const relations = await readRelations(connection, place)
  const shown = await readShown(connection, place, relations)
  const { publication } = shown
  if (publication === undefined) throw nothingPublished(connection)
  if (db) refuseOtherWarehouse(connection, [publication], readMeta(db, META.identity) ?? '')
  const hints = { ...verifying, isModern: dialectOf(connection.version).isModern }
  const verified = await verifyTables(hints, shown, [...relations.keys()].filter(isSource))
  const faults = [...viewFaults(hints, shown, relations), ...verified.flatMap(one => one.faults)]
  return {
    publication: publication.publication,
    published_at: publication.published_at,
    compared: db !== undefined,
    tables: verified.map(({ table }) => table),
    faults: await lastingFaults(hints, faults),
  }
}

async function verifyTables(
  verifying: Verifying & { isModern: boolean },
  shown: ShownParts,
  present: readonly string[],
): Promise<SourceTableFindings[]> {
  const { db, onProgress } = verifying
  const sources = [...new Set([...present, ...shown.parts.map(({ source }) => source)])].toSorted()
  const folderOf = (source: string) => folderOfSource(source) ?? source
  const folders = new Set(sources.map(folderOf))
  const inWarehouse = new Map(db && publishedTables(db).map(table => [table.read.folder, table]))
  const verified: SourceTableFindings[] = []
  for (const folder of folders) {
    let rows = 0
    const where = { table: folder, done: verified.length, tables: folders.size }
    const onRows = (read: number) => {
      rows += read
      onProgress({ ...where, rows })
    }
    const warehouse = db && { db, table: inWarehouse.get(folder) }
    const own = sources.filter(source => folderOf(source) === folder)
    verified.push(await verifyTable({ ...verifying, shown, warehouse, onRows }, folder, own))
  }
  return verified
}

function nothingPublished({ name }: ClickHouseConnection): StopError {
  return new StopError(`${name} has no complete publication`, {
    code: 'publish-nothing',
    hint: 'Run parley publish with this target first, or name the database of a publication.',
    exitStatus: EXIT_STATUS.usage,
  })
}
