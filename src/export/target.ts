import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { Clock } from '../clock.ts'
import { errorCode } from '../error-code.ts'
import { EXIT_STATUS, StopError } from '../errors.ts'
import { isReadOnly } from '../store/database/sqlite-errors.ts'
import { type HeldLock, lockDatabase } from '../store/file/lock.ts'
import { fsyncPath } from '../store/file/whole-copy.ts'
import { readMark } from './fingerprint.ts'
import { isManifest, type Manifest, type TargetFile } from './manifest.ts'

/** The folder of an export. Files are written under a temporary name and then renamed. */
export interface Target {
  path: string
  /** All readable folders in it, whether or not parley created them. */
  folders(): string[]
  /** Complete files that parley wrote for this table. Removes incomplete files of a crash. */
  files(folder: string): TargetFile[]
  /** Creates the folder of a file. Returns the temporary path to write to. */
  prepare(file: string): string
  /** Atomically moves the temporary file to its place. */
  replace(file: string): void
  /** Removes the temporary file. */
  discard(file: string): void
  remove(file: string): void
  /** Syncs changed folders to the disk, so that replaced files survive a crash of the machine. */
  syncFolders(): void
  /** Undefined where there is no readable manifest. */
  readManifest(): Manifest | undefined
  writeManifest(text: string): void
  close(): void
}

/** The partition of rows without a time, by the name that Hive, Spark, Trino and DuckDB use for a NULL key. */
const NO_MONTH = '__HIVE_DEFAULT_PARTITION__'

const PART = 'part-00000.parquet'
const MANIFEST = 'manifest.json'
/** A lock of this name marks the folder as an export of parley, and prevents two exports at the same time. */
const LOCKED_NAME = '.parley-export'
const LOCK = `${LOCKED_NAME}-lock`

export function filePath(folder: string, month: string | null | undefined): string {
  return month === undefined ? `${folder}/${PART}` : `${folder}/month=${month ?? NO_MONTH}/${PART}`
}

const temporaryName = (file: string): string => join(dirname(file), `.${basename(file)}.tmp`)

/**
 * @param mode file mode. Users who may read the files may also enter the folders.
 * @throws StopError 64 when the folder is not an export of parley, 73 when it cannot be used, 75 when another export is
 *   running
 */
export function openTarget(path: string, mode: number, clock: Clock): Target {
  const lock = lockFolder(path, mode, clock)
  const touched = new Set<string>()

  return {
    path,
    folders: () => readdirSync(path).filter(name => isOpenFolder(join(path, name))),
    files: folder => filesIn(path, folder),
    prepare(file) {
      const folder = dirname(join(path, file))
      for (const missing of [dirname(folder), folder]) makeFolder(missing, mode)
      return temporaryName(join(path, file))
    },
    replace(file) {
      const place = join(path, file)
      renameSync(temporaryName(place), place)
      touched.add(dirname(place)).add(dirname(dirname(place)))
    },
    discard: file => removeWithin(path, temporaryName(join(path, file))),
    remove: file => removeWithin(path, join(path, file)),
    syncFolders() {
      for (const folder of touched) if (existsSync(folder)) fsyncPath(folder)
      touched.clear()
    },
    readManifest: () => readManifest(path),
    writeManifest(text) {
      const file = join(path, MANIFEST)
      writeFileSync(temporaryName(file), text, { mode })
      chmodSync(temporaryName(file), mode)
      fsyncPath(temporaryName(file))
      renameSync(temporaryName(file), file)
      fsyncPath(path)
    },
    close: () => lock.release(),
  }
}

function filesIn(path: string, folder: string): TargetFile[] {
  const inside = existsSync(join(path, folder)) ? readdirSync(join(path, folder)) : []
  const months = inside.flatMap(name => {
    const month = /^month=(\d{4}-\d{2}|__HIVE_DEFAULT_PARTITION__)$/.exec(name)?.[1]
    return month === undefined ? [] : [month === NO_MONTH ? null : month]
  })
  return [undefined, ...months].flatMap(month => {
    const file = filePath(folder, month)
    if (existsSync(temporaryName(join(path, file)))) removeWithin(path, temporaryName(join(path, file)))
    const mark = markAt(join(path, file))
    if (mark?.folder !== folder) return []
    const { fingerprint, rows, bytes } = mark
    return [{ path: file, month, fingerprint, rows, bytes }]
  })
}

/** Undefined where there is no file of an export. */
function markAt(place: string) {
  const stats = statSync(place, { throwIfNoEntry: false })
  // A read of a folder fails with an error that does not name it.
  if (stats?.isDirectory()) throw Object.assign(new Error('It is a folder'), { code: 'EISDIR', path: place })
  return stats && readMark(place)
}

/** Whether this user can read the folder. A folder of another program may be unreadable. */
function isOpenFolder(path: string): boolean {
  try {
    readdirSync(path)
    return true
  } catch {
    return false
  }
}

function readManifest(path: string): Manifest | undefined {
  try {
    const manifest: unknown = JSON.parse(readFileSync(join(path, MANIFEST), 'utf8'))
    return isManifest(manifest) ? manifest : undefined
  } catch {
    // The files have their own marks. Only their `exported_at` is lost.
    return undefined
  }
}

/** An existing folder keeps its mode. */
function makeFolder(path: string, mode: number): void {
  if (existsSync(path)) {
    if (statSync(path).isDirectory()) return
    throw new StopError(`${path} is not a folder`, {
      code: 'export-no-folder',
      hint: 'Name a folder that is empty, does not exist yet, or has an earlier export.',
      exitStatus: EXIT_STATUS.usage,
    })
  }
  createWithParents(path)
  // Users who may read the files may also enter the folders.
  chmodSync(path, mode | ((mode & 0o444) >> 2))
}

