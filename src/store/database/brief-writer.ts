import { openSqlite } from './sqlite.ts'
import type { Sqlite } from './sqlite-types.ts'

const BUSY_TIMEOUT_MS = 100

/**
 * Opens an existing database for one short write of a process that does not hold the lock of the warehouse. It creates
 * no tables and views, as `openWarehouse` does: only the process with the lock may do that.
 */
export function openBriefWriter(file: string): Sqlite {
  const db = openSqlite(file, { fileMustExist: true, timeout: BUSY_TIMEOUT_MS })
  // A checkpoint of the WAL may take long, so it is left to the writer.
  db.pragma('wal_autocheckpoint = 0')
  return db
}
