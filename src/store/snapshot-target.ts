import { randomBytes } from 'node:crypto'
import { readdirSync, rmSync } from 'node:fs'
import { chmod, chown, lstat, open, readdir, rename, rm, stat, statfs } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { EXIT_STATUS, ParleyError, StopError } from '../errors.ts'
import { sizeText } from '../size-text.ts'
import { APPLICATION_ID, faultOf } from './open.ts'

/**
 * The place that a snapshot is to have: whether it may be taken, whether it fits, and how it is. Nothing here holds
 * the event loop, since the place may be on a disk that is slow or does not answer.
 */

/** Bytes that this process may still write to a folder's disk. */
export type FreeBytes = (folder: string) => number | Promise<number>

const COMPANIONS = ['-wal', '-shm', '-journal', '-lock']

/** @throws StopError 64 where `file` is anything that may not be replaced, 73 where it cannot be told */
export async function refuseTarget(database: string, file: string): Promise<void> {
  const [own, there] = [await stat(database), await statOf(file)]
  const isDatabase = there !== undefined && there.ino === own.ino && there.dev === own.dev
  if (isDatabase || ['', ...COMPANIONS].some(end => file === `${database}${end}`)) {
    throw refusal(`${file} belongs to the warehouse itself`, 'Name another file for the snapshot.')
  }
  await refuseWithoutFolder(file)
  await refuseCompanions(file)
  if (there === undefined) return refuseBrokenLink(file)
  if (there.isDirectory()) throw isFolder(file, database)
  if (there.isFile() && (there.size === 0 || (await isSnapshot(file)))) return
  throw refusal(
    `${file} is there already, is no snapshot of parley, and was not touched`,
    'Only snapshots are replaced. Name another file, or remove that one first.',
  )
}

export const isFolder = (file: string, database: string): StopError =>
  refusal(`${file} is a folder`, `Name a file in it, such as ${join(file, basename(database))}.`)

async function refuseWithoutFolder(file: string): Promise<void> {
  if ((await statOf(dirname(file)))?.isDirectory()) return
  throw new StopError(`Cannot write the snapshot ${file}: there is no such folder`, {
    code: 'snapshot-unwritable',
    hint: `Make the folder (mkdir -p ${dirname(file)}), or name another file.`,
    exitStatus: EXIT_STATUS.databaseUnavailable,
  })
}

/** SQLite would take them for a part of the new file. */
async function refuseCompanions(file: string): Promise<void> {
  for (const end of COMPANIONS) {
    if ((await statOf(`${file}${end}`)) === undefined) continue
    const what = `there is ${basename(file)}${end} beside it: a database that is in use, or what is left of one`
    throw refusal(`${file} cannot be replaced, since ${what}`, 'Name another file, or remove both first.')
  }
}

/** It may lead to a disk that is not there at the moment. */
async function refuseBrokenLink(file: string): Promise<void> {
  if ((await statOf(file, lstat)) === undefined) return
  throw refusal(
    `${file} is a link to a file that is not there, and was not touched`,
    'See whether its disk is mounted. Else name another file, or remove the link first.',
  )
}

const refusal = (message: string, hint: string) =>
  new StopError(message, { code: 'snapshot-refused', hint, exitStatus: EXIT_STATUS.usage })

async function statOf(path: string, ask: typeof stat | typeof lstat = stat) {
  try {
    return await ask(path)
  } catch (error) {
    if (/^(ENOENT|ENOTDIR)$/.test(codeOf(error))) return undefined
    throw error
  }
}

/** By its header (sqlite.org/fileformat2.html): parley's, and not in WAL mode as every warehouse is. */
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

export async function refuseWithoutSpace(file: string, needed: number, freeBytes: FreeBytes): Promise<void> {
  const free = await freeBytes(dirname(file))
  if (free >= needed) return
  throw new StopError(`There is no space for the snapshot ${file}`, {
    code: 'no-space-for-snapshot',
    hint: `It needs about ${sizeText(needed)} in ${dirname(file)}: free ${sizeText(needed - free)} more, or name a file on another disk.`,
    exitStatus: EXIT_STATUS.databaseUnavailable,
  })
}

/** As the system tells it. */
export const freeOnDisk: FreeBytes = async folder => {
  const { bavail, bsize } = await statfs(folder)
  return bavail * bsize
}

/** A name beside the snapshot's own for what is not whole yet. */
export const partOf = (file: string): string => `${file}.${randomBytes(4).toString('hex')}.part`

