import { type Clock, HOUR_MS, isoInstant, MINUTE_MS } from '../clock.ts'
import type { Settings } from '../config/config.ts'
import { ParleyError } from '../errors.ts'
import type { Log } from '../log.ts'
import { nextOccurrence } from '../retention/calendar.ts'
import { noteSnapshotFolder } from '../retention/old-copies.ts'
import { type KeepOptions, keepSnapshot, keptSnapshots } from '../store/snapshot/kept-snapshots.ts'
import type { SnapshotReport } from '../store/status/report.ts'
import type { OpenStore } from '../store/store.ts'
import { META, parseNote } from '../store/sync/meta.ts'

type SnapshotSettings = Pick<Settings, 'database' | 'snapshot'>

export interface SnapshotDuty {
  store: Pick<OpenStore, 'db' | 'state' | 'transaction'>
  clock: Clock
  log: Log
  settings: SnapshotSettings
  signal: AbortSignal
  isMaintenanceDue(): boolean
  /** The program of the child process that makes snapshots. */
  program?: URL
  owners?: KeepOptions['owners']
}

/** How often the clock is checked, in case it was set. */
const LOOK_MS = MINUTE_MS
/** How often a snapshot that waits for maintenance checks whether that has finished. */
const HELD_LOOK_MS = 1000
/**
 * How long a snapshot waits for maintenance that is due. Maintenance cannot run when the disk is full, the API does not
 * answer or the clock is wrong. A backup that still holds content to be purged is then better than none.
 */
const MAX_HOLD_MS = HOUR_MS

/**
 * Makes snapshots on the schedule of `snapshot.every` until the signal; at once where there is none yet, or where one
 * was missed. Maintenance that is due goes first: a snapshot made before it would keep the content that it purges for
 * another term. A failure is logged, and the next snapshot is made as scheduled.
 */
export async function makeSnapshots(duty: SnapshotDuty): Promise<void> {
  const { clock, settings, signal } = duty
  const { every } = settings.snapshot
  if (every === undefined) return clearReport(duty.store)
  const newest = await newestSnapshot(duty)
  const isPossible = nextOccurrence(every, clock.now()) < Number.POSITIVE_INFINITY
  let due = newest === undefined && isPossible ? clock.now() : nextOccurrence(every, newest ?? clock.now())
  const maintenanceHolds = createHold(duty)
  let waitMs = due - clock.now()
  while (due < Number.POSITIVE_INFINITY) {
    await clock.sleep(Math.min(waitMs, LOOK_MS), signal)
    if (signal.aborted) return
    const isHeld = maintenanceHolds()
    const isDue = clock.now() >= due
    if (isDue && !isHeld) await makeSnapshot(duty)
    const next = nextOccurrence(every, clock.now())
    // The next occurrence is earlier than planned when the clock was set back.
    due = isDue && !isHeld ? next : Math.min(due, next)
    waitMs = isDue && isHeld ? HELD_LOOK_MS : due - clock.now()
  }
}

/** Call it at every check: the time of the hold counts from the first check at which maintenance is due. */
function createHold({ clock, isMaintenanceDue }: SnapshotDuty): () => boolean {
  let since: number | undefined
  return () => {
    since = isMaintenanceDue() ? (since ?? clock.elapsed()) : undefined
    return since !== undefined && clock.elapsed() - since < MAX_HOLD_MS
  }
}

/** When the newest snapshot was made. One from the future, made before the clock was set back, counts as made now. */
async function newestSnapshot({ clock, settings }: SnapshotDuty): Promise<number | undefined> {
  const { database, snapshot } = settings
  const [newest] = await keptSnapshots(database.path, snapshot.folder, clock.now())
  return newest && Math.min(newest.at, clock.now())
}

function warnAboutStuck(stuck: readonly string[], log: Log): void {
  for (const path of stuck) log.warn('An old snapshot could not be removed', { path })
}

async function makeSnapshot({
  store,
  clock,
  log,
  settings,
  signal,
  program,
  owners,
}: SnapshotDuty): Promise<void> {
  const { database, snapshot } = settings
  try {
    await noteSnapshotFolder({ store, settings })
    const made = await keepSnapshot(
      { database: database.path, mode: database.mode, clock, signal, ...(program && { program }) },
      { folder: snapshot.folder, keep: snapshot.keep, ...(owners && { owners }) },
    )
    const { path, bytes, startedAt, removed, stuck } = made
    log.info('A snapshot was created', { path, bytes, duration_ms: Math.round(made.durationMs) })
    for (const old of removed)
      log.info('An old snapshot was removed: snapshot.keep is reached', { path: old })
    warnAboutStuck(stuck, log)
    await saveReport(store, { made_at: startedAt, path, bytes, failed_at: null, reason: null })
  } catch (error) {
    if (signal.aborted) return
    log.warn('A snapshot failed; the next one is made as scheduled', { error })
    const reason = error instanceof ParleyError ? `${error.message}.` : 'a fault of the program; see the log.'
    await saveReport(store, { ...lastReport(store), failed_at: isoInstant(clock.now()), reason })
  }
}

const NEVER_MADE: SnapshotReport = { made_at: null, path: null, bytes: null, failed_at: null, reason: null }

function lastReport({ state }: SnapshotDuty['store']): SnapshotReport {
  return parseNote<SnapshotReport>(state.meta(META.snapshots)) ?? NEVER_MADE
}

/** Once snapshots are off, the status no longer shows that the last one is old or has failed. */
async function clearReport(store: SnapshotDuty['store']): Promise<void> {
  if (lastReport(store) !== NEVER_MADE) await saveReport(store, null)
}

async function saveReport(store: SnapshotDuty['store'], report: SnapshotReport | null): Promise<void> {
  try {
    await store.transaction(() => store.state.setMeta(META.snapshots, JSON.stringify(report)))
  } catch {
    // On a full disk it cannot be stored. The log has it as well.
  }
}
