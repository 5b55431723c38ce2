import { Worker } from 'node:worker_threads'
import type { Sqlite } from '../database/connection.ts'
import { onlyRow } from '../database/statements.ts'
import { type CheckpointWorkerData, FILE_WORK, type FileWork, ORDER_STATE } from './checkpoint-order.ts'

/**
 * Checkpoints: moving the content of the WAL into the database. On the event loop this would block everything while
 * the disk writes some ten megabytes, so a thread with a separate connection does it. The writer waits meanwhile: next
 * to an active writer a checkpoint never reaches the end of the WAL, so the WAL would never restart and would grow.
 */
export interface Checkpoints {
  /** Called after each commit; takes about a microsecond. */
  isDue(): boolean
  /** Runs a checkpoint, or the scheduled work. Never rejects: the next checkpoint moves what this one could not. */
  run(): Promise<void>
  /** Runs this work after the next commit instead of a checkpoint. Resolves to whether it was done; never rejects. */
  schedule(work: FileWork): Promise<boolean>
  /** Call before closing the connection. Waits for running work and starts no more. */
  close(): void
}

export interface CheckpointOptions {
  /** A checkpoint is due when the WAL holds this many pages that are not in the database yet. */
  pages?: number
  /** URL of the thread's program. */
  program?: URL
}

/**
 * 8000 pages of 4 KB are 32 MB. Storing one page of a list changes hundreds of index pages at random. The more changes
 * gather in the WAL, the more of them fall on the same database page, which a checkpoint writes once.
 */
const PAGES = 8000

/** The compiled program. It is missing when parley runs from its sources, as in tests; then there is no thread. */
const PROGRAM = new URL('./checkpoint-worker.js', import.meta.url)

/** Longest wait of `close`. After it the disk is taken as stuck; the next process to open the database reads the WAL. */
const CLOSE_PATIENCE_MS = 30_000

/** The thread needs next to no heap; SQLite allocates outside of it. */
const LIMITS = { maxOldGenerationSizeMb: 32, maxYoungGenerationSizeMb: 2 }

export function createCheckpoints(db: Sqlite, options: CheckpointOptions = {}): Checkpoints {
  const { pages = PAGES, program = PROGRAM } = options
  // SQLite would otherwise run checkpoints inside commits, on the event loop.
  db.pragma('wal_autocheckpoint = 0')
  const walState = db.prepare<unknown[], { log: number; checkpointed: number }>('PRAGMA wal_checkpoint(NOOP)')
  const thread = createThread(db.name, program)
  let dueAt = pages
  let scheduled: ScheduledWork[] = []

  /** Pages of the WAL that are not in the database yet. 0 when SQLite cannot say; the next commit asks again. */
  const pendingPages = (): number => {
    try {
      const { log, checkpointed } = onlyRow(walState)
      return log - checkpointed
    } catch {
      return 0
    }
  }

  return {
    isDue: () => scheduled.length > 0 || pendingPages() >= dueAt,
    async run() {
      const [first, ...others] = scheduled
      scheduled = others
      const work = first?.work ?? 'move'
      const wasDone = (await thread.run(work)) || tryOnThisThread(db, work)
      // Pages that a reader or a full disk kept in the WAL are retried after `pages` more, not at each commit.
      dueAt = pendingPages() + pages
      first?.resolve(wasDone)
    },
    schedule: work => new Promise(resolve => scheduled.push({ work, resolve })),
    close() {
      thread.close()
      for (const { resolve } of scheduled) resolve(false)
    },
  }
}

interface ScheduledWork {
  work: FileWork
  resolve(wasDone: boolean): void
}

/** The fallback without a thread: blocks the event loop. */
function tryOnThisThread(db: Sqlite, work: FileWork): boolean {
  try {
    for (const sql of FILE_WORK[work]) db.exec(sql)
    return true
  } catch {
    // On a full disk the WAL keeps everything; the next commit reports the error.
    return false
  }
}

interface Thread {
  /** Resolves to false when the work was not done; never rejects. */
  run(work: FileWork): Promise<boolean>
  close(): void
}

/** Starts the thread with the first checkpoint, so that a short process does not pay for it. */
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
    // Without the options of this process: modules that they preload would be loaded twice.
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
