import { randomUUID } from 'node:crypto'
import {
  closeSync,
  constants,
  fchmodSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  type Stats,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { errorCode } from '../../base/errors.ts'

/**
 * Creates files and folders that outlive a crash of the machine, in places where other users may write too, such as
 * /tmp. Another user may have put a link there to files that only this user may write. So a file is always new, a
 * folder in a target is never a link, and a mode is set on an open file and not on a path.
 */

/**
 * Opens a new file, which only this user can read until it gets another mode.
 * @throws EEXIST where anything has this name, even a link that leads nowhere
 */
export const createFile = (path: string): number => openSync(path, 'wx+', 0o600)

/** Opens a new file without a name: nothing is left of it when it is closed or the process is killed. */
export function createUnnamedFile(folder: string): number {
  const path = join(folder, `parley-${randomUUID()}`)
  const file = createFile(path)
  rmSync(path)
  return file
}

/** Writes a new file, and syncs it to the disk. @throws as `createFile` */
export function writeNewFile(path: string, content: string | Uint8Array, mode: number): void {
  const file = createFile(path)
  try {
    writeFileSync(file, content)
    fchmodSync(file, mode)
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}

/** Replaces a file atomically: after a failure the earlier file is unchanged. @throws the error of the system */
export function replaceFile(path: string, content: string | Uint8Array, mode: number): void {
  const unfinished = `${path}.${randomUUID()}`
  try {
    writeNewFile(unfinished, content, mode)
    renameDurably(unfinished, path)
  } catch (error) {
    rmSync(unfinished, { force: true })
    throw error
  }
}

const WRITE_FAULTS: readonly { codes: RegExp; says: string; mend: string }[] = [
  { codes: /^(ENOSPC|EDQUOT)$/, says: 'the disk is full', mend: 'Free some space' },
  { codes: /^EROFS$/, says: 'its file system is read-only', mend: 'Mount it read-write' },
  { codes: /^ENOENT$/, says: 'its folder does not exist', mend: 'Create the folder with mkdir -p' },
  { codes: /^(ENOTDIR|EEXIST)$/, says: 'a part of its path is not a folder', mend: 'Correct the path' },
  {
    codes: /^(EACCES|EPERM)$/,
    says: 'no permission to write there',
    mend: 'Run parley as a user who can write there',
  },
]

/** Why a file could not be written, and what a person can do: the beginning of a sentence. */
export function writeFaultOf(error: unknown): { why: string; mend: string } {
  const code = errorCode(error) ?? 'unknown'
  const fault = WRITE_FAULTS.find(({ codes }) => codes.test(code))
  if (fault === undefined) return { why: code, mend: 'Check the path and its disk' }
  return { why: `${fault.says} (${code})`, mend: fault.mend }
}

export interface NewFile {
  /** The descriptor to write to. */
  file: number
  /** Gives the file its mode, syncs it to the disk and closes it. */
  end(): void
  /** Closes and removes the file, also after a failed `end`. */
  abandon(): void
}

/** Begins a new file, which stays incomplete until `end`. @throws as `createFile` */
export function beginNewFile(path: string, mode: number): NewFile {
  const file = createFile(path)
  let isOpen = true
  const close = () => {
    if (isOpen) closeSync(file)
    isOpen = false
  }
  return {
    file,
    end() {
      fchmodSync(file, mode)
      fsyncSync(file)
      close()
    },
    abandon() {
      close()
      rmSync(path, { force: true })
    },
  }
}

const FOLDER_ITSELF = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW

/**
 * Creates a folder. An existing folder keeps its mode. Users who may read files of this mode may enter the folder.
 * @throws ELOOP for a link, EEXIST for anything else that is no folder
 */
export function makeFolder(path: string, mode: number): void {
  if (folderStats(path) || !createFolder(path)) return
  const folder = openSync(path, FOLDER_ITSELF)
  try {
    fchmodSync(folder, mode | ((mode & 0o444) >> 2))
  } finally {
    closeSync(folder)
  }
}

/** @returns false when another process has created it meanwhile */
export function createFolder(path: string): boolean {
  try {
    mkdirSync(path)
    return true
  } catch (error) {
    if (errorCode(error) !== 'EEXIST' || !folderStats(path)) throw error
    return false
  }
}

/**
 * @returns undefined where nothing has this path
 * @throws ELOOP for a link, EEXIST for anything else that is no folder
 */
export function folderStats(path: string): Stats | undefined {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (found === undefined || found.isDirectory()) return found
  throw Object.assign(new Error('It is not a folder'), {
    code: found.isSymbolicLink() ? 'ELOOP' : 'EEXIST',
    path,
  })
}

/** Renames a file within its folder, so that the new name survives a crash of the machine. */
export function renameDurably(from: string, to: string): void {
  renameSync(from, to)
  fsyncPath(dirname(to))
}

/** Flushes a file, or the directory entries of a folder, to the disk. */
export function fsyncPath(path: string): void {
  const handle = openSync(path, 'r')
  try {
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
}
