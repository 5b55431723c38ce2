import { dirname, sep } from 'node:path'
import { type Clock, isoInstant } from '../../base/clock.ts'
import { EXIT_STATUS, StopError } from '../../base/errors.ts'
import { partialPath } from '../copies/copy-names.ts'
import { removePartial, removePartials } from '../copies/partial-copies.ts'
import { contentBytes } from '../database/pages.ts'
import { databaseBusy, databaseError } from '../database/sqlite-errors.ts'
import { type FreeBytes, requireSpace } from '../disk/disk-space.ts'
import { resolvedPath } from '../disk/location.ts'
import { databaseSizes, freeOnSlowDisk } from '../disk/size.ts'
import { readDatabase } from '../file/open.ts'
import {
  isWarehouse,
  noWarehouseError,
  requireWarehouse,
  STATUS_ROWS,
  type StatusRow,
} from '../status/status.ts'
import { cutOffError, runSnapshotProcess, type SnapshotInput, type WholeCopy } from './copy-process.ts'
import { folderError, moveIntoPlace, refuseTarget, targetError } from './target.ts'

/** A consistent copy of the warehouse in one file. A child process writes it. */
export interface Snapshot {
  path: string
  bytes: number
  durationMs: number
  /** Start of the snapshot: an RFC 3339 instant by this machine's clock. All earlier commits are in the snapshot. */
  startedAt: string
  /** The rows of `sync_status`, read from the snapshot. */
  resources: readonly StatusRow[]
}

export interface SnapshotOptions {
  /** Path of the warehouse. */
  database: string
  /** Path of the snapshot. An earlier snapshot there is replaced once the new one is complete. */
  file: string
  /** Permission bits of the snapshot. */
  mode: number
  /** Path of an earlier snapshot in the same folder, expected to be of the same warehouse. */
  earlier?: string | undefined
  /** Whether this name is of the same series of snapshots. Abandoned partial files of the series are removed. */
  isAlike?: (name: string) => boolean
  clock: Clock
  /** Aborts the snapshot, which leaves no file; the promise then rejects with the signal's reason. */
  signal: AbortSignal
  /** URL of the child process's program. */
  program?: URL
  freeBytes?: FreeBytes
}

/** The compiled program. It is missing when parley runs from its sources, as in tests. */
const PROGRAM = new URL('./worker.js', import.meta.url)

/**
 * @throws StopError 64 when `file` may not be replaced; 73 when the database cannot be read or the snapshot cannot be
 * written; 75 when the WAL grows too much meanwhile, the database is locked, or the child process ends early; 78 when
 * the earlier snapshot is of another warehouse
 */
export async function makeSnapshot(options: SnapshotOptions): Promise<Snapshot> {
  const [database, file] = [resolvedPath(options.database), resolvedPath(options.file)]
  requireWarehouse(database)
  if (options.file.endsWith(sep)) throw folderError(file, database)
  try {
    return await writeSnapshot({ ...options, database, file })
  } catch (error) {
    throw targetError(error, file)
  }
}

async function writeSnapshot(options: SnapshotOptions): Promise<Snapshot> {
  const { database, file, clock, mode, isAlike, freeBytes = freeOnSlowDisk } = options
  await refuseTarget(database, file)
  await removePartials({ of: file, ...(isAlike && { isAlike }), now: clock.now() })
  requireSpace(await freeBytes(dirname(file)), {
    file,
    bytes: bytesOf(database),
    message: `No space for the snapshot ${file}`,
    code: 'no-space-for-snapshot',
    advice: ', or choose a path on another disk.',
  })
  const [begun, startedAt] = [clock.elapsed(), isoInstant(clock.now())]
  const part = partialPath(file)
  try {
    const { bytes, status } = await copyDatabase(options, {
      database,
      part,
      earlier: options.earlier,
      statusSql: STATUS_ROWS,
    })
    // Checked again, since a warehouse may have been created at this path meanwhile.
    await refuseTarget(database, file)
    await moveIntoPlace(part, file, { database, mode })
    return { path: file, bytes, durationMs: clock.elapsed() - begun, startedAt, resources: status }
  } finally {
    await removePartial(part)
  }
}

/** @throws StopError, or an Error with the `code` of SQLite or of the system when writing the copy failed */
async function copyDatabase(options: SnapshotOptions, input: SnapshotInput): Promise<WholeCopy> {
  const { database, file, clock, signal, program = PROGRAM } = options
  const answer = await whileWalIsSmall(database, clock, signal, ended =>
    runSnapshotProcess(program, input, ended),
  )
  if (!('failed' in answer)) return answer
  const { about, code } = answer.failed
  if (code === 'unsound') throw verificationError(file)
  if (code === 'other') throw sharedFolderError(file)
  if (code.startsWith('SQLITE_BUSY')) throw databaseBusy(database)
  const error = Object.assign(new Error(code), { code })
  if (about === 'snapshot' && code !== 'unknown') throw error
  const fault = databaseError(error, database)
  throw fault instanceof StopError ? fault : cutOffError(database, code)
}

/** The warehouse has everything that the API published before this instant. Null when a resource was never complete. */
export function completeAsOf(resources: readonly StatusRow[]): string | null {
  const offered = resources.filter(({ state }) => state !== 'unavailable')
  const instants = offered.map(({ complete_as_of }) => complete_as_of)
  if (instants.length === 0 || instants.includes(null)) return null
  return instants.reduce((least, at) => ((at ?? '') < (least ?? '') ? at : least))
}

function bytesOf(database: string): number {
  return readDatabase({ path: database }, db => {
    if (!isWarehouse(db)) throw noWarehouseError(database)
    return contentBytes(db)
  })
}

/**
 * A snapshot reads for a long time, and the WAL cannot be reused meanwhile. The WAL may grow by this or by the size of
 * the database, whichever is larger.
 */
const MAX_WAL_GROWTH_BYTES = 1024 ** 3
const CHECK_INTERVAL_MS = 1000

async function whileWalIsSmall<T>(
  database: string,
  clock: Clock,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const before = databaseSizes(database)
  const most = before.walBytes + Math.max(MAX_WAL_GROWTH_BYTES, before.bytes)
  const [over, tooLong] = [new AbortController(), new AbortController()]
  const watch = async () => {
    while (!over.signal.aborted) {
      await clock.sleep(CHECK_INTERVAL_MS, over.signal)
      if (databaseSizes(database).walBytes > most) tooLong.abort(outrunError(database))
    }
  }
  const watching = watch()
  try {
    return await work(AbortSignal.any([signal, tooLong.signal]))
  } finally {
    over.abort()
    await watching
  }
}

const outrunError = (database: string) =>
  new StopError(
    `The snapshot of ${database} was stopped: the -wal file grew too large while the snapshot was written`,
    {
      code: 'snapshot-outrun',
      hint: 'Try again when parley writes less, for example after the backfill.',
      exitStatus: EXIT_STATUS.unfinished,
    },
  )

const verificationError = (file: string) =>
  new StopError(`Snapshot ${file} failed verification: the copy differs from the database`, {
    code: 'snapshot-unsound',
    hint: 'Check the disk, and run parley doctor to check the database.',
    exitStatus: EXIT_STATUS.databaseUnavailable,
  })

const sharedFolderError = (file: string) =>
  new StopError(`${dirname(file)} contains snapshots of another database with the same file name`, {
    code: 'snapshot-folder-shared',
    hint: 'Set snapshot.folder to a separate folder for each database. If this database replaces the other, move the old snapshots elsewhere.',
    exitStatus: EXIT_STATUS.settings,
  })
