/** `workerData` of the checkpoint thread. It answers each message, a FileWork, with whether the work was done. */
export interface CheckpointWorkerData {
  /** Path of the database. */
  path: string
  /** One Int32 that both threads see: a value of ORDER_STATE. */
  state: SharedArrayBuffer
}

/**
 * State of the order. none → given (the writer posts it) → taken (the thread begins) → none (the thread is done).
 * The writer may move given back to none; it has to wait for an order that is taken.
 */
export const ORDER_STATE = { none: 0, given: 1, taken: 2 } as const

/** Work on the whole file for the checkpoint thread, as SQL statements. */
export const FILE_WORK = {
  /** Moves the content of the WAL into the database as far as readers permit. */
  move: ['PRAGMA wal_checkpoint(PASSIVE)'],
  /** Rewrites the whole database. Needs as much memory as the database is large. */
  rebuild: ['VACUUM', 'PRAGMA wal_checkpoint(PASSIVE)'],
} as const

export type FileWork = keyof typeof FILE_WORK
