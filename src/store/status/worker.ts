import { parentPort, workerData } from 'node:worker_threads'
import Database from 'better-sqlite3'

/** The program of the thread in thread.ts. It answers with the rows of one query and exits. */

/** How long to wait for another process that is closing the database. */
const BUSY_TIMEOUT_MS = 5000

const { path, sql } = workerData as { path: string; sql: string }
const db = new Database(path, { readonly: true, fileMustExist: true, timeout: BUSY_TIMEOUT_MS })
db.pragma('cache_size = -2000')
parentPort?.postMessage(db.prepare(sql).all())
db.close()
