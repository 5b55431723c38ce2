import type { Clock } from '../clock.ts'
import type { Checkpoints } from './checkpoints.ts'
import type { FileWatch } from './database/file-identity.ts'
import { databaseError, isBusy, type Sqlite } from './open.ts'

/**
 * Runs `work` so that all of it is stored or nothing is; resolves when it is. No network may be waited for inside.
 * What is asked for in the same turn of the event loop shares one commit, each in a savepoint of its own: with
 * thirty answers in flight that is the difference between one write to the disk and thirty.
 */
export interface Transaction {
  <T>(work: () => T): Promise<T>
  /** Grows with every commit: what was found in the database before it may no longer hold. */
  commits(): number
  /** Milliseconds since the commit or checkpoint began that is under way; 0 when none is. */
  stuckMs(): number
}

/** How long a transaction waits for another connection that writes, which only a stranger's could be. */
const BUSY_PATIENCE_MS = 10_000
const BUSY_PAUSE_MS = 50

/** So often at most are further answers let go first. */
const MOST_TURNS = 4

/** What has gathered while the disk was busy may be hundreds of answers: they share commits of about this length. */
const SHARED_MS = 15

interface Waiting {
  work: () => unknown
  resolve(value: unknown): void
  reject(error: unknown): void
}

/** How one piece of work ended inside its savepoint. */
type Settled = { value: unknown } | { error: unknown }

export interface TransactionDeps {
  db: Sqlite
  clock: Clock
  /** Of the database, for errors. */
  path: string
  checkpoints: Pick<Checkpoints, 'isDue' | 'run'>
  /** Asked before each commit and checkpoint. @throws StopError when the file has lost its name */
  file?: Pick<FileWatch, 'requireUnmoved'>
  /** Told for how long the event loop was held, after each try. */
  onHeld?: ((ms: number) => void) | undefined
}

export function createTransaction({
  db,
  clock,
  path,
  checkpoints,
  file,
  onHeld,
}: TransactionDeps): Transaction {
  let waiting: Waiting[] = []
  let flushing = false
  let commits = 0
  let underWaySince: number | undefined

  const runOne = ({ work }: Waiting): Settled => {
    try {
      return { value: db.transaction(work)() }
    } catch (error) {
      // A full disk and its like undo the whole transaction, not just the savepoint.
      if (!db.inTransaction) throw error
      return { error }
    }
  }
  /** As many of them as there is time for, one at least. */
  const runSome = db.transaction((batch: readonly Waiting[]): Settled[] => {
    const began = clock.elapsed()
    const settled: Settled[] = []
    for (const entry of batch) {
      settled.push(runOne(entry))
      if (clock.elapsed() - began >= SHARED_MS) break
    }
    return settled
  })

  const runTimed = (batch: readonly Waiting[]): Settled[] => {
    const began = clock.elapsed()
    try {
      return runSome.immediate(batch)
    } finally {
      onHeld?.(clock.elapsed() - began)
    }
  }

  const commit = async (batch: readonly Waiting[]): Promise<Settled[]> => {
    const begun = clock.elapsed()
    for (;;) {
      try {
        file?.requireUnmoved()
        return runTimed(batch)
      } catch (error) {
        if (!isBusy(error) || clock.elapsed() - begun > BUSY_PATIENCE_MS) throw error
      }
      await clock.sleep(BUSY_PAUSE_MS)
    }
  }

  /**
   * After the answers that have arrived by now were taken up, and the requests that may go in their place were written:
   * undici writes them in the next turn, and storing takes longer than that.
   */
  const answersTaken = async () => {
    let before = 0
    for (let turn = 0; turn < 2 || (waiting.length > before && turn < MOST_TURNS); turn += 1) {
      before = waiting.length
      await new Promise(resolve => setImmediate(resolve))
    }
  }

  /** Its thread opens the database by its name. */
  const isCheckpointDue = (): boolean => {
    if (!checkpoints.isDue()) return false
    try {
      file?.requireUnmoved()
      return true
    } catch {
      // The next commit is told.
      return false
    }
  }

  const flush = async () => {
    await answersTaken()
    while (waiting.length > 0) {
      const batch = waiting
      waiting = []
      underWaySince = clock.elapsed()
      try {
        const settled = await commit(batch)
        commits += 1
        waiting = [...batch.slice(settled.length), ...waiting]
        settled.forEach((result, index) => {
          if ('value' in result) batch[index]?.resolve(result.value)
          else batch[index]?.reject(databaseError(result.error, path))
        })
      } catch (error) {
        for (const entry of batch) entry.reject(databaseError(error, path))
      }
      underWaySince = clock.elapsed()
      if (isCheckpointDue()) await checkpoints.run()
      else if (waiting.length > 0) await answersTaken()
    }
    flushing = false
    underWaySince = undefined
  }

  const transaction = <T>(work: () => T) =>
    new Promise<T>((resolve, reject) => {
      waiting.push({ work, resolve: value => resolve(value as T), reject })
      if (flushing) return
      flushing = true
      void flush()
    })
  return Object.assign(transaction, {
    commits: () => commits,
    stuckMs: () => (underWaySince === undefined ? 0 : clock.elapsed() - underWaySince),
  })
}
