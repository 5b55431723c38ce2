import { Worker } from 'node:worker_threads'
import type { Sqlite } from './sqlite-types.ts'
import { onlyRow } from './statements.ts'

export type Checkpoints = ReturnType<typeof createCheckpoints>

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

/**
 * Checkpoints move the content of the WAL into the database. On the event loop, a checkpoint would block everything
 * while the disk writes tens of megabytes, so a thread with a separate connection runs it. The writer waits meanwhile.
 * If the writer went on, no checkpoint would reach the end of the WAL. SQLite could then never reuse the WAL, which
 * would grow without limit.
 */
export function createCheckpoints(db: Sqlite, options: CheckpointOptions = {}) {
  const { pages = PAGES, program = PROGRAM, onHeld } = options
  // SQLite would otherwise run checkpoints inside commits, on the event loop.
  db.pragma('wal_autocheckpoint = 0')
  const walState = db.prepare<unknown[], { log: number; checkpointed: number }>('PRAGMA wal_checkpoint(NOOP)')
  const thread = createThread(db.name, program)
  let dueAt = pages
  let isHeld = false
  let asked: (() => void)[] = []

  /** Pages of the WAL that are not in the database yet. 0 when SQLite fails; the next commit tries again. */
  const pendingPages = (): number => {
    try {
      const { log, checkpointed } = onlyRow(walState)
      return log - checkpointed
    } catch {
      return 0
    }
  }

  const settleAsked = () => {
    for (const resolve of asked) resolve()
    asked = []
  }

  return {
    /** Called after each commit; takes about a microsecond. */
    isDue: () => asked.length > 0 || pendingPages() >= dueAt,
    /** Never rejects: what a checkpoint could not move stays in the WAL for the next one. */
    async run() {
      if (!(await thread.run())) tryOnThisThread(db)
      // A reader or a full disk can keep pages in the WAL. Another try follows `pages` pages later, not at each commit.
      const pending = pendingPages()
      dueAt = pending + pages
      const wasHeld = isHeld
      isHeld = pending >= pages * HELD_CHECKPOINTS
      if (isHeld && !wasHeld) onHeld?.(pending * Number(db.pragma('page_size', { simple: true })))
      settleAsked()
    },
    /** Asks for a checkpoint after the next commit. Resolves when it has ended; never rejects. */
    ask: () => new Promise<void>(resolve => asked.push(resolve)),
    /** Settles the checkpoints that were asked for, without running one. */
    abandon: settleAsked,
    /** Call before closing the connection. Waits for a running checkpoint and starts no more. */
    close() {
      thread.close()
      settleAsked()
    },
  }
}

/** The fallback when the thread cannot run a checkpoint. It blocks the event loop. */
function tryOnThisThread(db: Sqlite): void {
  try {
    db.exec(CHECKPOINT)
  } catch {
    // On a full disk nothing is lost: the content stays in the WAL, and the next commit reports the error.
  }
}

/** The thread starts with the first checkpoint, so a short process runs without it. */
function createThread(path: string, program: URL) {
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
    /** Resolves to false when the caller has to run the checkpoint itself; never rejects. */
    run: () =>
      new Promise<boolean>(resolve => {
        if (isUnavailable) return resolve(false)
        resolveRun = resolve
        try {
          worker ??= start()
        } catch {
          return giveUp()
        }
        Atomics.store(state, 0, ORDER_STATE.given)
        worker.ref()
        worker.postMessage(null)
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

/** `workerData` of the checkpoint thread. Each message asks for a checkpoint; the answer says whether it succeeded. */
export interface CheckpointWorkerData {
  /** Path of the database. */
  path: string
  /** One Int32 that the writer's thread and the checkpoint thread share: a value of ORDER_STATE. */
  state: SharedArrayBuffer
}

/**
 * An order is one checkpoint that the writer asks the thread for. Its states:
 * none → given (the writer posts it) → taken (the thread begins) → none (the thread has ended).
 * The writer may withdraw an order that is given (→ none), but must wait for the end of an order that is taken.
 */
export const ORDER_STATE = { none: 0, given: 1, taken: 2 } as const

/** Moves the content of the WAL into the database as far as readers permit. */
export const CHECKPOINT = 'PRAGMA wal_checkpoint(PASSIVE)'
