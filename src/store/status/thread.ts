import { parentPort, Worker, workerData } from 'node:worker_threads'
import { createCachedReading } from '../../base/cached-reading.ts'
import type { Clock } from '../../base/clock.ts'
import { openSqlite } from '../database/sqlite.ts'
import type { Sqlite } from '../database/sqlite-types.ts'
import { databaseSizes } from '../disk/disk-space.ts'
import { inOneRead } from './status.ts'

export interface ThreadReaderOptions {
  clock: Clock
  /** Smaller files are read by the caller, which is faster than starting a thread. */
  largeBytes?: number
  /** URL of the thread's program, which posts its answer. */
  program: URL
}

/** What the thread's program gets. */
interface ThreadInput {
  path: string
  /** In ms since the epoch. */
  now: number
}

const LARGE_BYTES = 64 * 1024 * 1024

/**
 * A result is reused for this time, and longer after a long read, so that reads take at most a twentieth of the time.
 */
const REUSE_MS = 5000
const REUSE_FACTOR = 20

const LIMITS = { maxOldGenerationSizeMb: 32, maxYoungGenerationSizeMb: 2 }

/**
 * Runs slow reads without blocking the event loop: a thread reads a large warehouse. Calls during a read, or soon after
 * it, share its result.
 */
export function createThreadReader<Answer>({
  clock,
  largeBytes = LARGE_BYTES,
  program,
}: ThreadReaderOptions) {
  const inThread = createCachedReading(
    path => readInThread<Answer>({ path, now: clock.now() }, program),
    clock,
    tookMs => tookMs + Math.max(REUSE_MS, REUSE_FACTOR * tookMs),
  )
  return {
    /** Undefined when the caller has to read: the warehouse is small, or the thread failed. Never rejects. */
    read: async (path: string) => (databaseSizes(path).bytes < largeBytes ? undefined : inThread(path)),
  }
}

/** Undefined when the thread could not start or read. The caller's own read then reports the error. */
function readInThread<Answer>(input: ThreadInput, program: URL): Promise<Answer | undefined> {
  return new Promise(resolve => {
    try {
      new Worker(program, { workerData: input, execArgv: [], resourceLimits: LIMITS })
        .on('message', (answer: Answer) => resolve(answer))
        .on('error', () => resolve(undefined))
        .on('exit', () => resolve(undefined))
        .unref()
    } catch {
      resolve(undefined)
    }
  })
}

/** How long to wait for another process that is closing the database. */
const BUSY_TIMEOUT_MS = 5000

/** The whole program of a thread: reads one state of the database, and answers. */
export function answerOnce(read: (db: Sqlite, now: number) => unknown): void {
  const { path, now } = workerData as ThreadInput
  const db = openSqlite(path, { readonly: true, fileMustExist: true, timeout: BUSY_TIMEOUT_MS })
  db.pragma('cache_size = -2000')
  parentPort?.postMessage(inOneRead(db, () => read(db, now)))
  db.close()
}
