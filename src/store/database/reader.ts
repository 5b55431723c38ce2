import { errorCode } from '../../base/errors.ts'
import { openSqlite } from './sqlite.ts'
import type { Sqlite } from './sqlite-types.ts'

/** How long a reader waits for a process that has the database to itself for a moment. */
export const MAX_WAIT_MS = 2000
const RETRY_MS = 10

/**
 * Opens a database for reading and reads from it, which makes SQLite keep its `-wal` and `-shm` open.
 *
 * A process has the database to itself while it reads the WAL of a process that was killed, and while it closes the
 * database as the last one. On a busy machine that takes longer than the busy timeout. A writer that starts also empties
 * the `-shm` shortly before it takes the lock to rebuild it. Until it has the lock, SQLite refuses a reader that may not
 * write the `-shm`, and does not call the busy handler. So this function retries.
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

/** Why the database cannot be read now, if another try may succeed. @throws every other error */
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
