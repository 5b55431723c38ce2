import { Worker } from 'node:worker_threads'
import type { Clock } from '../../base/clock.ts'
import { databaseSizes } from '../disk/disk-space.ts'

/**
 * Runs slow reads without blocking the event loop: a thread reads a large warehouse. Calls during a read, or within
 * `REUSE_MS` after it, share its result.
 */
export interface ThreadReader<Answer> {
  /** Undefined when the caller has to read: the warehouse is small, or the thread failed. Never rejects. */
  read(path: string): Promise<Answer | undefined>
}

export interface ThreadReaderOptions {
  clock: Clock
  /** Smaller files are read by the caller, which is faster than starting a thread. */
  largeBytes?: number
  /** URL of the thread's program, which posts its answer. */
  program: URL
}

/** What the thread's program gets. */
export interface ThreadInput {
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

interface StatusReading<Answer> {
  path: string
  result: Promise<Answer | undefined>
  /** By `clock.elapsed()`; undefined while the read runs. */
  reusedUntil?: number
}

export function createThreadReader<Answer>(options: ThreadReaderOptions): ThreadReader<Answer> {
  const { clock, largeBytes = LARGE_BYTES, program } = options
  let last: StatusReading<Answer> | undefined
  const startReading = (path: string): StatusReading<Answer> => {
    const startedAt = clock.elapsed()
    const reading: StatusReading<Answer> = {
      path,
      result: readInThread<Answer>({ path, now: clock.now() }, program),
    }
    void reading.result.then(() => {
      const endedAt = clock.elapsed()
      reading.reusedUntil = endedAt + Math.max(REUSE_MS, REUSE_FACTOR * (endedAt - startedAt))
    })
    return reading
  }
  const isFresh = ({ reusedUntil }: StatusReading<Answer>) =>
    reusedUntil === undefined || clock.elapsed() < reusedUntil
  return {
    async read(path) {
      if (databaseSizes(path).bytes < largeBytes) return undefined
      if (last?.path !== path || !isFresh(last)) last = startReading(path)
      return last.result
    },
  }
}

/** Undefined when the thread could not start or read. The caller's own read then reports the error. */
function readInThread<Answer>(workerData: ThreadInput, program: URL): Promise<Answer | undefined> {
  return new Promise(resolve => {
    try {
      new Worker(program, { workerData, execArgv: [], resourceLimits: LIMITS })
        .on('message', (answer: Answer) => resolve(answer))
        .on('error', () => resolve(undefined))
        .on('exit', () => resolve(undefined))
        .unref()
    } catch {
      resolve(undefined)
    }
  })
}
