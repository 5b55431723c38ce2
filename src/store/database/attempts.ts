import type { Sqlite } from './connection.ts'
import { isBusy } from './faults.ts'

/** Transactions for synchronous callers, which need the result at once and cannot wait for the write lock. */
export interface Attempts {
  /** Commits all of the work or none of it. Undefined while another program holds the write lock; await `freed` then. */
  attempt<T>(work: () => T): { value: T } | undefined
  /**
   * False when no attempt has failed since the last call. True once the other program has released the write lock.
   * @throws StopError (75) when that takes longer than a transaction waits for the lock
   */
  waitUntilFree(): Promise<boolean>
}

export interface AttemptsDeps {
  db: Sqlite
  /** Waits for the write lock on the clock, not on the event loop. */
  transaction(work: () => void): Promise<void>
}

export function createAttempts({ db, transaction }: AttemptsDeps): Attempts {
  let other: Promise<void> | undefined

  return {
    attempt(work) {
      try {
        // Immediate: SQLite refuses the write lock to a deferred transaction that has already read, without waiting.
        return { value: withoutWaiting(db, () => db.transaction(work).immediate()) }
      } catch (error) {
        if (db.inTransaction || !isBusy(error)) throw error
        other ??= transaction(() => undefined)
        // `freed` reports the rejection.
        other.catch(() => undefined)
        return undefined
      }
    },
    async waitUntilFree() {
      if (other === undefined) return false
      try {
        await other
        return true
      } finally {
        other = undefined
      }
    },
  }
}

/** With a busy timeout, SQLite would block the event loop. */
export function withoutWaiting<T>(db: Sqlite, work: () => T): T {
  const busyTimeout = db.pragma('busy_timeout', { simple: true })
  db.pragma('busy_timeout = 0')
  try {
    return work()
  } finally {
    db.pragma(`busy_timeout = ${busyTimeout}`)
  }
}
