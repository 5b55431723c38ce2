/** `workerData` of the checkpoint thread. Each message is a FileWork; the answer says whether it was done. */
export interface CheckpointWorkerData {
  /** Path of the database. */
  path: string
  /** One Int32 that the writer's thread and the checkpoint thread share: a value of ORDER_STATE. */
  state: SharedArrayBuffer
}

/**
 * An order is one FileWork that the writer posts to the checkpoint thread. Its states:
 * none → given (the writer posts it) → taken (the thread begins the work) → none (the thread has ended the work).
 * The writer may withdraw an order that is given (→ none), but must wait for the end of an order that is taken.
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
