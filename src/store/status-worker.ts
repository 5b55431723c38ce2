import { parentPort, workerData } from 'node:worker_threads'
import Database from 'better-sqlite3'

/** What the thread of status-thread.ts runs: it answers with the rows of one query and ends. */

/** Another process that is just closing the database is waited for. */
const PATIENCE_MS = 5000

const { path, sql } = workerData as { path: string; sql: string }
const db = new Database(path, { readonly: true, fileMustExist: true, timeout: PATIENCE_MS })
db.pragma('cache_size = -2000')
parentPort?.postMessage(db.prepare(sql).all())
db.close()