const PART = /\.[0-9a-f]{8}\.part(-journal)?$/

/** One that is being made is written to all the time, until it is only brought to the disk and checked. */
const ABANDONED_MS = 3_600_000

/**
 * Removes what processes that died have left of this snapshot and of those that are named alike.
 * @param now by this machine's clock, in ms since the epoch
 * @returns the paths of what was removed
 */
export async function removeAbandoned(
  file: string,
  isAlike: (name: string) => boolean,
  now: number,
): Promise<string[]> {
  const folder = dirname(file)
  const removed: string[] = []
  for (const name of await namesIn(folder)) {
    const whole = name.replace(PART, '')
    if (whole === name || !(whole === basename(file) || isAlike(whole))) continue
    const path = join(folder, name)
    // It may be another user's.
    if (await isAged(path, now).catch(() => false)) removed.push(...(await removeFiles([path])).removed)
  }
  return removed
}

/** Removes what was left unfinished of one file, whatever its age. The caller holds the database's lock. */
export function removeParts(file: string): void {
  const folder = dirname(file)
  for (const name of readdirSync(folder)) {
    if (name !== basename(file) && name.replace(PART, '') === basename(file)) {
      rmSync(join(folder, name), { force: true })
    }
  }
}

/** A time to come was written under a wrong clock, and by a process that is long gone. */
async function isAged(path: string, now: number): Promise<boolean> {
  const { mtimeMs } = await stat(path)
  return Math.abs(now - mtimeMs) > ABANDONED_MS
}

/** Paths of what has gone, and of what should have and that the system keeps. */
export interface Removal {
  removed: readonly string[]
  stuck: readonly string[]
}

export async function removeFiles(paths: readonly string[]): Promise<Removal> {
  const [removed, stuck]: [string[], string[]] = [[], []]
  for (const path of paths) {
    const isGone = await rm(path, { force: true }).then(
      () => true,
      () => false,
    )
    const list = isGone ? removed : stuck
    list.push(path)
  }
  return { removed, stuck }
}

async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder)
  } catch {
    // One may write into a folder that one may not list.
    return []
  }
}

/** Mode and group as they are to be, then the name: from here on others can read it. */
export async function giveName(
  part: string,
  file: string,
  { database, mode }: { database: string; mode: number },
): Promise<void> {
  await chmod(part, await modeFor(part, database, mode))
  await rename(part, file)
  await bringNameToDisk(dirname(file))
}

const GROUP_RIGHTS = 0o070
const SET_GROUP_ID = 0o2000

/**
 * Gives a file or folder the group of the database, so that who reads the one reads the other; where the folder
 * around it gives its own, that one stays.
 * @returns the mode that it may have: where the group cannot be given, another one gets no rights instead of it
 */
export async function modeFor(path: string, database: string, mode: number): Promise<number> {
  if (((await stat(dirname(path))).mode & SET_GROUP_ID) !== 0) return mode
  const { gid } = await stat(database)
  if ((await stat(path)).gid === gid) return mode
  try {
    await chown(path, -1, gid)
    return mode
  } catch {
    // Only its members, and root, may give a file to a group.
    return mode & ~GROUP_RIGHTS
  }
}

async function bringNameToDisk(folder: string): Promise<void> {
  try {
    const handle = await open(folder)
    try {
      await handle.sync()
    } finally {
      await handle.close()
    }
  } catch {
    // Not every file system can, and not everybody may read the folder: it is whole all the same.
  }
}

const OF_THE_SYSTEM = /^(SQLITE_\w+|E(?!RR_)[A-Z0-9]+)$/

/** What went wrong with the place as a StopError (73), until the snapshot has its name; other errors as they are. */
export function targetError(error: unknown, file: string): unknown {
  const code = codeOf(error)
  if (error instanceof ParleyError || !OF_THE_SYSTEM.test(code)) return error
  const says = faultOf(code, file)?.says ?? 'the system does not allow it'
  return new StopError(`Cannot write the snapshot ${file}: ${says} (${code})`, {
    code: 'snapshot-unwritable',
    hint: `Check ${dirname(file)}: its owner and mode, its disk and the space on it; or name another file. Nothing was left, and an earlier snapshot of that name is as it was.`,
    cause: error,
    exitStatus: EXIT_STATUS.databaseUnavailable,
  })
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : ''
}
