import type { Clock } from '../../clock.ts'
import { EXIT_STATUS, StopError } from '../../errors.ts'
import type { Sqlite } from '../../store/database/sqlite-types.ts'
import { META, readMeta } from '../../store/sync/meta.ts'
import { PUBLICATIONS, type PublicationRow } from '../publications.ts'
import { type PublishProgress, refuseOtherWarehouse, rowsIn } from '../publish.ts'
import { type PublishedTarget, readTarget } from '../published-state.ts'
import type { Storage } from '../storage/storage.ts'
import { publishedTables } from '../tables.ts'
import { atOneInstant } from '../warehouse-instant.ts'
import type { VerifyFault } from './fault.ts'
import { type TableFindings, type TableVerification, verifyTable } from './verify-table.ts'

/**
 * Checks the last complete publication of a target, and the files of all snapshots that are still there. It reads every
 * file, one at a time, and changes nothing. A file must have the size, the rows and the values that were published: the
 * digest of a part is computed again from the values of its file. Files must not have content that the warehouse has
 * purged. A part that differs from the warehouse has changed since: that is no fault.
 */
export interface VerifyOptions {
  /** Opened read-only. Undefined: the target is checked alone. */
  db: Sqlite | undefined
  storage: Storage
  clock: Clock
  signal: AbortSignal
  onProgress(progress: PublishProgress): void
}

export interface VerifySummary {
  publication: number
  published_at: string
  /** Whether parts were compared with the warehouse, and purged rows were searched for. */
  compared: boolean
  tables: readonly TableVerification[]
  faults: readonly VerifyFault[]
}

/**
 * @throws StopError 64 when the target has nothing published or another warehouse, 73 when it cannot be read, 75 when
 *   another process publishes to it meanwhile
 */
export async function verifyTarget(options: VerifyOptions): Promise<VerifySummary> {
  const { db, storage } = options
  try {
    return db ? await atOneInstant(db, () => verifyInstant(options)) : await verifyInstant(options)
  } catch (error) {
    throw storage.fault(error)
  }
}

async function verifyInstant(options: VerifyOptions): Promise<VerifySummary> {
  const { db, storage } = options
  const target = await readTarget(storage)
  const publication = rowsIn(target).at(-1)
  if (publication === undefined) throw nothingPublished(storage)
  if (db) refuseOtherWarehouse(storage, target, readMeta(db, META.identity) ?? '')
  const verified = await verifyTables(options, target, publication)
  const faults = verified.flatMap(one => one.faults)
  if (faults.length > 0) await refuseOvertaken(storage, target)
  return {
    publication: publication.publication,
    published_at: publication.published_at,
    compared: db !== undefined,
    tables: verified.map(({ verification }) => verification),
    faults,
  }
}

async function verifyTables(
  { db, storage, clock, signal, onProgress }: VerifyOptions,
  { tables }: PublishedTarget,
  { publication, snapshots }: PublicationRow,
): Promise<TableFindings[]> {
  const inWarehouse = new Map(db && publishedTables(db).map(table => [table.read.folder, table]))
  const verified: TableFindings[] = []
  for (const [folder, state] of tables) {
    let rows = 0
    const where = { table: folder, done: verified.length, tables: tables.size }
    const warehouse = db && folder !== PUBLICATIONS ? { db, table: inWarehouse.get(folder) } : undefined
    const shown = folder === PUBLICATIONS ? publication : snapshots[folder]
    const onRows = (read: number) => {
      rows += read
      onProgress({ ...where, rows })
    }
    verified.push(await verifyTable({ storage, clock, signal, onRows, warehouse, shown }, state))
  }
  return verified
}

/** Without a lock, as on S3, another publication may have removed files that were still to be checked. */
async function refuseOvertaken(storage: Storage, { tables }: PublishedTarget): Promise<void> {
  const now = await readTarget(storage)
  const isSame = [...now.tables].every(([folder, { version }]) => tables.get(folder)?.version === version)
  if (isSame) return
  throw new StopError(`Another process has published to ${storage.name} meanwhile`, {
    code: 'publish-overtaken',
    hint: 'Run the command again when no publication is in progress.',
    exitStatus: EXIT_STATUS.unfinished,
  })
}

function nothingPublished({ name }: Storage): StopError {
  return new StopError(`${name} has no complete publication`, {
    code: 'publish-nothing',
    hint: `Run parley publish ${name} first, or name the folder or prefix of a publication.`,
    exitStatus: EXIT_STATUS.usage,
  })
}
