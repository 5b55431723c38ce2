import { Worker } from 'node:worker_threads'
import type { Clock } from '../clock.ts'
import { databaseSizes, STATUS_ROWS, type StatusRow } from './status.ts'

/**
 * The rows of `sync_status` for a process that has more to do than to count: of a large warehouse a thread reads
 * them, and whoever asks meanwhile, or soon after, gets the same.
 */
export interface StatusRows {
  /** Undefined where reading them at once is as well. Never rejects. */
  of(path: string): Promise<readonly StatusRow[] | undefined>
}

export interface StatusRowsOptions {
  clock: Clock
  /** From this size on a thread reads them: below, they are counted in less time than it takes to start one. */
  largeBytes?: number
  /** What the thread runs. */
  program?: URL
}

const LARGE_BYTES = 64 * 1024 * 1024
const KEEP_MS = 5000

/** The compiled one. Where only sources are, as in tests, there is none. */
const PROGRAM = new URL('./status-worker.js', import.meta.url)
const LIMITS = { maxOldGenerationSizeMb: 32, maxYoungGenerationSizeMb: 2 }

interface Reading {
  path: string
  rows: Promise<readonly StatusRow[] | undefined>
  /** By `elapsed`; not there yet while it is being made. */
  madeAt?: number
}

export function createStatusRows(options: StatusRowsOptions): StatusRows {
  const { clock, largeBytes = LARGE_BYTES, program = PROGRAM } = options
  let last: Reading | undefined
  const begin = (path: string): Reading => {
    const reading: Reading = { path, rows: read(path, program) }
    void reading.rows.then(() => {
      reading.madeAt = clock.elapsed()
    })
    return reading
  }
  const isGood = ({ madeAt }: Reading) => madeAt === undefined || clock.elapsed() - madeAt < KEEP_MS
  return {
    async of(path) {
      if (databaseSizes(path).bytes < largeBytes) return undefined
      if (last?.path !== path || !isGood(last)) last = begin(path)
      return last.rows
    },
  }
}

/** Undefined where no thread can be had, or it could not read: who reads them at once is told why. */
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
