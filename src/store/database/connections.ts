import { errorCode } from '../../base/errors.ts'
import { openSqlite } from './sqlite.ts'
import type { Sqlite } from './sqlite-types.ts'

/** How long a reader waits for a process that has locked all others out of the database for a moment. */
export const MAX_WAIT_MS = 2000
const RETRY_MS = 10

/**
 * Opens a database for reading and makes a first read, at which SQLite opens the `-wal` and `-shm` files.
 *
 * A process locks all others out while it recovers the WAL of a process that was killed, and while it closes the
 * database as the last one. On a busy machine that takes longer than the busy timeout. A writer that starts also
 * empties the `-shm` shortly before it takes the lock to rebuild the `-shm`. Until the writer has the lock, SQLite
 * refuses a reader that may not write the `-shm`, and does not call the busy handler. So this function retries.
 * @param timeout busy timeout of the connection in ms
 * @param pause waits between two tries, and blocks the event loop
 * @throws the error of SQLite
 */
export function openReader(file: string, timeout: number, pause: (ms: number) => void = sleep): Sqlite {
  const db = openSqlite(file, { readonly: true, fileMustExist: true, timeout })
  try {
    for (let waitedMs = 0; ; waitedMs += RETRY_MS) {
      const fault = passingFault(db)
      if (fault === undefined) return db
      if (errorCode(fault) !== READONLY_RECOVERY) waitedMs += timeout
      if (waitedMs >= MAX_WAIT_MS) throw fault
      pause(RETRY_MS)
    }
  } catch (error) {
    db.close()
    throw error
  }
}

const READONLY_RECOVERY = 'SQLITE_READONLY_RECOVERY'

/**
 * @returns the error of a read, if another try may succeed
 * @throws every other error
 */
function passingFault(db: Sqlite): Error | undefined {
  try {
    db.prepare('SELECT count(*) FROM sqlite_master').get()
    return undefined
  } catch (error) {
    const code = errorCode(error) ?? ''
    if (error instanceof Error && (code === READONLY_RECOVERY || code.startsWith('SQLITE_BUSY'))) return error
    throw error
  }
}

function sleep(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

const BUSY_TIMEOUT_MS = 100

/**
 * Opens an existing database for one short write of a process that does not hold the lock of the warehouse. Unlike
 * `openWarehouse`, it creates no tables and views: only the process with the lock may do that.
 */
export function openBriefWriter(file: string): Sqlite {
  const db = openSqlite(file, { fileMustExist: true, timeout: BUSY_TIMEOUT_MS })
  // No WAL checkpoints: they may take long. The process with the lock runs them.
  db.pragma('wal_autocheckpoint = 0')
  return db
}

/**
 * Tries one short write to the warehouse, also while another process writes it. Keep a connection to the file open
 * meanwhile, so that its -wal and -shm files stay.
 * @returns false where this is not possible: the file is a copy, another process writes it at this moment, the disk is
 * full, or this user may only read
 */
export function tryToNote(file: string, write: (db: Sqlite) => unknown): boolean {
  try {
    const db = openBriefWriter(file)
    try {
      // A restore takes the database out of WAL mode before it replaces the file.
      if (db.pragma('journal_mode', { simple: true }) !== 'wal') return false
      write(db)
      return true
    } finally {
      db.close()
    }
  } catch {
    return false
  }
}

/**
 * Closes the database and keeps its `-wal` and `-shm` files. Without these files, a reader that may not write the
 * folder cannot open a WAL database. SQLite removes them unless the last connection to close is read-only.
 */
export function closeDatabase(db: Sqlite): void {
  const { readonly, memory } = db
  if (readonly || memory) {
    db.close()
    return
  }
  emptyWal(db)
  closeKeepingWal(db)
}

/**
 * Closes a database whose file was renamed. No second connection is opened: the old name may belong to another file
 * by now. The WAL is emptied first, so that its frames cannot be applied to that file.
 */
export function closeMovedDatabase(db: Sqlite): void {
  emptyWal(db)
  db.close()
}

/**
 * Moves the content of the WAL into the database, and empties the WAL.
 * @returns false when the WAL stays: a reader needs it, or the disk is full. Unless its file was removed, nothing is
 *   lost: the next connection reads it
 */
export function emptyWal(db: Sqlite): boolean {
  try {
    return db.pragma('wal_checkpoint(TRUNCATE)', { simple: true }) === 0
  } catch {
    return false
  }
}

/** Closes the database and leaves its `-wal` and `-shm` files unchanged. */
export function closeKeepingWal(db: Sqlite): void {
  let last: Sqlite | undefined
  try {
    last = openSqlite(db.name, { readonly: true, fileMustExist: true })
    // SQLite opens the files of a connection at its first read. This read does not parse the schema.
    last.pragma('user_version')
  } catch {
    // A database that cannot be read needs no -wal and -shm for its readers.
  }
  db.close()
  last?.close()
}
