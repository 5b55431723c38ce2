import { parentPort, workerData } from 'node:worker_threads'
import Database from 'better-sqlite3'
import { readCounted } from './overview.ts'

/** The program of the thread in thread.ts. It reads once, answers with a `CountedStatus` and exits. */

/** How long to wait for another process that is closing the database. */
const BUSY_TIMEOUT_MS = 5000

const { path, now } = workerData as { path: string; now: number }
const db = new Database(path, { readonly: true, fileMustExist: true, timeout: BUSY_TIMEOUT_MS })
db.pragma('cache_size = -2000')
parentPort?.postMessage(readCounted(db, now))
db.close()
