import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { startDaemon } from './daemon-process.ts'
import { tallyOf } from './limits-figures.ts'
import { type Recorded, startRecorded } from './recorded-workspace.ts'

/** Measures the requests per second that a server without a limit answers, by its latency and the in-flight limit. */

export interface LatencyOptions {
  folder: string
  /** The built command line program. */
  program: string
  messages: number
  logLevel: string
}

export interface LatencyRow {
  latencyMs: number
  /** The value of `api.max_concurrency`, or that the program chose the limit. */
  concurrency: number | 'free'
  perSecond: number
  /** Mean number of requests in flight, seen by the simulator in the last seconds. */
  inFlight: number
  /** The program's in-flight limit at the end. */
  allowed: number
}

const LATENCIES_MS = [0, 50, 300]
const CONCURRENCIES = [1, 4, 16, 32, 64, 'free'] as const
const RUN_MS = 15_000
/** The part at the end of a run that is measured. */
const MEASURED_MS = 8000

export async function runLatency(options: LatencyOptions): Promise<readonly LatencyRow[]> {
  const rows: LatencyRow[] = []
  for (const latencyMs of LATENCIES_MS) {
    for (const concurrency of CONCURRENCIES) rows.push(await runOne({ latencyMs, concurrency }, options))
  }
  return rows
}

type Trial = Pick<LatencyRow, 'latencyMs' | 'concurrency'>

async function runOne(
  trial: Trial,
  { folder, program, messages, logLevel }: LatencyOptions,
): Promise<LatencyRow> {
  const { latencyMs, concurrency } = trial
  const ownFolder = join(folder, `latency-${latencyMs}-${concurrency}`)
  mkdirSync(ownFolder)
  const workspace = await startRecorded({ messages, now: 'real', latencyMs })
  const settings = concurrency === 'free' ? {} : { PARLEY_API_MAX_CONCURRENCY: String(concurrency) }
  const daemon = startDaemon(workspace, { folder: ownFolder, program, logLevel, settings })
  try {
    await sleep(RUN_MS)
    const allowed = await daemon.concurrency()
    return { ...trial, allowed, ...figuresOf(await workspace.end(), latencyMs) }
  } finally {
    await daemon.stop()
  }
}

/** Requests that came early enough to be answered before the end. */
function figuresOf({ record }: Recorded, latencyMs: number): Pick<LatencyRow, 'perSecond' | 'inFlight'> {
  const to = record.endedMs - 2 * latencyMs
  const { accepted, heldMs } = tallyOf(record, { from: to - MEASURED_MS, to })
  return { perSecond: (accepted * 1000) / MEASURED_MS, inFlight: heldMs / MEASURED_MS }
}
