import { parentPort, workerData } from 'node:worker_threads'
import { openSqlite } from '../database/sqlite.ts'
import { type CountedStatus, readCounted } from './overview.ts'
import type { ThreadInput } from './thread.ts'

/** The program of the thread in thread.ts. It reads once, answers and exits. */

/** How long to wait for another process that is closing the database. */
const BUSY_TIMEOUT_MS = 5000

parentPort?.postMessage(readOnce(workerData as ThreadInput))

function readOnce({ path, now }: ThreadInput): CountedStatus {
  const db = openSqlite(path, { readonly: true, fileMustExist: true, timeout: BUSY_TIMEOUT_MS })
  db.pragma('cache_size = -2000')
  const counted = readCounted(db, now)
  db.close()
  return counted
}
