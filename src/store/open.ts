import { accessSync, constants, existsSync, realpathSync, statfsSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import Database from 'better-sqlite3'
import { EXIT_STATUS, StopError } from '../errors.ts'
import { refuseSecondName } from './database/file-names.ts'
import { refuseOtherWorkspace, type WantedWorkspace } from './database/workspace.ts'
import { applyMode, type ModeChange, openWritableFile } from './database/writable-file.ts'
import { appliedMigrations, migrate, newestMigration, type UpgradeOptions } from './migrate.ts'
import { ensureViews } from './views.ts'

export type Sqlite = Database.Database
export type Statement = Database.Statement<unknown[]>

/** In every warehouse's header, so that `file` and parley know one: the letters `parl`. */
export const APPLICATION_ID = 0x7061726c

export interface OpenOptions extends UpgradeOptions {
  path: string
  /** Mode of the file and its `-wal` and `-shm`, as an octal number. */
  mode?: number
  readonly?: boolean
  /** Refuses the database of another workspace before anything is written. */
  workspace?: WantedWorkspace | undefined
  /** Gives existing files the mode too, and calls this for each that had another. Without it they keep theirs. */
  onMode?: ((change: ModeChange) => void) | undefined
}

/** The wait happens on the event loop, so it is short here and repeated through the clock. */
const BUSY_MS = 100

/**
 * Opens the warehouse, making or migrating it when it is opened for writing.
 * @throws StopError (73) when it cannot be opened, is no parley database or was made by a newer version
 */
export function openDatabase({
  path,
  mode = 0o600,
  readonly = false,
  workspace,
  onMode,
  ...upgrade
}: OpenOptions): Sqlite {
  const file = resolve(path)
  try {
    if (!readonly) refuseSecondName(truePath(file))
    const db = readonly
      ? new Database(file, { readonly, fileMustExist: true, timeout: BUSY_MS })
      : openWritableFile(file, mode, BUSY_MS)
    try {
      // Before anything that writes: even choosing the journal mode changes a stranger's file.
      recognise(db, file, upgrade.migrations)
      if (workspace) refuseOtherWorkspace(db, file, workspace)
      configure(db, readonly)
      if (!readonly) {
        prepare(db, file, upgrade)
        // SQLite gives a -wal and -shm that it creates the mode of the database.
        if (onMode) for (const change of applyMode(filesOf(file), mode)) onMode(change)
      }
    } catch (error) {
      closeBesideReader(db)
      throw error
    }
    return db
  } catch (error) {
    throw databaseError(error, file)
  }
}

/** One name for one file, whatever links lead to it, so that its lock is one as well. */
export function truePath(path: string): string {
  const file = resolve(path)
  try {
    return existsSync(file) ? realpathSync(file) : join(realpathSync(dirname(file)), basename(file))
  } catch {
    // What is wrong with the folder is said when the file is opened.
    return file
  }
}

const filesOf = (file: string): string[] => ['', '-wal', '-shm'].map(suffix => `${file}${suffix}`)

function configure(db: Sqlite, readonly: boolean): void {
  if (readonly) return
  db.pragma('journal_mode = WAL')
  db.pragma('synchronous = NORMAL')
  // References in tables that other people have added neither block a write nor act on one. parley's own rows are
  // removed and written by statements of its own, from the parent down.
  db.pragma('foreign_keys = OFF')
  // From the first write on: what is replaced today may be withdrawn later, and erasing finds rows, not their remains.
  db.pragma('secure_delete = ON')
  db.pragma('temp_store = MEMORY')
  db.pragma('cache_size = -8000')
  db.pragma('journal_size_limit = 67108864')
}

/** A stranger's database is refused and not touched; an empty file is ours to fill. */
function recognise(db: Sqlite, file: string, migrations: string | undefined): void {
  if (db.pragma('application_id', { simple: true }) === APPLICATION_ID) {
    const newest = newestMigration(migrations)
    const unknown = appliedMigrations(db).find(applied => applied > newest)
    if (unknown !== undefined) {
      throw new StopError(`${file} was made by a newer version of parley`, {
        code: 'database-newer',
        hint: 'Install that version again, or choose another file with database.path.',
        exitStatus: EXIT_STATUS.databaseUnavailable,
      })
    }
    return
  }
  const objects = db.prepare('SELECT count(*) FROM sqlite_master').pluck().get()
  if (objects === 0) return
  throw new StopError(`${file} is a database, but not one of parley`, {
    code: 'database-foreign',
    hint: 'Choose another file with database.path; this one was not touched.',
    exitStatus: EXIT_STATUS.databaseUnavailable,
  })
}

function prepare(db: Sqlite, file: string, upgrade: UpgradeOptions): void {
  // Before the first table, so that a database whose making was cut short is known as ours.
  if (db.pragma('application_id', { simple: true }) !== APPLICATION_ID) {
    db.pragma(`application_id = ${APPLICATION_ID}`)
  }
  migrate(db, file, upgrade)
  ensureViews(db)
}

/** What each SQLite result code means for a person. */
const DATABASE_FAULTS: readonly { codes: RegExp; says: string; hint: string }[] = [
  {
    codes: /^(SQLITE_FULL|ENOSPC|EDQUOT)/,
    says: 'the disk is full',
    hint: 'Free some space and run it again; it goes on where it stopped.',
  },
  {
    codes: /^(SQLITE_CANTOPEN_ISDIR|EISDIR)/,
    says: 'it is a folder, expected a file',
    hint: 'Check database.path.',
  },
  {
    codes: /^SQLITE_READONLY_DIRECTORY/,
    says: 'its -wal and -shm are not beside it, and this user may not make them',
    hint: 'Have its owner run any parley command on it, such as parley status, or give this user a snapshot of it.',
  },
  {
    codes: /^EROFS/,
    says: 'its file system is read-only',
    hint: 'Mount it for writing, or choose another file with database.path.',
  },
  {
    codes: /^(SQLITE_READONLY|SQLITE_CANTOPEN|SQLITE_PERM|EACCES|EPERM)/,
    says: 'no permission to open or write it',
    hint: 'Check the owner and mode of the file and its folder, or choose another file with database.path.',
  },
  {
    codes: /^(ENOENT|ENOTDIR)/,
    says: 'there is no such file or folder',
    hint: 'Check database.path.',
  },
  { codes: /^SQLITE_NOTADB/, says: 'it is not a database', hint: 'Choose another file with database.path.' },
  {
    codes: /^SQLITE_CORRUPT/,
    says: 'it is damaged',
    hint: 'Restore a snapshot (parley restore FILE), or move the file away and read everything again.',
  },
  {
    codes: /^(SQLITE_IOERR|EIO|EFBIG)/,
    says: 'reading or writing it failed',
    hint: 'Check the disk, its free space and any limit on file sizes.',
  },
]

/**
 * Errors of SQLite and of the file system as a StopError: 75 where another program keeps the database to itself, else
 * 73. Every other error as it is.
 */
export function databaseError(error: unknown, file: string): unknown {
  if (error instanceof StopError || !(error instanceof Error)) return error
  if (isBusy(error)) return databaseBusy(file, error)
  if (!('code' in error)) return error.cause === undefined ? error : databaseError(error.cause, file)
  const code = String(error.code)
  const fault = faultOf(code, file)
  if (!fault) return error
  const { says, hint } = fault
  return new StopError(`Cannot use the database ${file}: ${says} (${code})`, {
    code: 'database-unavailable',
    hint,
    cause: error,
    exitStatus: EXIT_STATUS.databaseUnavailable,
  })
}

/** What an error code of SQLite or of the file system says of this file; undefined where it is no such code. */
export function faultOf(code: string, file: string): { says: string; hint: string } | undefined {
  const fault = DATABASE_FAULTS.find(({ codes }) => codes.test(code))
  const mayBeFull =
    fault !== undefined && ['SQLITE_IOERR', 'SQLITE_CANTOPEN'].some(one => fault.codes.test(one))
  if (mayBeFull && isDiskFull(file)) return DATABASE_FAULTS[0]
  const mayBeReadOnly = fault?.codes.test('SQLITE_CANTOPEN') && isReadOnly(file)
  return mayBeReadOnly ? DATABASE_FAULTS.find(({ codes }) => codes.test('EROFS')) : fault
}

/** Whether the whole file system is: SQLite has the same code for a missing permission. */
export function isReadOnly(file: string): boolean {
  try {
    accessSync(dirname(file), constants.W_OK)
    return false
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EROFS'
  }
}

/** On a full disk some writes fail as a plain input/output error, and a new file as one that cannot be opened. */
function isDiskFull(file: string): boolean {
  try {
    const { blocks, bavail } = statfsSync(dirname(file))
    // File systems of the kernel, such as /sys, have no blocks at all.
    return blocks > 0 && bavail < 16
  } catch {
    return false
  }
}

export function isBusy(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  return ('code' in error && String(error.code).startsWith('SQLITE_BUSY')) || isBusy(error.cause)
}

/** An analyst's shell with a transaction that was never ended is enough. */
export function databaseBusy(file: string, cause?: Error): StopError {
  return new StopError(`Another program keeps the database ${file} to itself`, {
    code: 'database-busy',
    hint: 'End what holds it, such as an open transaction in an sqlite3 shell, or wait for it; then run this again.',
    cause,
    exitStatus: EXIT_STATUS.unfinished,
  })
}

/**
 * Closes the database so that its `-wal` and `-shm` stay: without these, a reader who may not write the folder
 * cannot open a WAL database. The last connection to close must be a read-only one.
 */
export function closeDatabase(db: Sqlite): void {
  const { readonly, memory } = db
  if (readonly || memory) {
    db.close()
    return
  }
  emptyLog(db)
  closeBesideReader(db)
}

/**
 * Closes a database whose file has another name now. By the old name a reader would open another file, with the -wal
 * of this one if that has stayed: everything is moved out of the -wal, and no file is opened.
 */
export function closeMovedDatabase(db: Sqlite): void {
  emptyLog(db)
  db.close()
}

function emptyLog(db: Sqlite): void {
  try {
    db.pragma('wal_checkpoint(TRUNCATE)')
  } catch {
    // On a full disk the WAL stays as it is: nothing is lost, the next opening takes it up.
  }
}

/** Closes the database with its -wal and -shm as they are. */
export function closeBesideReader(db: Sqlite): void {
  let last: Sqlite | undefined
  try {
    last = new Database(db.name, { readonly: true, fileMustExist: true })
    // It holds the files open only after it has read something.
    last.prepare('SELECT count(*) FROM sqlite_master').get()
  } catch {
    // What nobody can read, nobody needs them for.
  }
  db.close()
  last?.close()
}
