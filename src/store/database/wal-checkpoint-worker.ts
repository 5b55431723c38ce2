import { parentPort, workerData } from 'node:worker_threads'
import { openSqlite } from './sqlite.ts'
import { CHECKPOINT, type CheckpointWorkerData, ORDER_STATE } from './wal-checkpoints.ts'

/**
 * The program of the thread in wal-checkpoints.ts. Each message asks for a checkpoint. The program imports as little as
 * possible, because a thread loads a second copy of each module into memory.
 */

const { path, state: shared } = workerData as CheckpointWorkerData
const state = new Int32Array(shared)

parentPort?.on('message', () => {
  if (Atomics.compareExchange(state, 0, ORDER_STATE.given, ORDER_STATE.taken) !== ORDER_STATE.given) return
  const wasDone = tryCheckpoint()
  Atomics.store(state, 0, ORDER_STATE.none)
  Atomics.notify(state, 0)
  parentPort?.postMessage(wasDone)
})

/**
 * Opens a connection for this checkpoint only. This connection may not stay open: `closeDatabase` must close the last
 * connection.
 */
function tryCheckpoint(): boolean {
  try {
    const db = openSqlite(path, { fileMustExist: true, timeout: 0 })
    try {
      db.pragma('synchronous = NORMAL')
      db.exec(CHECKPOINT)
      return true
    } finally {
      db.close()
    }
  } catch {
    return false
  }
}
