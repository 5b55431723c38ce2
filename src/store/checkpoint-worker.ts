import { parentPort, workerData } from 'node:worker_threads'
import Database from 'better-sqlite3'
import { type CheckpointOrders, FILE_WORK, type FileWork, ORDER } from './checkpoint-order.ts'

/**
 * What the thread of checkpoints.ts runs: each message names work on the whole file. It imports next to nothing, since
 * all that it loads is in memory once more.
 */

const { path, order } = workerData as CheckpointOrders
const state = new Int32Array(order)

parentPort?.on('message', (work: FileWork) => {
  if (Atomics.compareExchange(state, 0, ORDER.given, ORDER.taken) !== ORDER.given) return
  const wasDone = isDone(work)
  Atomics.store(state, 0, ORDER.none)
  Atomics.notify(state, 0)
  parentPort?.postMessage(wasDone)
})

/** On a connection that ends with it: the last to be closed must be a read-only one of the other thread. */
function isDone(work: FileWork): boolean {
  try {
    const db = new Database(path, { fileMustExist: true, timeout: 0 })
    try {
      db.pragma('synchronous = NORMAL')
      db.pragma('temp_store = MEMORY')
      for (const sql of FILE_WORK[work]) db.exec(sql)
      return true
    } finally {
      db.close()
    }
  } catch {
    return false
  }
}
