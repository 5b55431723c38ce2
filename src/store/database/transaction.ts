import type { Clock } from '../../base/clock.ts'
import type { FileWatch } from '../disk/location.ts'
import { databaseError, isBusy } from './sqlite-errors.ts'
import type { Sqlite } from './sqlite-types.ts'
import type { Checkpoints } from './wal-checkpoints.ts'

export type Transaction = ReturnType<typeof createTransaction>

/** A commit waits at most this many turns of the event loop for more answers. */
const MAX_TURNS = 4

/** Hundreds of answers may queue while the disk is busy. They are committed in batches of about this duration. */
const MAX_COMMIT_MS = 15

interface Waiting {
  work: () => unknown
  isAside: boolean
  resolve(value: unknown): void
  reject(error: unknown): void
}

/** The result of one `work` inside its savepoint. */
type Settled = { value: unknown } | { error: unknown }

interface TransactionDeps {
  db: Sqlite
  clock: Clock
  /** Path of the database, for error messages. */
  path: string
  checkpoints: Pick<Checkpoints, 'isDue' | 'run' | 'abandon'>
  /** Checked before each commit and checkpoint. @throws StopError when the file was moved or replaced */
  file?: Pick<FileWatch, 'requireUnmoved'>
  /** Called inside each transaction, as its last step. */
  beforeCommit?: (() => void) | undefined
  /** Called outside the transaction with the error of each work that failed. Returns the error to report. */
  afterFailure?: (error: unknown) => unknown
  /** Called after each commit or failed try with the milliseconds for which it blocked the event loop. */
  onBlocked?: ((ms: number) => void) | undefined
}

/**
 * @returns a function that runs `work` in a transaction and resolves when it is committed. `work` is synchronous, so no
 * network request can be awaited inside. Calls within a few turns of the event loop share one commit, each in a separate
 * savepoint: thirty answers that arrive together cost one disk write instead of thirty. One that is alone needs no
 * savepoint, for which SQLite would copy each page that it changes.
 */
export function createTransaction(deps: TransactionDeps) {
  const { clock, path, checkpoints, afterFailure = error => error } = deps
  const commit = createCommit(deps)
  let waiting: Waiting[] = []
  let isFlushing = false
  let commits = 0
  const listeners = new Set<() => void>()
  let busySince: number | undefined
  const waitForAnswers = () => waitForArrivedAnswers(() => waiting.length)

  const flush = async () => {
    await waitForAnswers()
    while (waiting.length > 0) {
      const batch = waiting
      waiting = []
      busySince = clock.elapsed()
      try {
        const settled = await commit(batch)
        if (batch.slice(0, settled.length).some(({ isAside }) => !isAside)) {
          commits += 1
          for (const listener of listeners) listener()
        }
        waiting = [...batch.slice(settled.length), ...waiting]
        settled.forEach((result, index) => {
          if ('value' in result) batch[index]?.resolve(result.value)
          else batch[index]?.reject(databaseError(afterFailure(result.error), path))
        })
      } catch (error) {
        const failure = databaseError(afterFailure(error), path)
        for (const entry of batch) entry.reject(failure)
      }
      busySince = clock.elapsed()
      if (isCheckpointDue(deps)) await checkpoints.run()
      else if (waiting.length > 0) await waitForAnswers()
    }
    isFlushing = false
    busySince = undefined
  }

  const enqueue = <T>(work: () => T, isAside: boolean) =>
    new Promise<T>((resolve, reject) => {
      waiting.push({ work, isAside, resolve: value => resolve(value as T), reject })
      if (isFlushing) return
      isFlushing = true
      void flush()
    })
  const transaction = <T>(work: () => T) => enqueue(work, false)
  return Object.assign(transaction, {
    /**
     * The same for work whose rows no cached query reads: its commit is not counted in `commits()`, and no listener is
     * called.
     */
    aside: <T>(work: () => T) => enqueue(work, true),
    /** Number of commits so far. When it has grown, the cached result of a query is stale. */
    commits: () => commits,
    /** Calls `listener` after every commit. The returned function removes the listener. */
    onCommit(listener: () => void) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    /** Milliseconds since the running commit or checkpoint began; 0 when none is running. */
    blockedMs: () => (busySince === undefined ? 0 : clock.elapsed() - busySince),
    ...createAttempts(deps, transaction),
  })
}

/**
 * Transactions for synchronous callers, which need the result at once and cannot wait for the write lock.
 * @param transaction waits for the write lock in short tries, so that the event loop is not blocked for long
 */
