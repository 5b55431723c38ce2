import { setTimeout as sleep } from 'node:timers/promises'
import type { Sqlite } from '../../src/store/database/sqlite-types.ts'
import { type DaemonProcess, startDaemon } from './daemon-process.ts'
import type { Usage } from './measured-process.ts'
import { createPublisher, listedIds } from './publisher.ts'
import { type Asked, startTally } from './request-tally.ts'
import { createWatcher, type Measured } from './watcher.ts'
import { startWorkspace, type Workspace } from './workspace.ts'

/**
 * Measures the time from publishing an item until it can be queried, while a long history loads under a tight rate
 * limit. Both sides run in separate processes, and a read-only connection watches the warehouse.
 */

export interface FreshnessOptions {
  folder: string
  /** The built command line program. */
  program: string
  messages: number
  minutes: number
  logLevel: string
}

export interface Freshness {
  measures: readonly Measured[]
  asked: Asked
  /** Requests by lane in the same time, by the daemon's counters. */
  lanes: Readonly<Record<string, number>>
  /** Time from the daemon's start until the newest segments of both timelines were read. */
  firstFreshMs: number
  daemon: Usage
}

/** The API's limit: requests per second, and burst. */
const LIMIT = { kind: 'token-bucket', rate: 10, burst: 10 } as const
const POLL_SECONDS = 5
const WARM_UP_MS = 30_000
const MEAN_GAP_MS = 1500
const LOOK_MS = 50
const TALLY_MS = 2000
/** How long to wait for the items that were published last. */
const PATIENCE_MS = 60_000

export async function runFreshness(options: FreshnessOptions): Promise<Freshness> {
  const workspace = await startWorkspace({
    messages: options.messages,
    meetings: 400,
    deals: 200,
    now: 'real',
    latencyMs: 20,
    limit: LIMIT,
  })
  const began = performance.now()
  const daemon = startDaemon(workspace, { ...options, pollSeconds: POLL_SECONDS })
  try {
    const db = await daemon.openWarehouse()
    const firstFreshMs = await firstFresh(db, began)
    await sleep(Math.max(0, WARM_UP_MS - firstFreshMs))
    const measured = await publishAndWatch({ workspace, daemon, db, minutes: options.minutes })
    db.close()
    return { ...measured, firstFreshMs, daemon: await daemon.stop() }
  } finally {
    await daemon.stop().catch(() => undefined)
    await workspace.close()
  }
}

async function firstFresh(db: Sqlite, began: number): Promise<number> {
  const unread = db
    .prepare(
      "SELECT count(*) FROM sync_status WHERE resource IN ('activities', 'messages') AND fresh_as_of IS NULL",
    )
    .pluck()
  while (unread.get() !== 0) await sleep(LOOK_MS)
  return performance.now() - began
}

interface Trial {
  workspace: Workspace
  daemon: DaemonProcess
  db: Sqlite
  minutes: number
}

async function publishAndWatch({ workspace, daemon, db, minutes }: Trial) {
  const publisher = await createPublisher(workspace)
  const watcher = createWatcher(db)
  const tally = await startTally(workspace, publisher.isNew)
  const before = await daemon.requestsByLane()
  const began = performance.now()
  const end = began + minutes * 60_000
  let nextChange = began
  let nextTally = began + TALLY_MS
  for (let now = began; now < end; now = performance.now()) {
    watcher.look()
    if (now >= nextChange) {
      watcher.add(await publisher.publish())
      nextChange += -Math.log(1 - Math.random()) * MEAN_GAP_MS
    }
    if (now >= nextTally) {
      await tally.take()
      nextTally += TALLY_MS
    }
    await sleep(LOOK_MS)
  }
  const asked = await tally.end()
  const lanes = difference(await daemon.requestsByLane(), before)
  while (watcher.open().length > 0 && performance.now() < end + PATIENCE_MS) {
    watcher.look()
    await sleep(LOOK_MS)
  }
  const listed = watcher.open().length > 0 ? await listedIds(workspace) : new Set<string>()
  return { asked, lanes, measures: watcher.measured(listed) }
}

function difference(after: Record<string, number>, before: Record<string, number>): Record<string, number> {
  return Object.fromEntries(Object.entries(after).map(([lane, count]) => [lane, count - (before[lane] ?? 0)]))
}
