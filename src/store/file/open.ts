import { accessSync, chmodSync, constants, existsSync, type Stats, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { EXIT_STATUS, errorCode, StopError } from '../../base/errors.ts'
import { closeKeepingWal, openReader } from '../database/connections.ts'
import { openSqlite } from '../database/sqlite.ts'
import { databaseError, isBusy, openElsewhere } from '../database/sqlite-errors.ts'
import type { Sqlite } from '../database/sqlite-types.ts'
import { isMountPoint, mountTable, resolvedPath } from '../disk/location.ts'
import { appliedMigrations, newestMigration } from '../migrations/journal.ts'
import { refuseOtherWorkspace, type WantedWorkspace } from './workspace.ts'

/** Stored in the header of every warehouse, where parley and file(1) recognise it: the letters `parl`. */
export const APPLICATION_ID = 0x7061726c

export interface OpenOptions {
  path: string
  /** Permission bits of a file that is created, and of its `-wal` and `-shm`. Default 0o600. */
  mode?: number
  readonly?: boolean
  /** When a workspace is given, a database of another workspace is refused before anything is written. */
  workspace?: WantedWorkspace | undefined
  /** Folder with the migrations that this version knows. Default: the migrations of this version. */
  migrations?: string | undefined
}

/** SQLite blocks the event loop while it waits, so this wait is short. Transactions then pause and try again. */
const BUSY_TIMEOUT_MS = 100

/**
 * Opens a warehouse without upgrading it. When it is opened for writing, a missing file is created empty.
 * @throws StopError, exit status 73 when the file cannot be opened, parley did not create it, or a newer version wrote
 * it; 75 when another program has locked it; 78 when it holds another workspace
 */
export function openDatabase(options: OpenOptions): Sqlite {
  const { path, mode = 0o600, readonly = false, workspace, migrations } = options
  const file = resolve(path)
  try {
    if (readonly) databaseStats(file)
    else refuseSecondName(resolvedPath(file))
    const db = readonly ? openReader(file, BUSY_TIMEOUT_MS) : openWritableFile(file, mode, BUSY_TIMEOUT_MS)
    try {
      // This check precedes every write: even setting the journal mode would change a file that parley did not create.
      refuseForeignOrNewer(db, file, migrations)
      if (workspace) refuseOtherWorkspace(db, file, workspace)
      if (!readonly) configure(db, file)
    } catch (error) {
      closeKeepingWal(db)
      throw error
    }
    return db
  } catch (error) {
    throw databaseError(error, file)
  }
}

/**
 * Opens a warehouse read-only and closes it after `work`.
 * @throws StopError as `openDatabase`; 73 or 75 when `work` fails with an error of SQLite
 */
export function readDatabase<T>(options: Omit<OpenOptions, 'mode' | 'readonly'>, work: (db: Sqlite) => T): T {
  const file = resolve(options.path)
  const db = openDatabase({ ...options, path: file, readonly: true })
  try {
    return work(db)
  } catch (error) {
    throw isOlder(error, db, options.migrations) ? olderWarehouseError(db, error) : databaseError(error, file)
  } finally {
    db.close()
  }
}

/**
 * Checks the workspace of a database before it is opened for writing. A missing or unreadable database passes: opening
 * it for writing creates it or reports the error.
 * @throws StopError (78) when the database holds rows of another workspace
 */
export function refuseOtherWorkspaceAt(path: string, workspace: WantedWorkspace): void {
  if (!existsSync(path)) return
  try {
    openDatabase({ path, readonly: true, workspace }).close()
  } catch (error) {
    if (error instanceof StopError && error.code === 'other-workspace') throw error
  }
}

/** Whether a table or column is missing because this version has not opened the database for writing yet. */
function isOlder(error: unknown, db: Sqlite, migrations: string | undefined): boolean {
  return errorCode(error) === 'SQLITE_ERROR' && !appliedMigrations(db).includes(newestMigration(migrations))
}

/**
 * Refuses a database of an older version, for commands that only read. Such a command cannot upgrade the database, and
 * the tables lack columns that this version queries. A database without any migration passes.
 * @throws StopError (73) when an older version wrote the database
 */
export function refuseOlder(db: Sqlite): void {
  const newest = appliedMigrations(db).at(-1)
  if (newest !== undefined && newest < newestMigration()) throw olderWarehouseError(db)
}

export function olderWarehouseError(db: Sqlite, cause?: unknown): StopError {
  return new StopError(`${db.name} is from an older version of parley`, {
    code: 'database-older',
    hint: 'The next start of parley daemon or parley backfill upgrades it.',
    cause,
    exitStatus: EXIT_STATUS.databaseUnavailable,
  })
}

function configure(db: Sqlite, file: string): void {
  setWalMode(db, file)
  db.pragma('synchronous = NORMAL')
  // Foreign keys of tables that other people added must neither block parley's writes nor cascade from them. parley
  // writes and deletes the rows of its own child tables explicitly, parents first.
  db.pragma('foreign_keys = OFF')
  // Overwrites deleted content with zeros. A value that is overwritten today may have to be purged later, and a purge
  // cannot reach the remains of rows in free space.
  db.pragma('secure_delete = ON')
  db.pragma('temp_store = MEMORY')
  db.pragma('cache_size = -8000')
  db.pragma('journal_size_limit = 67108864')
}

/**
 * Changes only a database that is new or a copy that was put in its place: any other is in WAL mode. The change needs a
 * sole connection.
 */
function setWalMode(db: Sqlite, file: string): void {
  try {
    db.pragma('journal_mode = WAL')
  } catch (error) {
    const isWal = !isBusy(error) || db.pragma('journal_mode', { simple: true }) === 'wal'
    throw isWal ? error : openElsewhere(file, ONCE_ALONE, error)
  }
}

const ONCE_ALONE = 'After a restore, parley needs the database for a moment alone, and later no more.'

/** Refuses, without writing to it, a database of another program or of a newer version. An empty file is accepted. */
function refuseForeignOrNewer(db: Sqlite, file: string, migrations: string | undefined): void {
  if (db.pragma('application_id', { simple: true }) === APPLICATION_ID) {
    const newest = newestMigration(migrations)
    const unknown = appliedMigrations(db).find(applied => applied > newest)
    if (unknown !== undefined) {
      throw new StopError(`${file} was written by a newer version of parley`, {
        code: 'database-newer',
        hint: 'Install the newer version again, or choose another file with database.path.',
        exitStatus: EXIT_STATUS.databaseUnavailable,
      })
    }
    return
  }
  const objects = db.prepare('SELECT count(*) FROM sqlite_master').pluck().get()
  if (objects === 0) return
  throw new StopError(`${file} is a SQLite database, but parley did not create it`, {
    code: 'database-foreign',
    hint: 'Choose another file with database.path. This file was not changed.',
    exitStatus: EXIT_STATUS.databaseUnavailable,
  })
}

/**
 * @returns the stats of the database file; undefined when it does not exist yet. `existsSync` is also false for a path
 * that cannot be followed, and a command would offer to create a database that it cannot create. SQLite would open a
 * device, and at a named pipe it would wait for another process, where no signal could stop this one.
 * @throws StopError (73) when the path cannot be followed, or names anything but a file
 */
export function databaseStats(path: string): Stats | undefined {
  const file = resolve(path)
  try {
    const stats = statSync(file)
    if (stats.isFile()) return stats
    throw Object.assign(new Error('It is not a file'), { code: stats.isDirectory() ? 'EISDIR' : 'EFTYPE' })
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined
    throw databaseError(error, file)
  }
}

/**
 * The path of the database determines the names of its `-wal`, `-shm` and `-lock` files. A file with two paths would
 * have two of each, so two processes could write it at the same time.
 * @param file path without symbolic links
 * @throws StopError (73) when the file has another name, or `databaseStats` refuses the path
 */
export function refuseSecondName(file: string): void {
  const names = databaseStats(file)?.nlink ?? 1
  if (names > 1) {
    throw secondNameError(
      `${file} has ${names} names (hard links), expected one`,
      `Remove the other names; find / -samefile ${file} lists them.`,
    )
  }
  if (isMountPoint(file, mountTable())) {
    throw secondNameError(
      `${file} is mounted as a single file, so its -wal and -lock files are not those of the original`,
      'Mount the folder that contains the database instead of the file.',
    )
  }
}

function secondNameError(message: string, hint: string): StopError {
  return new StopError(message, {
    code: 'database-second-name',
    hint,
    exitStatus: EXIT_STATUS.databaseUnavailable,
  })
}

/**
 * Opens a file as a SQLite database for writing, and creates it when it does not exist.
 *
 * Never open such a file by other means than SQLite. POSIX locks belong to the process, and closing any descriptor of
 * a file releases all of them. A connection of another thread would go on without its lock, and the next program that
 * closes the file would delete the WAL in use (sqlite.org/howtocorrupt.html, 2.2).
 * @throws the error of the system or of SQLite when the file may not be created or written
 */
export function openWritableFile(file: string, mode: number, timeout = 100): Sqlite {
  const isNew = !existsSync(file)
  // Throws when the file cannot be written. SQLite would silently open it read-only.
  accessSync(isNew ? dirname(file) : file, isNew ? constants.W_OK | constants.X_OK : constants.W_OK)
  if (!isNew) return openSqlite(file, { timeout, fileMustExist: true })
  const db = createForOwnerOnly(() => openSqlite(file, { timeout }))
  chmodSync(file, mode)
  return db
}

/** Creates a file with mode 0600. With more rights, another user could open it before the chmod and keep it open. */
function createForOwnerOnly<T>(create: () => T): T {
  const umask = process.umask(0o077)
  try {
    return create()
  } finally {
    process.umask(umask)
  }
}

/** A file whose permission bits differed from the wanted ones. */
export interface ModeChange {
  path: string
  found: number
  wanted: number
  /** False when this user may not change the mode, because another user owns the file. */
  isApplied: boolean
}

/**
 * Sets the mode of the files that exist.
 * @returns the files that had another mode
 */
export function applyMode(files: readonly string[], wanted: number): ModeChange[] {
  return files.flatMap(path => {
    const stats = statSync(path, { throwIfNoEntry: false })
    const found = (stats?.mode ?? wanted) & 0o777
    return found === wanted ? [] : [{ path, found, wanted, isApplied: trySetMode(path, wanted) }]
  })
}

function trySetMode(path: string, mode: number): boolean {
  try {
    chmodSync(path, mode)
    return true
  } catch {
    return false
  }
}
