/** What the thread that writes gives to the one that makes its checkpoints, which answers each order with whether it was done. */
export interface CheckpointOrders {
  /** Of the database. */
  path: string
  /** One 32-bit number that both threads see, one of `ORDER`. */
  order: SharedArrayBuffer
}

/** A checkpoint that was given and not taken yet can be taken back; one that was taken has to be waited for. */
export const ORDER = { none: 0, given: 1, taken: 2 } as const

/** What can be done with the whole file beside its writer, as the statements of it. */
export const FILE_WORK = {
  /** Moves what is in the WAL into the database as far as readers let it. */
  move: ['PRAGMA wal_checkpoint(PASSIVE)'],
  /** Writes the whole database anew, in as much memory as it is large. */
  rebuild: ['VACUUM', 'PRAGMA wal_checkpoint(PASSIVE)'],
} as const

export type FileWork = keyof typeof FILE_WORK
