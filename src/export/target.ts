import {
  chmodSync,
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
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
import { EXIT_STATUS, StopError } from '../errors.ts'
import { type HeldLock, lockDatabase } from '../store/lock.ts'
import { isReadOnly } from '../store/open.ts'
import { type Mark, readMark } from './fingerprint.ts'
import { isManifest, type Manifest } from './manifest.ts'

/** The folder that is exported to: what of it is ours, and how it changes. */
export interface Target {
  path: string
  /** Everything there that could be the folder of a table. */
  folders(): string[]
  /** What parley wrote for this table and stands there still. Removes what a crash has left half done. */
  files(folder: string): TargetFile[]
  /** Where a file is made before it is put in its place; its folder is there then. */
  beside(file: string): string
  /** Puts what was made beside it in the place of a file, at once. */
  replace(file: string): void
  /** Removes what was made beside it. */
  discard(file: string): void
  remove(file: string): void
  /** What was put in place stays there, whatever happens to the machine. */
  settle(): void
  /** Undefined where there is none that can be read. */
  readManifest(): Manifest | undefined
  writeManifest(text: string): void
  close(): void
}

export interface TargetFile extends Mark {
  /** From the target, with `/`. */
  path: string
  /** `YYYY-MM`; null for rows without a time, undefined where the table has no partitions. */
  month: string | null | undefined
  bytes: number
}

/** Rows without a time: so Hive, Spark, Trino and DuckDB call a partition whose key is NULL. */
const NO_MONTH = '__HIVE_DEFAULT_PARTITION__'

const PART = 'part-00000.parquet'
const MANIFEST = 'manifest.json'
/** Its lock says that the folder is ours, and keeps a second export out. */
const LOCKED = '.parley-export'
const LOCK = `${LOCKED}-lock`

export function partOf(folder: string, month: string | null | undefined): string {
  return month === undefined ? `${folder}/${PART}` : `${folder}/month=${month ?? NO_MONTH}/${PART}`
}

const unfinished = (file: string): string => join(dirname(file), `.${basename(file)}.tmp`)

/**
 * @param mode of files; folders can be looked into by whoever may read these
 * @throws StopError 64 when it is no folder of ours, 73 when it cannot be used, 75 when another export is at work
 */
export function openTarget(path: string, mode: number, clock: Clock): Target {
  const lock = lockFolder(path, mode, clock)
  const touched = new Set<string>()

  return {
    path,
    folders: () => readdirSync(path).filter(name => isOpenFolder(join(path, name))),
    files: folder => filesIn(path, folder),
    beside(file) {
      const folder = dirname(join(path, file))
      for (const missing of [dirname(folder), folder]) makeFolder(missing, mode)
      return unfinished(join(path, file))
    },
    replace(file) {
      const place = join(path, file)
      renameSync(unfinished(place), place)
      touched.add(dirname(place)).add(dirname(dirname(place)))
    },
    discard: file => removeWithin(path, unfinished(join(path, file))),
    remove: file => removeWithin(path, join(path, file)),
    settle() {
      for (const folder of touched) if (existsSync(folder)) sync(folder)
      touched.clear()
    },
    readManifest: () => readManifest(path),
    writeManifest(text) {
      const file = join(path, MANIFEST)
      writeFileSync(unfinished(file), text, { mode })
      chmodSync(unfinished(file), mode)
      sync(unfinished(file))
      renameSync(unfinished(file), file)
      sync(path)
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
    const file = partOf(folder, month)
    if (existsSync(unfinished(join(path, file)))) removeWithin(path, unfinished(join(path, file)))
    const mark = existsSync(join(path, file)) ? readMark(join(path, file)) : undefined
    if (mark?.folder !== folder) return []
    const { fingerprint, rows, bytes } = mark
    return [{ path: file, month, fingerprint, rows, bytes }]
  })
}

/** What others have put beside ours may be closed to us. */
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
    // Every file says of itself what it is; only when it was found to be true is lost.
    return undefined
  }
}

