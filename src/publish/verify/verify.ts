import type { Clock } from '../../base/clock.ts'
import { EXIT_STATUS, StopError } from '../../base/errors.ts'
import { shellWord } from '../../base/safe-text.ts'
import { atOneInstant } from '../../export/export.ts'
import { createRowCounter, type TableProgress } from '../../export/partitions.ts'
import type { Sqlite } from '../../store/database/sqlite-types.ts'
import { META, readMeta } from '../../store/sync/meta.ts'
import { countText } from '../../terminal/wording.ts'
import { readLastPublication } from '../catalogue/complete-publication.ts'
import { folderOfFile } from '../metadata-file.ts'
import { PUBLICATIONS, type PublicationRow, rowsIn } from '../publications.ts'
import { refuseOtherWarehouse } from '../publish.ts'
import { type PublishedTarget, readTarget } from '../published-state.ts'
import { publishedTables } from '../published-tables.ts'
import type { TargetReader } from '../storage/target-reader.ts'
import { publicationOf } from '../unneeded-files.ts'
import { type FoundFault, hintFor, type VerifyFault } from './fault.ts'
import { namedFiles } from './named-files.ts'
import { type TableFindings, type TableVerification, verifyTable } from './verify-table.ts'

/**
 * Checks the last complete publication of a target, and the files of all snapshots that still exist. It reads every
 * file, one at a time, and changes nothing, so publications may go on. A file must have the size, rows and values that
 * were published: the digest of its part (a month or a range of keys) is computed again. No file, not even one that no
 * snapshot names, may have content that the warehouse has purged. A part that differs from the warehouse is no fault:
 * the warehouse has changed since.
 */
export interface VerifyOptions {
  /** Opened read-only. Undefined: the target is checked alone. */
  db: Sqlite | undefined
  storage: TargetReader
  clock: Clock
  signal: AbortSignal
  onProgress(progress: TableProgress): void
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
 * @throws StopError (exit status 64) when the target has nothing published or another warehouse, 73 when it cannot be
 * read or has lost the table `publications`
 */
export async function verifyTarget(options: VerifyOptions): Promise<VerifySummary> {
  const { db, storage } = options
  // A folder of something else may have millions of files, so nothing is listed before a publication is found.
  if ((await readLastPublication(storage)) === undefined && (await storage.holds()) !== 'ours')
    throw nothingPublished(storage)
  // The target is read first. In the other order, a row that was purged and came back could be published in between.
  const target = await readTarget(storage)
  return db ? atOneInstant(db, () => verifyFiles(options, target)) : verifyFiles(options, target)
}

async function verifyFiles(options: VerifyOptions, target: PublishedTarget): Promise<VerifySummary> {
  const { db, storage } = options
  const publication = rowsIn(target).at(-1)
  if (publication === undefined)
    throw target.tables.size === 0 || target.tables.has(PUBLICATIONS)
      ? nothingPublished(storage)
      : lostPublications(storage, target)
  if (db) refuseOtherWarehouse(storage, target, readMeta(db, META.identity) ?? '')
  const verified = await verifyTables(options, target, publication)
  const found = [...lostTables(target, publication), ...verified.flatMap(one => one.faults)]
  const faults = await lastingFaults(storage, target, found)
  return {
    publication: publication.publication,
    published_at: publication.published_at,
    compared: db !== undefined,
    tables: verified.map(({ verification }) => verification),
    faults: faults.map(fault => ({ ...fault, hint: hintFor(fault.kind, storage.name) })),
  }
}

async function verifyTables(
  { db, storage, clock, signal, onProgress }: VerifyOptions,
  { paths, tables }: PublishedTarget,
  { publication, snapshots }: PublicationRow,
): Promise<TableFindings[]> {
  const inWarehouse = new Map(db && publishedTables(db).map(table => [table.read.folder, table]))
  const uncommitted = new Set(
    paths
      .filter(path => publicationOf(path) !== undefined)
      .map(folderOfFile)
      .filter(folder => !tables.has(folder)),
  )
  const folders = [...tables.keys(), ...uncommitted]
  const verified: TableFindings[] = []
  for (const folder of folders) {
    const at = { table: folder, done: verified.length, tables: folders.length }
    const check = {
      storage,
      clock,
      signal,
      onRows: createRowCounter(at, onProgress),
      warehouse: db && folder !== PUBLICATIONS ? { db, table: inWarehouse.get(folder) } : undefined,
      shown: folder === PUBLICATIONS ? publication : snapshots[folder],
      present: paths.filter(path => path.startsWith(`${folder}/`)),
    }
    verified.push(await verifyTable(check, folder, tables.get(folder)))
  }
  return verified
}

/** The tables that the publication shows and that have no metadata in the target. */
function lostTables({ tables }: PublishedTarget, { publication, snapshots }: PublicationRow): FoundFault[] {
  const message = `Publication ${publication} shows this table, and the target has no metadata of it`
  return Object.keys(snapshots)
    .filter(folder => !tables.has(folder))
    .map(folder => ({ table: folder, part: null, file: `${folder}/metadata`, kind: 'table', message }))
}

/** The faults without those of files and tables that another publication has released meanwhile: they may be gone. */
async function lastingFaults(
  storage: TargetReader,
  { tables }: PublishedTarget,
  faults: readonly FoundFault[],
): Promise<readonly FoundFault[]> {
  if (faults.length === 0) return faults
  const now = await readTarget(storage)
  const present = new Set(now.paths)
  const needed = new Map<string, ReadonlySet<string>>()
  for (const state of now.tables.values())
    if (state.version !== tables.get(state.folder)?.version)
      needed.set(state.folder, (await namedFiles({ storage, shown: undefined }, state)).paths)
  const shown = rowsIn(now).at(-1)?.snapshots ?? {}
  return faults.filter(({ table, file, kind }) => {
    if (kind === 'leftover') return present.has(file)
    if (kind === 'table') return !now.tables.has(table) && shown[table] !== undefined
    if (kind === 'hint' && now.tables.get(table)?.isHinted) return false
    return needed.get(table)?.has(file) !== false
  })
}

function lostPublications({ name }: TargetReader, { tables }: PublishedTarget): StopError {
  return new StopError(
    `${name} has ${countText(tables.size, 'table')}, and no table ${PUBLICATIONS}: it was lost, or the first publication was interrupted`,
    {
      code: 'publish-lost',
      hint: hintFor('table', name),
      exitStatus: EXIT_STATUS.databaseUnavailable,
    },
  )
}

function nothingPublished({ name }: TargetReader): StopError {
  return new StopError(`${name} has no complete publication`, {
    code: 'publish-nothing',
    hint: `Run parley publish ${shellWord(name)} first, or name the folder or prefix of a publication.`,
    exitStatus: EXIT_STATUS.usage,
  })
}
