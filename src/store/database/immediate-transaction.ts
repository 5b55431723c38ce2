import { isBusy } from './sqlite-errors.ts'
import type { Sqlite } from './sqlite-types.ts'

/** Transactions for synchronous callers, which need the result at once and cannot wait for the write lock. */
export interface Attempts {
  /**
   * Commits all of the work or none of it. Returns undefined while another program holds the write lock; then call
   * `waitUntilFree` and try again.
   */
  attempt<T>(work: () => T): { value: T } | undefined
  /**
   * Resolves to false at once when no attempt has failed since the last call. Else resolves to true when the other
   * program has released the write lock.
   * @throws StopError (75) when that takes longer than a transaction waits for the lock
   */
  waitUntilFree(): Promise<boolean>
}

export interface AttemptsDeps {
  db: Sqlite
  /** Waits for the write lock in short tries, so that the event loop is not blocked for long. */
  transaction(work: () => void): Promise<void>
}

export function createAttempts({ db, transaction }: AttemptsDeps): Attempts {
  let other: Promise<void> | undefined

  return {
    attempt(work) {
      try {
        // Immediate: SQLite may refuse the write lock to a deferred transaction that has already read.
        return { value: withoutWaiting(db, () => db.transaction(work).immediate()) }
      } catch (error) {
        if (db.inTransaction || !isBusy(error)) throw error
        other ??= transaction(() => undefined)
        // `waitUntilFree` reports the rejection.
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

/** Sets the busy timeout to 0 during `work`. Otherwise SQLite would block the event loop while it waits for a lock. */
export function withoutWaiting<T>(db: Sqlite, work: () => T): T {
  const busyTimeout = db.pragma('busy_timeout', { simple: true })
  db.pragma('busy_timeout = 0')
  try {
    return work()
  } finally {
    db.pragma(`busy_timeout = ${busyTimeout}`)
  }
}
