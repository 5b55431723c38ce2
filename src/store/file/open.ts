import { resolve } from 'node:path'
import { EXIT_STATUS, errorCode, StopError } from '../../base/errors.ts'
import { closeKeepingWal } from '../database/close.ts'
import { openReader } from '../database/reader.ts'
import { databaseError, isBusy, openElsewhere } from '../database/sqlite-errors.ts'
import type { Sqlite } from '../database/sqlite-types.ts'
import { resolvedPath } from '../disk/location.ts'
import { appliedMigrations, newestMigration } from '../migrations/journal.ts'
import { refuseSecondName } from './path-checks.ts'
import { refuseOtherWorkspace, type WantedWorkspace } from './workspace.ts'
import { openWritableFile } from './writable.ts'

/** Stored in the header of every warehouse, where parley and file(1) recognise it: the letters `parl`. */
export const APPLICATION_ID = 0x7061726c

export interface OpenOptions {
  path: string
  /** Permission bits of a file that is created, and of its `-wal` and `-shm`. Default 0o600. */
  mode?: number
  readonly?: boolean
  /** When given, a database of another workspace is refused before anything is written. */
  workspace?: WantedWorkspace | undefined
  /** Folder with the migrations that this version knows. Default: the migrations of this version. */
  migrations?: string | undefined
}

/** SQLite blocks the event loop while it waits, so this wait is short. Transactions then pause and try again. */
const BUSY_TIMEOUT_MS = 100

/**
 * Opens a warehouse without upgrading it. When it is opened for writing, a missing file is created empty.
 * @throws StopError 73 when it cannot be opened, parley did not create it, or a newer version wrote it; 75 when another
 * program has locked it; 78 when it holds another workspace
 */
export function openDatabase(options: OpenOptions): Sqlite {
  const { path, mode = 0o600, readonly = false, workspace, migrations } = options
  const file = resolve(path)
  try {
    if (!readonly) refuseSecondName(resolvedPath(file))
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
    throw isOlder(error, db, options.migrations) ? olderError(file, error) : databaseError(error, file)
  } finally {
    db.close()
  }
}

/** Whether a table or column is missing because this version has not opened the database for writing yet. */
function isOlder(error: unknown, db: Sqlite, migrations: string | undefined): boolean {
  return errorCode(error) === 'SQLITE_ERROR' && !appliedMigrations(db).includes(newestMigration(migrations))
}

function olderError(file: string, cause: unknown): StopError {
  return new StopError(`${file} was written by an older version of parley`, {
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
  // This is on for every write: a value that is overwritten today may have to be purged later, and a purge does not
  // reach the remains of rows in free space.
  db.pragma('secure_delete = ON')
  db.pragma('temp_store = MEMORY')
  db.pragma('cache_size = -8000')
  db.pragma('journal_size_limit = 67108864')
}

/** Only a copy, which a restore puts in place, is not in this mode yet. Setting it needs a sole connection. */
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
