import { errorCode } from '../../error-code.ts'
import { openSqlite } from './sqlite.ts'
import type { Sqlite } from './sqlite-types.ts'

/** How long a reader that may not write the `-shm` waits for a writer that rebuilds it. */
const MAX_WAIT_MS = 1000
const RETRY_MS = 10

/**
 * Opens a database for reading and reads from it, which makes SQLite keep its `-wal` and `-shm` open.
 *
 * When a writer starts, it empties the `-shm` shortly before it takes the lock to rebuild it. Until it has the lock,
 * SQLite refuses a reader that may not write the `-shm`, and does not call the busy handler. So this function retries.
 * @param timeout busy timeout of the connection in ms
 * @param pause waits between two tries, and blocks the event loop
 * @throws the error of SQLite
 */
export function openReader(file: string, timeout: number, pause: (ms: number) => void = sleep): Sqlite {
  const db = openSqlite(file, { readonly: true, fileMustExist: true, timeout })
  try {
    for (let waitedMs = 0; !isReadable(db, waitedMs < MAX_WAIT_MS); waitedMs += RETRY_MS) pause(RETRY_MS)
    return db
  } catch (error) {
    db.close()
    throw error
  }
}

/** @param mayRetry when true, an error that a retry can resolve is not thrown: the result is false */
function isReadable(db: Sqlite, mayRetry: boolean): boolean {
  try {
    db.prepare('SELECT count(*) FROM sqlite_master').get()
    return true
  } catch (error) {
    const isTransient = errorCode(error) === 'SQLITE_READONLY_RECOVERY'
    if (isTransient && mayRetry) return false
    throw error
  }
}

function sleep(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}
