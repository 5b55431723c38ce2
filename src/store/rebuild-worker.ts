import { constants, setPriority } from 'node:os'
import Database from 'better-sqlite3'
import type { RebuildOrder } from './rebuild.ts'

/** What the process of rebuild.ts runs: it writes one database anew, answers whether it did, and ends. */

// What a terminal sends to all of its processes is for the one that asked, which ends this one.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => undefined)

process.once('message', ({ database }: RebuildOrder) => {
  process.send?.(isRebuilt(database), undefined, undefined, () => {
    if (process.connected) process.disconnect()
  })
})

/** A write of another program is waited for. */
const PATIENCE_MS = 5000

function isRebuilt(path: string): boolean {
  try {
    setPriority(constants.priority.PRIORITY_BELOW_NORMAL)
  } catch {
    // A service may be forbidden to; it is a courtesy.
  }
  try {
    const db = new Database(path, { fileMustExist: true, timeout: PATIENCE_MS })
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
