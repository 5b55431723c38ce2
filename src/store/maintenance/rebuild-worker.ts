import { lowerPriority } from '../../base/lower-priority.ts'
import { answerParent } from '../database/child-program.ts'
import { openSqlite } from '../database/sqlite.ts'
import type { RebuildInput } from './maintenance.ts'

/** The program of the child process in maintenance.ts. It rewrites a database, answers whether it succeeded, and exits. */

/** How long to wait for the write lock of another program. */
const BUSY_TIMEOUT_MS = 5000

answerParent(({ database }: RebuildInput) => {
  lowerPriority()
  try {
    const db = openSqlite(database, { fileMustExist: true, timeout: BUSY_TIMEOUT_MS })
    try {
      db.pragma('synchronous = NORMAL')
      db.pragma('temp_store = FILE')
      db.pragma('cache_size = -8000')
      db.exec('VACUUM')
      return true
    } finally {
      db.close()
    }
  } catch {
    return false
  }
})
