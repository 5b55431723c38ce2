import { chmod, chown, lstat, open, rename, stat } from 'node:fs/promises'
import { basename, dirname, join, resolve, sep } from 'node:path'
import { type Clock, isoInstant } from '../../base/clock.ts'
import { EXIT_STATUS, errorCode, isMissingFile, ParleyError, StopError } from '../../base/errors.ts'
import { shellWord } from '../../base/safe-text.ts'
import { partialPath, removePartial, removePartials } from '../copies/copy-files.ts'
import { databaseBusy, databaseError, databaseFault } from '../database/sqlite-errors.ts'
import { contentBytes } from '../database/whole-copy.ts'
import { databaseSizes, type FreeBytes, freeOnSlowDisk, requireSpace } from '../disk/disk-space.ts'
import { isSameFile, resolvedPath } from '../disk/location.ts'
import { APPLICATION_ID } from '../file/open.ts'
import { readWarehouse, requireWarehouse, STATUS_ROWS, type StatusRow } from '../status/status.ts'
import { cutOffError, runSnapshotProcess, type SnapshotInput, type WholeCopy } from './copy-process.ts'

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
  /** Path of the snapshot. An earlier snapshot at this path is replaced once the new snapshot is complete. */
  file: string
  /** Permission bits of the snapshot. */
  mode: number
  /** Path of an earlier snapshot in the same folder, expected to be of the same warehouse. */
  earlier?: string | undefined
  /** Whether a file name belongs to the same series of snapshots. Abandoned partial files of the series are removed. */
  isAlike?: (name: string) => boolean
  clock: Clock
  /** Aborts the snapshot and removes its partial file. The promise then rejects with the signal's reason. */
  signal: AbortSignal
  /** URL of the child process's program. */
  program?: URL
  freeBytes?: FreeBytes
}

/**
 * @throws StopError, exit status 64 when `file` may not be replaced; 73 when the database cannot be read or the
 * snapshot cannot be written; 75 when the WAL grows too much meanwhile, the database is locked, or the child process
 * ends early; 78 when the earlier snapshot is of another warehouse
 */
export async function makeSnapshot(options: SnapshotOptions): Promise<Snapshot> {
  const [database, file] = [resolvedPath(options.database), resolvedPath(options.file)]
  requireWarehouse(database)
  if (options.file.endsWith(sep)) throw folderError(file, database)
  try {
    if ((await statOf(options.file)) === undefined) await refuseBrokenLink(resolve(options.file))
    return await writeSnapshot({ ...options, database, file })
  } catch (error) {
    throw snapshotError(error, file)
  }
}

