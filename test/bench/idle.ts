import { setTimeout as sleep } from 'node:timers/promises'
import { startDaemon } from './daemon-process.ts'
import { type DueRead, dueWithin, isAtRest } from './due-reads.ts'
import type { Usage } from './measured-process.ts'
import { type RouteCount, startWorkspace } from './workspace.ts'

/** Measures the requests while everything is loaded and nothing changes. */

export interface IdleOptions {
  folder: string
  /** The built command line program. */
  program: string
  minutes: number
  logLevel: string
}

export interface Idle {
  seconds: number
  pollSeconds: number
  counts: readonly RouteCount[]
  /** The reads besides polls that are due in this time, by the documented intervals. */
  due: readonly DueRead[]
  daemon: Usage
}

const POLL_SECONDS = 5
const LOOK_MS = 1000

export async function runIdle(options: IdleOptions): Promise<Idle> {
  const workspace = await startWorkspace({ messages: 1000, meetings: 40, deals: 20, now: 'real' })
  const daemon = startDaemon(workspace, { ...options, pollSeconds: POLL_SECONDS })
  try {
    const db = await daemon.openWarehouse()
    while (!isAtRest(db)) await sleep(LOOK_MS)
    await sleep(2 * POLL_SECONDS * 1000)
    const due = dueWithin(db, options.minutes * 60_000)
    await workspace.forgetRequests()
    const began = performance.now()
    await sleep(options.minutes * 60_000)
    const { counts } = await workspace.requests()
    const seconds = (performance.now() - began) / 1000
    db.close()
    return { seconds, pollSeconds: POLL_SECONDS, counts, due, daemon: await daemon.stop() }
  } finally {
    await daemon.stop().catch(() => undefined)
    await workspace.close()
  }
}
