import { Worker } from 'node:worker_threads'
import { type CheckpointOrders, FILE_WORK, type FileWork, ORDER } from './checkpoint-order.ts'
import type { Sqlite } from './open.ts'

/**
 * Moves what was written from the WAL into the database. On the event loop this would hold up everything for as long
 * as the disk takes for some ten megabytes, so a thread with a connection of its own does it. The writer waits for it
 * meanwhile: beside a writer a checkpoint never comes to the WAL's end, which so is never written from its start.
 */
export interface Checkpoints {
  /** Asked after each commit; it costs about a microsecond. */
  isDue(): boolean
  /** Never rejects: where it could not be done, or only in part, the next one takes up what is left. */
  run(): Promise<void>
  /** Has other work done in place of a checkpoint, after the next commit. Resolves to whether it was; never rejects. */
  ask(work: FileWork): Promise<boolean>
  /** Before the connection is closed: one that is under way is waited for, and none begins any more. */
  close(): void
}

export interface CheckpointOptions {
  /** So many pages in the WAL and not yet in the database make a checkpoint due. */
  pages?: number
  /** What the thread runs. */
  program?: URL
}

/**
 * Every page of a list touches hundreds of index pages at random. The more of them gather in the WAL before they are
 * written back, the more often one write serves for many: this many are 32 MB.
 */
const PAGES = 8000

/** The compiled one. Where only sources are, as in tests, there is none, and no thread can be had. */
const PROGRAM = new URL('./checkpoint-worker.js', import.meta.url)

/** Beyond it a checkpoint is under way on a disk that does not answer: the WAL is taken up by the next opening. */
const CLOSE_PATIENCE_MS = 30_000

/** The thread needs next to no heap; what the database needs is outside of it. */
const LIMITS = { maxOldGenerationSizeMb: 32, maxYoungGenerationSizeMb: 2 }

export function createCheckpoints(db: Sqlite, options: CheckpointOptions = {}): Checkpoints {
  const { pages = PAGES, program = PROGRAM } = options
  // From here on none is made within a commit.
  db.pragma('wal_autocheckpoint = 0')
  const state = db.prepare('PRAGMA wal_checkpoint(NOOP)')
  const thread = createThread(db.name, program)
  let dueAt = pages
  let asked: Asked[] = []

  /** Pages that wait to be moved. What cannot be told at the moment is asked again after the next commit. */
  const left = (): number => {
    try {
      const { log, checkpointed } = state.get() as { log: number; checkpointed: number }
      return log - checkpointed
    } catch {
      return 0
    }
  }

  return {
    isDue: () => asked.length > 0 || left() >= dueAt,
    async run() {
      const [first, ...others] = asked
      asked = others
      const work = first?.work ?? 'move'
      const wasDone = (await thread.does(work)) || isDoneHere(db, work)
      // What readers hold, or a full disk leaves, is tried again when as much has come again, not at each commit.
      dueAt = left() + pages
      first?.resolve(wasDone)
    },
    ask: work => new Promise(resolve => asked.push({ work, resolve })),
    close() {
      thread.close()
      for (const { resolve } of asked) resolve(false)
    },
  }
}

interface Asked {
  work: FileWork
  resolve(wasDone: boolean): void
}

/** Where no thread can be had, the event loop has to wait for it. */
function isDoneHere(db: Sqlite, work: FileWork): boolean {
  try {
    for (const sql of FILE_WORK[work]) db.exec(sql)
    return true
  } catch {
    // On a full disk the WAL keeps everything; the writer's own commit says what is wrong.
    return false
  }
}

interface Thread {
  /** False where it was not done. */
  does(work: FileWork): Promise<boolean>
  close(): void
}

/** Started with the first checkpoint, so that a short process never pays for it. */
function createThread(path: string, program: URL): Thread {
  const order = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)
  const state = new Int32Array(order)
  let worker: Worker | undefined
  let isLost = false
  let answered: ((wasDone: boolean) => void) | undefined

  const settle = (wasDone: boolean) => {
    worker?.unref()
    answered?.(wasDone)
    answered = undefined
  }
  const lose = () => {
    isLost = true
    worker = undefined
    Atomics.store(state, 0, ORDER.none)
    settle(false)
  }
  const start = (): Worker => {
    const workerData: CheckpointOrders = { path, order }
    // The options of this process are not for it: what they load would be loaded twice.
    return new Worker(program, { workerData, execArgv: [], resourceLimits: LIMITS })
      .on('message', settle)
      .on('error', lose)
      .on('exit', lose)
  }

  return {
    does: work =>
      new Promise(resolve => {
        if (isLost) return resolve(false)
        answered = resolve
        try {
          worker ??= start()
        } catch {
          return lose()
        }
        Atomics.store(state, 0, ORDER.given)
        worker.ref()
        worker.postMessage(work)
      }),
    close() {
      isLost = true
      if (Atomics.compareExchange(state, 0, ORDER.given, ORDER.none) === ORDER.taken) {
        Atomics.wait(state, 0, ORDER.taken, CLOSE_PATIENCE_MS)
      }
      const ended = worker
      settle(true)
      worker = undefined
      void ended?.terminate()
    },
  }
}
