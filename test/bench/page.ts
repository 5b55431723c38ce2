import { setTimeout as sleep } from 'node:timers/promises'
import { startDaemon } from './daemon-process.ts'
import { fillWarehouse } from './fill.ts'
import { startWorkspace } from './workspace.ts'

/** Measures what the page of a large warehouse costs the daemon. */

export interface PageOptions {
  folder: string
  /** The built command line program. */
  program: string
  messages: number
  logLevel: string
}

export interface PageMeasured {
  times: readonly PageTime[]
  databaseBytes: number
}

export interface PageTime {
  bytes: number
  /** From the request to the end of the answer. */
  ms: number
  /** The longest time for which the event loop was blocked meanwhile. */
  blockedMs: number
}

const TEN_YEARS_DAYS = 3650
const LOOKS = 12
/** Longer than a reading is reused at least. */
const BETWEEN_MS = 6000

export async function runPage(options: PageOptions): Promise<PageMeasured> {
  const { messages } = options
  const workspace = await startWorkspace({
    messages,
    meetings: Math.ceil(messages / 100),
    historyDays: TEN_YEARS_DAYS,
    now: 'real',
  })
  try {
    await fillWarehouse(workspace, { ...options, settings: LISTS })
    const daemon = startDaemon(workspace, { ...options, settings: LISTS })
    const db = await daemon.openWarehouse()
    db.close()
    const times: PageTime[] = []
    while (times.length < LOOKS) {
      await sleep(BETWEEN_MS)
      times.push(await look(daemon.ask))
    }
    const databaseBytes = Number(/^parley_database_bytes (\d+)/m.exec(await daemon.ask('/metrics'))?.[1])
    await daemon.stop()
    return { times, databaseBytes }
  } finally {
    await workspace.close()
  }
}

/** Texts would take an hour to read, and the page counts those that are pending in the same way. */
const LISTS = {
  PARLEY_SYNC_RESOURCES: 'members,teams,collections,activities,messages,meetings,crm_records,access_logs',
}

async function look(ask: (path: string) => Promise<string>): Promise<PageTime> {
  await ask('/metrics')
  const began = performance.now()
  const html = await ask('/')
  const ms = performance.now() - began
  const blocked = /^parley_event_loop_delay_seconds\{quantile="1"\} ([\d.e-]+)/m.exec(
    await ask('/metrics'),
  )?.[1]
  return { bytes: Buffer.byteLength(html), ms, blockedMs: Number(blocked) * 1000 }
}