async function writeSnapshot(options: SnapshotOptions): Promise<Snapshot> {
  const { database, file, clock, mode, isAlike, freeBytes = freeOnSlowDisk } = options
  await refuseTarget(database, file)
  await removePartials({ of: file, ...(isAlike && { isAlike }), now: clock.now() })
  requireSpace(await freeBytes(dirname(file)), {
    file,
    bytes: readWarehouse(database, contentBytes),
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
    // The path is checked again, since a warehouse may have been created there meanwhile.
    await refuseTarget(database, file)
    await moveIntoPlace(part, file, { database, mode })
    return { path: file, bytes, durationMs: clock.elapsed() - begun, startedAt, resources: status }
  } finally {
    await removePartial(part)
  }
}

/** @throws StopError, or an Error with the `code` of SQLite or of the system when writing the copy failed */
async function copyDatabase(options: SnapshotOptions, input: SnapshotInput): Promise<WholeCopy> {
  const { database, file, clock, signal, program } = options
  const answer = await whileWalIsSmall(database, clock, signal, ended =>
    runSnapshotProcess(input, ended, program),
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

/**
 * A snapshot reads for a long time, and the WAL cannot be reused meanwhile. A snapshot is stopped when the WAL has
 * grown by more than this and by more than the size of the database.
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
  new StopError(
    `Snapshot ${file} failed verification: the copy differs from the database, or the database is damaged`,
    {
      code: 'snapshot-unsound',
      hint: 'Check the disk, and run parley doctor --data to check the database.',
      exitStatus: EXIT_STATUS.databaseUnavailable,
    },
  )

const sharedFolderError = (file: string) =>
  new StopError(`${dirname(file)} contains snapshots of another database with the same file name`, {
    code: 'snapshot-folder-shared',
    hint: 'Set snapshot.folder to a separate folder for each database. If this database replaces the other, move the old snapshots elsewhere.',
    exitStatus: EXIT_STATUS.settings,
  })

/**
 * Endings of the files that SQLite and parley keep next to a database. All file calls below are asynchronous, since the
 * disk may be slow or not answer.
 */
const COMPANIONS = ['-wal', '-shm', '-journal', '-lock']

/**
 * @throws StopError, exit status 64 when a snapshot must not be written to `file`, 73 when the folder of `file` does
 * not exist
 */
async function refuseTarget(database: string, file: string): Promise<void> {
  const [own, there] = [await stat(database), await statOf(file)]
  if (isSameFile(there, own) || ['', ...COMPANIONS].some(end => file === `${database}${end}`)) {
    throw refusal(`${file} belongs to the warehouse itself`, 'Choose another path for the snapshot.')
  }
  await refuseWithoutFolder(file)
  await refuseCompanions(file)
  if (there === undefined) return
  if (there.isDirectory()) throw folderError(file, database)
  if (there.isFile() && (there.size === 0 || (await isSnapshot(file)))) return
  throw refusal(
    `${file} exists and is not a snapshot of parley; it was not changed`,
    'Choose another path, or remove that file first.',
  )
}

const folderError = (file: string, database: string): StopError =>
  refusal(
    `${file} is a folder, not a file`,
    `Use a path such as ${join(file, 'copy-of-')}${basename(database)}.`,
  )

async function refuseWithoutFolder(file: string): Promise<void> {
  if ((await statOf(dirname(file)))?.isDirectory()) return
  throw new StopError(`Cannot write the snapshot ${file}: there is no such folder`, {
    code: 'snapshot-unwritable',
    hint: `Create the folder with mkdir -p ${shellWord(dirname(file))}, or choose another path.`,
    exitStatus: EXIT_STATUS.databaseUnavailable,
  })
}

/** Refuses a path that has companion files. SQLite would apply a `-wal` or `-journal` file to the new snapshot. */
async function refuseCompanions(file: string): Promise<void> {
  for (const end of COMPANIONS) {
    if ((await statOf(`${file}${end}`)) === undefined) continue
    throw refusal(
      `${file} cannot be replaced: ${basename(file)}${end} exists next to it, so a database may be in use there`,
      'Choose another path, or remove both files first.',
    )
  }
}

/** Refuses a symbolic link to a missing file, which may be on a disk that is not mounted. */
async function refuseBrokenLink(file: string): Promise<void> {
  if ((await statOf(file, lstat)) === undefined) return
  throw refusal(
    `${file} is a symbolic link to a file that does not exist; the link was not changed`,
    'Check that the disk of that file is mounted, choose another path, or remove the link first.',
  )
}

const refusal = (message: string, hint: string) =>
  new StopError(message, { code: 'snapshot-refused', hint, exitStatus: EXIT_STATUS.usage })

async function statOf(path: string, ask: typeof stat | typeof lstat = stat) {
  try {
    return await ask(path)
  } catch (error) {
    if (isMissingFile(error)) return undefined
    throw error
  }
}

/**
 * Reads the header (sqlite.org/fileformat2.html). A snapshot has parley's application id and, unlike a warehouse, is
 * not in WAL mode.
 */
async function isSnapshot(file: string): Promise<boolean> {
  const header = Buffer.alloc(72)
  const handle = await open(file)
  try {
    await handle.read(header, 0, header.length, 0)
  } finally {
    await handle.close()
  }
  const isDatabase = header.toString('latin1', 0, 16) === 'SQLite format 3\0'
  return isDatabase && header[18] === 1 && header[19] === 1 && header.readInt32BE(68) === APPLICATION_ID
}

/** Sets mode and group before the rename, so that the file at the target path has them from the start. */
export async function moveIntoPlace(
  part: string,
  file: string,
  { database, mode }: { database: string; mode: number },
): Promise<void> {
  await chmod(part, await modeFor(part, database, mode))
  await rename(part, file)
  await fsyncFolder(dirname(file))
}

const GROUP_RIGHTS = 0o070
const SET_GROUP_ID = 0o2000

/**
 * Gives a file or folder the group of the database, so that the same users can read both. In a folder with the setgid
 * bit, the system gives new files the group of that folder, and they keep it.
 * @returns the mode to set: without group permissions when the group could not be set
 */
export async function modeFor(path: string, database: string, mode: number): Promise<number> {
  if (((await stat(dirname(path))).mode & SET_GROUP_ID) !== 0) return mode
  const { gid } = await stat(database)
  if ((await stat(path)).gid === gid) return mode
  try {
    await chown(path, -1, gid)
    return mode
  } catch {
    // Only root and members of a group may give a file to it.
    return mode & ~GROUP_RIGHTS
  }
}

async function fsyncFolder(folder: string): Promise<void> {
  try {
    const handle = await open(folder)
    try {
      await handle.sync()
    } finally {
      await handle.close()
    }
  } catch {
    // Some file systems cannot fsync a folder, or this user may not read the folder. The snapshot is complete anyway.
  }
}

const SYSTEM_CODE = /^(SQLITE_\w+|E(?!RR_)[A-Z0-9]+)$/

/**
 * Turns an error of SQLite or of the system while writing the snapshot into a StopError (73). Returns other errors as
 * they are.
 */
function snapshotError(error: unknown, file: string): unknown {
  const code = errorCode(error) ?? ''
  if (error instanceof ParleyError || !SYSTEM_CODE.test(code)) return error
  const problem = databaseFault(code, file)?.problem ?? 'writing it failed'
  return new StopError(`Cannot write the snapshot ${file}: ${problem} (${code})`, {
    code: 'snapshot-unwritable',
    hint: `Check the owner, mode and free space of ${dirname(file)} and any limit on file sizes, or choose another path. An earlier snapshot at this path is unchanged.`,
    cause: error,
    exitStatus: EXIT_STATUS.databaseUnavailable,
  })
}
