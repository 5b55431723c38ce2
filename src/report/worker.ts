import { parentPort, workerData } from 'node:worker_threads'
import { openSqlite } from '../store/database/sqlite.ts'
import { readReport } from './read-report.ts'
import { reportHtml } from './report-html.ts'

/** The program of the thread that makes the report of the status server. It reads once, answers and exits. */

/** How long to wait for another process that is closing the database. */
const BUSY_TIMEOUT_MS = 5000

parentPort?.postMessage(madeReport(workerData))

function madeReport({ path, now }: { path: string; now: number }): string {
  const db = openSqlite(path, { readonly: true, fileMustExist: true, timeout: BUSY_TIMEOUT_MS })
  db.pragma('cache_size = -2000')
  const page = reportHtml(readReport(db, now))
  db.close()
  return page
}
