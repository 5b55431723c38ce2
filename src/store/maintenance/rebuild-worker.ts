import { constants, setPriority } from 'node:os'
import { leaveSignalsToParent } from '../../base/process-signals.ts'
import { openSqlite } from '../database/sqlite.ts'
import type { RebuildInput } from './rebuild.ts'

/** The program of the child process in rebuild.ts. It rewrites a database, answers whether it succeeded, and exits. */

leaveSignalsToParent()

process.once('message', ({ database }: RebuildInput) => {
  process.send?.(tryRebuild(database), undefined, undefined, () => {
    if (process.connected) process.disconnect()
  })
})

/** How long to wait for the write lock of another program. */
const BUSY_TIMEOUT_MS = 5000

function tryRebuild(path: string): boolean {
  try {
    setPriority(constants.priority.PRIORITY_BELOW_NORMAL)
  } catch {
    // A service may not be allowed to lower its priority. The rebuild then runs with normal priority.
  }
  try {
    const db = openSqlite(path, { fileMustExist: true, timeout: BUSY_TIMEOUT_MS })
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
}
