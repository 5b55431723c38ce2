import { Worker } from 'node:worker_threads'
import type { Clock } from '../../clock.ts'
import { databaseSizes } from '../file/size.ts'
import { STATUS_ROWS, type StatusRow } from './status.ts'

/**
 * Reads the rows of `sync_status` without blocking the event loop: for a large warehouse a thread reads them. Calls
 * during that read, or within MAX_AGE_MS after it, share its result.
 */
export interface StatusRows {
  /** Undefined when the caller has to read the rows: the warehouse is small, or the thread failed. Never rejects. */
  read(path: string): Promise<readonly StatusRow[] | undefined>
}

export interface StatusRowsOptions {
  clock: Clock
  /** From this size on, a thread reads the rows. For a smaller file, counting is faster than starting a thread. */
  largeBytes?: number
  /** URL of the thread's program. */
  program?: URL
}

const LARGE_BYTES = 64 * 1024 * 1024
const MAX_AGE_MS = 5000

/** The compiled program. It is missing when parley runs from its sources, as in tests. */
const PROGRAM = new URL('./worker.js', import.meta.url)
const LIMITS = { maxOldGenerationSizeMb: 32, maxYoungGenerationSizeMb: 2 }

interface CachedRows {
  path: string
  rows: Promise<readonly StatusRow[] | undefined>
  /** By `clock.elapsed()`; undefined while the read runs. */
  readAt?: number
}

export function createStatusRows(options: StatusRowsOptions): StatusRows {
  const { clock, largeBytes = LARGE_BYTES, program = PROGRAM } = options
  let last: CachedRows | undefined
  const startReading = (path: string): CachedRows => {
    const reading: CachedRows = { path, rows: read(path, program) }
    void reading.rows.then(() => {
      reading.readAt = clock.elapsed()
    })
    return reading
  }
  const isFresh = ({ readAt }: CachedRows) => readAt === undefined || clock.elapsed() - readAt < MAX_AGE_MS
  return {
    async read(path) {
      if (databaseSizes(path).bytes < largeBytes) return undefined
      if (last?.path !== path || !isFresh(last)) last = startReading(path)
      return last.rows
    },
  }
}

/** Undefined when the thread could not start or read. The caller's own read then reports the error. */
function read(path: string, program: URL): Promise<readonly StatusRow[] | undefined> {
  return new Promise(resolve => {
    const workerData = { path, sql: STATUS_ROWS }
    try {
      new Worker(program, { workerData, execArgv: [], resourceLimits: LIMITS })
        .on('message', (rows: readonly StatusRow[]) => resolve(rows))
        .on('error', () => resolve(undefined))
        .on('exit', () => resolve(undefined))
        .unref()
    } catch {
      resolve(undefined)
    }
  })
}