function createAttempts(
  { db, beforeCommit }: Pick<TransactionDeps, 'db' | 'beforeCommit'>,
  transaction: (work: () => void) => Promise<void>,
) {
  let other: Promise<void> | undefined
  return {
    /**
     * Commits all of the work or none of it. Returns undefined while another program holds the write lock; then call
     * `waitUntilFree` and try again.
     */
    attempt<T>(work: () => T): { value: T } | undefined {
      const commit = db.transaction(() => {
        const value = work()
        beforeCommit?.()
        return { value }
      })
      try {
        // `immediate`, since SQLite may refuse the write lock to a deferred transaction that has already read.
        return withoutWaiting(db, () => commit.immediate())
      } catch (error) {
        if (db.inTransaction || !isBusy(error)) throw error
        other ??= transaction(() => undefined)
        // `waitUntilFree` reports the rejection.
        other.catch(() => undefined)
        return undefined
      }
    },
    /**
     * Resolves to false at once when no attempt has failed since the last call. Else resolves to true when the other
     * program has released the write lock.
     * @throws StopError (75) when the lock is not released within the time that a transaction waits for it
     */
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

/** Returns a function that commits at least the first entry of a batch, and retries while the database is locked. */
function createCommit({ db, clock, file, beforeCommit, onBlocked }: TransactionDeps) {
  const runOne = ({ work }: Waiting): Settled => {
    try {
      return { value: db.transaction(work)() }
    } catch (error) {
      // A full disk and similar errors roll back the whole transaction, not just the savepoint.
      if (!db.inTransaction) throw error
      return { error }
    }
  }
  /** Runs at least one entry of the batch, then more until MAX_COMMIT_MS have passed. */
  const runSome = db.transaction((batch: readonly Waiting[]): Settled[] => {
    const began = clock.elapsed()
    const settled: Settled[] = []
    for (const entry of batch) {
      settled.push(batch.length === 1 ? { value: entry.work() } : runOne(entry))
      if (clock.elapsed() - began >= MAX_COMMIT_MS) break
    }
    beforeCommit?.()
    return settled
  })

  const runTimed = (batch: readonly Waiting[]): Settled[] => {
    const began = clock.elapsed()
    try {
      return runSome.immediate(batch)
    } finally {
      onBlocked?.(clock.elapsed() - began)
    }
  }

  return (batch: readonly Waiting[]): Promise<Settled[]> =>
    whileBusy(clock, () => {
      file?.requireUnmoved()
      return runTimed(batch)
    })
}

/**
 * Waits until the answers that have arrived are parsed and the next requests are sent. undici sends in the next turn
 * of the event loop; a commit before that turn would delay these requests.
 */
async function waitForArrivedAnswers(count: () => number): Promise<void> {
  let before = 0
  for (let turn = 0; turn < 2 || (count() > before && turn < MAX_TURNS); turn += 1) {
    before = count()
    await new Promise(resolve => setImmediate(resolve))
  }
}

/** The checkpoint thread opens the database by name, so a moved file must not get a checkpoint. */
function isCheckpointDue({ checkpoints, file }: TransactionDeps): boolean {
  if (!checkpoints.isDue()) return false
  try {
    file?.requireUnmoved()
    return true
  } catch {
    // The next commit reports that the file was moved. Without `abandon`, a checkpoint that was asked for would never
    // settle.
    checkpoints.abandon()
    return false
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

/** How long to try again while another program holds the lock. Transactions are short, but there may be many. */
const PATIENCE_MS = 10_000
const PAUSE_MS = { shortest: 10, longest: 90 }

/**
 * The pauses differ in length: after equal pauses, each try can meet the lock of a program that writes at a fixed pace.
 */
function pauseMs(tries: number): number {
  const share = (tries * GOLDEN_RATIO) % 1
  return PAUSE_MS.shortest + share * (PAUSE_MS.longest - PAUSE_MS.shortest)
}

/** Any number of its multiples modulo 1 are spread evenly. */
const GOLDEN_RATIO = (1 + Math.sqrt(5)) / 2

/**
 * Repeats the work while it fails because another program has locked the database.
 * @throws the last error of the work
 */
export async function whileBusy<T>(clock: Pick<Clock, 'elapsed' | 'sleep'>, work: () => T): Promise<T> {
  const begun = clock.elapsed()
  for (let tries = 0; ; tries += 1) {
    try {
      return work()
    } catch (error) {
      if (!isBusy(error) || clock.elapsed() - begun > PATIENCE_MS) throw error
    }
    await clock.sleep(pauseMs(tries))
  }
}