/**
 * Creates the folder and its missing parents. The recursive mkdir of Node is not used: it reports a read-only file
 * system as a missing folder, and it never returns where the system refuses new folders with ENOENT, such as in /proc.
 */
function createWithParents(path: string): void {
  if (!existsSync(dirname(path))) createWithParents(dirname(path))
  mkdirSync(path)
}

function refuseForeign(path: string): void {
  const inside = readdirSync(path)
  // A copied export may lack the lock. Other programs also write a manifest.json, so its content is checked.
  if (inside.length === 0 || inside.includes(LOCK) || readManifest(path)) return
  throw new StopError(`${path} has files that are not from an export of parley`, {
    code: 'export-foreign',
    hint: 'Name a folder that is empty, does not exist yet, or has an earlier export; this one was not changed.',
    exitStatus: EXIT_STATUS.usage,
  })
}

function lockFolder(path: string, mode: number, clock: Clock): HeldLock {
  try {
    makeFolder(path, mode)
    refuseForeign(path)
    return lockDatabase(join(path, LOCKED_NAME), clock, mode)
  } catch (error) {
    if (!(error instanceof StopError)) throw targetError(error, path)
    if (error.code === 'database-unavailable') throw targetError(lockCause(error.cause, path), path)
    if (error.code !== 'database-locked') throw error
    throw new StopError(`Another process is exporting to ${path}`, {
      code: 'export-locked',
      hint: 'Wait until it ends, or choose another folder.',
      exitStatus: EXIT_STATUS.unfinished,
    })
  }
}

/** Adds the path if the lock is no database. SQLite names no file and reports a folder as a missing permission. */
function lockCause(cause: unknown, path: string): unknown {
  const place = join(path, LOCK)
  const isFolder = statSync(place, { throwIfNoEntry: false })?.isDirectory() === true
  if (!isFolder && errorCode(cause) !== 'SQLITE_NOTADB') return cause
  return Object.assign(new Error('Not a lock'), { code: isFolder ? 'EISDIR' : 'SQLITE_NOTADB', path: place })
}

/** Removes a file, and then the folders of its month and its table if they are empty. */
function removeWithin(path: string, place: string): void {
  rmSync(place, { force: true })
  removeIfEmpty(dirname(place))
  if (dirname(dirname(place)) !== path) removeIfEmpty(dirname(dirname(place)))
}

/** Keeps a folder that has files of other programs. */
function removeIfEmpty(folder: string): void {
  if (existsSync(folder) && readdirSync(folder).length === 0) rmdirSync(folder)
}

interface TargetFault {
  codes: readonly string[]
  says: string
  hint: string
  /** True when the message names the path inside the folder. */
  isAtPath?: true
}

/** Message and hint by error code of the file system. */
const FAULTS: readonly TargetFault[] = [
  {
    codes: ['ENOSPC', 'EDQUOT'],
    says: 'the disk is full',
    hint: 'Free some space and run the export again; it continues where it stopped. Until then, the manifest of an earlier export stays.',
  },
  {
    codes: ['EFBIG'],
    says: 'a file would exceed the size limit of this user or of the file system',
    hint: 'Raise the limit (ulimit -f, or LimitFSIZE of the service) and run the export again; it continues where it stopped.',
  },
  {
    codes: ['EROFS'],
    says: 'its file system is read-only',
    hint: 'Mount it read-write, or choose another folder.',
  },
  {
    codes: ['EACCES', 'EPERM', 'SQLITE_CANTOPEN'],
    says: 'no permission to write there',
    hint: 'Check the owner and mode of the folder, or choose another one.',
  },
  {
    codes: ['ENOTDIR', 'EISDIR', 'ERR_FS_EISDIR', 'EEXIST', 'ENOTEMPTY', 'SQLITE_NOTADB'],
    says: 'something else is in the way',
    isAtPath: true,
    hint: 'Move it away, or choose another folder.',
  },
  {
    codes: ['ELOOP'],
    says: 'symbolic links form a loop',
    isAtPath: true,
    hint: 'Remove the link that leads back to itself, or choose another folder.',
  },
  {
    codes: ['ENOENT'],
    says: 'a folder or file is missing',
    isAtPath: true,
    hint: 'Check whether another program removed it, then run the export again.',
  },
  { codes: ['ENAMETOOLONG'], says: 'its path is too long', hint: 'Choose a folder with a shorter path.' },
  { codes: ['EIO'], says: 'reading or writing failed', hint: 'Check the disk.' },
]

/** A file system error becomes a StopError (73). Any other error is returned unchanged. */
export function targetError(error: unknown, path: string): unknown {
  const found = errorCode(error)
  if (error instanceof StopError || found === undefined) return error
  const code = found === 'SQLITE_CANTOPEN' && isReadOnly(join(path, LOCKED_NAME)) ? 'EROFS' : found
  const fault = FAULTS.find(({ codes }) => codes.includes(code))
  if (!fault) return error
  const at = fault.isAtPath ? placeOf(error) : ''
  return new StopError(`Cannot export to ${path}: ${fault.says}${at} (${code})`, {
    code: 'export-unwritable',
    hint: fault.hint,
    cause: error,
    exitStatus: EXIT_STATUS.databaseUnavailable,
  })
}

/** The file that the error is about. For a rename that is the target, which could not be replaced. */
function placeOf(error: unknown): string {
  if (!(error instanceof Error)) return ''
  if ('dest' in error) return ` at ${error.dest}`
  return 'path' in error ? ` at ${error.path}` : ''
}
