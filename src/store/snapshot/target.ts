import { chmod, chown, lstat, open, rename, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { EXIT_STATUS, errorCode, isMissingFile, ParleyError, StopError } from '../../base/errors.ts'
import { databaseFault } from '../database/sqlite-errors.ts'
import { APPLICATION_ID } from '../file/open.ts'

/**
 * The target path of a snapshot: whether it may be replaced, and its mode and group. All calls are asynchronous, since
 * the disk may be slow or not answer.
 */

const COMPANIONS = ['-wal', '-shm', '-journal', '-lock']

/** @throws StopError 64 when a snapshot must not be written to `file`, 73 when its folder does not exist */
export async function refuseTarget(database: string, file: string): Promise<void> {
  const [own, there] = [await stat(database), await statOf(file)]
  const isDatabase = there !== undefined && there.ino === own.ino && there.dev === own.dev
  if (isDatabase || ['', ...COMPANIONS].some(end => file === `${database}${end}`)) {
    throw refusal(`${file} belongs to the warehouse itself`, 'Choose another path for the snapshot.')
  }
  await refuseWithoutFolder(file)
  await refuseCompanions(file)
  if (there === undefined) return refuseBrokenLink(file)
  if (there.isDirectory()) throw folderError(file, database)
  if (there.isFile() && (there.size === 0 || (await isSnapshot(file)))) return
  throw refusal(
    `${file} exists and is not a snapshot of parley; it was not changed`,
    'Choose another path, or remove that file first.',
  )
}

export const folderError = (file: string, database: string): StopError =>
  refusal(
    `${file} is a folder, not a file`,
    `Use a path such as ${join(file, 'copy-of-')}${basename(database)}.`,
  )

async function refuseWithoutFolder(file: string): Promise<void> {
  if ((await statOf(dirname(file)))?.isDirectory()) return
  throw new StopError(`Cannot write the snapshot ${file}: there is no such folder`, {
    code: 'snapshot-unwritable',
    hint: `Create the folder with mkdir -p ${dirname(file)}, or choose another path.`,
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

/** Refuses a symbolic link to a missing file: that file may be on a disk that is not mounted. */
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

/** Reads the header (sqlite.org/fileformat2.html). A snapshot has parley's id and, unlike a warehouse, no WAL mode. */
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
 * bit, the system gives new files the group of that folder; they keep it.
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
    // Some file systems do not support this, or this user may not read the folder. The snapshot is complete anyway.
  }
}

const SYSTEM_CODE = /^(SQLITE_\w+|E(?!RR_)[A-Z0-9]+)$/

/** Turns an error of SQLite or of the system while writing the snapshot into a StopError (73). Returns others as is. */
export function targetError(error: unknown, file: string): unknown {
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
