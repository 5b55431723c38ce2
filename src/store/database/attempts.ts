import { isBusy, type Sqlite } from '../open.ts'

/** Transactions that cannot wait, because what calls them needs the result at once. */
export interface Attempts {
  /** All of the work or none of it. Undefined while another program writes: `freed` waits for that. */
  attempt<T>(work: () => T): { value: T } | undefined
  /**
   * False when no attempt has failed since the last call; true once the other program has ended its transaction.
   * @throws StopError (75) when that takes longer than a transaction waits
   */
  freed(): Promise<boolean>
}

export interface AttemptsDeps {
  db: Sqlite
  /** A transaction that waits for others through the clock. */
  transaction(work: () => void): Promise<void>
}

export function createAttempts({ db, transaction }: AttemptsDeps): Attempts {
  let other: Promise<void> | undefined

  return {
    attempt(work) {
      try {
        // A deferred transaction that has read is refused the lock at once, and no wait helps it.
        return { value: withoutWaiting(db, () => db.transaction(work).immediate()) }
      } catch (error) {
        if (db.inTransaction || !isBusy(error)) throw error
        other ??= transaction(() => undefined)
        // It is reported to the caller of `freed`.
        other.catch(() => undefined)
        return undefined
      }
    },
    async freed() {
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

/** SQLite would wait on the event loop. */
function withoutWaiting<T>(db: Sqlite, work: () => T): T {
  const patience = db.pragma('busy_timeout', { simple: true })
  db.pragma('busy_timeout = 0')
  try {
    return work()
  } finally {
    db.pragma(`busy_timeout = ${patience}`)
  }
}