/** One that was there before keeps its mode. */
function makeFolder(path: string, mode: number): void {
  if (existsSync(path)) {
    if (statSync(path).isDirectory()) return
    throw new StopError(`${path} is not a folder`, {
      code: 'export-no-folder',
      hint: 'Name a folder that is empty, is not there yet, or holds an earlier export.',
      exitStatus: EXIT_STATUS.usage,
    })
  }
  mkdirSync(path, { recursive: true })
  // Whoever may read files may also look into folders.
  chmodSync(path, mode | ((mode & 0o444) >> 2))
}

function refuseForeign(path: string): void {
  const inside = readdirSync(path)
  // A copy of an export may come without the lock, and many programs call a file of theirs manifest.json.
  if (inside.length === 0 || inside.includes(LOCK) || readManifest(path)) return
  throw new StopError(`${path} holds files that are not of an export of parley`, {
    code: 'export-foreign',
    hint: 'Name a folder that is empty, is not there yet, or holds an earlier export; this one was not touched.',
    exitStatus: EXIT_STATUS.usage,
  })
}

function lockFolder(path: string, mode: number, clock: Clock): HeldLock {
  try {
    makeFolder(path, mode)
    refuseForeign(path)
    return lockDatabase(join(path, LOCKED), clock, mode)
  } catch (error) {
    if (!(error instanceof StopError)) throw targetError(error, path)
    if (error.code === 'database-unavailable') throw targetError(error.cause, path)
    if (error.code !== 'database-locked') throw error
    throw new StopError(`Another process is exporting to ${path}`, {
      code: 'export-locked',
      hint: 'Wait for it, or name another folder.',
      exitStatus: EXIT_STATUS.unfinished,
    })
  }
}

/** With the folders of table and month where nothing else is in them. */
function removeWithin(path: string, place: string): void {
  rmSync(place, { force: true })
  removeIfEmpty(dirname(place))
  if (dirname(dirname(place)) !== path) removeIfEmpty(dirname(dirname(place)))
}

/** What others have put beside our files keeps the folder. */
function removeIfEmpty(folder: string): void {
  if (existsSync(folder) && readdirSync(folder).length === 0) rmdirSync(folder)
}

function sync(path: string): void {
  const handle = openSync(path, 'r')
  try {
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
}

/** What each error of the file system means for a person. */
const FAULTS: readonly { codes: readonly string[]; says: string; hint: string }[] = [
  {
    codes: ['ENOSPC', 'EDQUOT', 'EFBIG'],
    says: 'the disk is full',
    hint: 'Free some space and run it again: it goes on where it stopped, and the manifest still tells of the export before.',
  },
  {
    codes: ['EROFS'],
    says: 'its file system is read-only',
    hint: 'Mount it for writing, or name another folder.',
  },
  {
    codes: ['EACCES', 'EPERM', 'SQLITE_CANTOPEN'],
    says: 'no permission to write there',
    hint: 'Check the owner and mode of the folder, or name another one.',
  },
  {
    codes: ['ENOTDIR', 'EISDIR', 'EEXIST', 'ENOTEMPTY', 'ENOENT', 'ENAMETOOLONG'],
    says: 'something else is where a folder or a file has to be',
    hint: 'Look at what lies there, or name another folder.',
  },
  { codes: ['EIO'], says: 'reading or writing failed', hint: 'Check the disk.' },
]

/** Errors of the file system as a StopError (73); every other error as it is. */
export function targetError(error: unknown, path: string): unknown {
  if (error instanceof StopError || !(error instanceof Error) || !('code' in error)) return error
  const found = String(error.code)
  const code = found === 'SQLITE_CANTOPEN' && isReadOnly(join(path, LOCKED)) ? 'EROFS' : found
  const fault = FAULTS.find(({ codes }) => codes.includes(code))
  if (!fault) return error
  return new StopError(`Cannot export to ${path}: ${fault.says} (${code})`, {
    code: 'export-unwritable',
    hint: fault.hint,
    cause: error,
    exitStatus: EXIT_STATUS.databaseUnavailable,
  })
}
