import { Worker } from 'node:worker_threads'
import type { Sqlite } from './sqlite-types.ts'
import { onlyRow } from './statements.ts'

/**
 * Checkpoints move the content of the WAL into the database. On the event loop, a checkpoint would block everything
 * while the disk writes tens of megabytes, so a thread with a separate connection runs it. The writer waits meanwhile.
 * If the writer went on, no checkpoint would reach the end of the WAL. SQLite could then never reuse the WAL, which
 * would grow without limit.
 */
export interface Checkpoints {
  /** Called after each commit; takes about a microsecond. */
  isDue(): boolean
  /**
   * Runs the oldest scheduled work, or a checkpoint when none is scheduled. Never rejects: what a checkpoint could not
   * move stays in the WAL for the next one.
   */
  run(): Promise<void>
  /**
   * Runs this work after the next commit instead of a checkpoint. Resolves to whether the work was done; never rejects.
   */
  schedule(work: FileWork): Promise<boolean>
  /** Settles the scheduled work as not done. */
  abandon(): void
  /** Call before closing the connection. Waits for running work and starts no more. */
  close(): void
}

export interface CheckpointOptions {
  /** A checkpoint is due when the WAL holds this many pages that are not in the database yet. */
  pages?: number
  /** URL of the thread's program. */
  program?: URL
  /**
   * Called with the bytes of the WAL that checkpoints cannot move, once each time the WAL becomes held
   * (`HELD_CHECKPOINTS`).
   */
  onHeld?: ((bytes: number) => void) | undefined
}

/** The WAL counts as held when it has grown to this multiple of `pages`: by default to 256 MB. */
const HELD_CHECKPOINTS = 8

/**
 * 8000 database pages of 4 KB are 32 MB. To store one response of a list, SQLite changes hundreds of index pages in
 * random places. The more changes collect in the WAL, the more of them affect the same page, which a checkpoint writes
 * once.
 */
const PAGES = 8000

/** The compiled program. It is missing when parley runs from its sources, as in tests; then there is no thread. */
const PROGRAM = new URL('./wal-checkpoint-worker.js', import.meta.url)

/** Longest wait of `close` for a disk that does not answer. Nothing is lost: the next process reads the WAL. */
const CLOSE_PATIENCE_MS = 30_000

/** The thread needs very little heap; SQLite allocates outside of it. */
const LIMITS = { maxOldGenerationSizeMb: 32, maxYoungGenerationSizeMb: 2 }

export function createCheckpoints(db: Sqlite, options: CheckpointOptions = {}): Checkpoints {
  const { pages = PAGES, program = PROGRAM, onHeld } = options
  // SQLite would otherwise run checkpoints inside commits, on the event loop.
  db.pragma('wal_autocheckpoint = 0')
  const walState = db.prepare<unknown[], { log: number; checkpointed: number }>('PRAGMA wal_checkpoint(NOOP)')
  const thread = createThread(db.name, program)
  let dueAt = pages
  let isHeld = false
  let scheduled: ScheduledWork[] = []

  /** Pages of the WAL that are not in the database yet. 0 when SQLite fails; the next commit tries again. */
  const pendingPages = (): number => {
    try {
      const { log, checkpointed } = onlyRow(walState)
      return log - checkpointed
    } catch {
      return 0
    }
  }

  const abandon = () => {
    for (const { resolve } of scheduled) resolve(false)
    scheduled = []
  }

  return {
    isDue: () => scheduled.length > 0 || pendingPages() >= dueAt,
    async run() {
      const [first, ...others] = scheduled
      scheduled = others
      const work = first?.work ?? 'move'
      const wasDone = (await thread.run(work)) || tryOnThisThread(db, work)
      // A reader or a full disk can keep pages in the WAL. Another try follows `pages` pages later, not at each commit.
      const pending = pendingPages()
      dueAt = pending + pages
      const wasHeld = isHeld
      isHeld = pending >= pages * HELD_CHECKPOINTS
      if (isHeld && !wasHeld) onHeld?.(pending * Number(db.pragma('page_size', { simple: true })))
      first?.resolve(wasDone)
    },
    schedule: work => new Promise(resolve => scheduled.push({ work, resolve })),
    abandon,
    close() {
      thread.close()
      abandon()
    },
  }
}

interface ScheduledWork {
  work: FileWork
  resolve(wasDone: boolean): void
}

/** The fallback when the thread cannot do the work. It blocks the event loop. */
function tryOnThisThread(db: Sqlite, work: FileWork): boolean {
  try {
    for (const sql of FILE_WORK[work]) db.exec(sql)
    return true
  } catch {
    // On a full disk nothing is lost: the content stays in the WAL, and the next commit reports the error.
    return false
  }
}

interface Thread {
  /** Resolves to false when the caller has to do the work itself; never rejects. */
  run(work: FileWork): Promise<boolean>
  close(): void
}

/** The thread starts with the first checkpoint, so a short process runs without it. */
function createThread(path: string, program: URL): Thread {
  const shared = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)
  const state = new Int32Array(shared)
  let worker: Worker | undefined
  let isUnavailable = false
  let resolveRun: ((wasDone: boolean) => void) | undefined

  const settle = (wasDone: boolean) => {
    worker?.unref()
    resolveRun?.(wasDone)
    resolveRun = undefined
  }
  const giveUp = () => {
    isUnavailable = true
    worker = undefined
    Atomics.store(state, 0, ORDER_STATE.none)
    settle(false)
  }
  const start = (): Worker => {
    const workerData: CheckpointWorkerData = { path, state: shared }
    // The thread gets no Node options: with those of this process, it would load their preloaded modules a second time.
    return new Worker(program, { workerData, execArgv: [], resourceLimits: LIMITS })
      .on('message', settle)
      .on('error', giveUp)
      .on('exit', giveUp)
  }

  return {
    run: work =>
      new Promise(resolve => {
        if (isUnavailable) return resolve(false)
        resolveRun = resolve
        try {
          worker ??= start()
        } catch {
          return giveUp()
        }
        Atomics.store(state, 0, ORDER_STATE.given)
        worker.ref()
        worker.postMessage(work)
      }),
    close() {
      isUnavailable = true
      if (Atomics.compareExchange(state, 0, ORDER_STATE.given, ORDER_STATE.none) === ORDER_STATE.taken) {
        Atomics.wait(state, 0, ORDER_STATE.taken, CLOSE_PATIENCE_MS)
      }
      const ended = worker
      settle(true)
      worker = undefined
      void ended?.terminate()
    },
  }
}

/** `workerData` of the checkpoint thread. Each message is a FileWork; the answer says whether the work was done. */
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
