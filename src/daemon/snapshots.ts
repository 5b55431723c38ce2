import { type Clock, HOUR_MS, isoInstant, MINUTE_MS } from '../base/clock.ts'
import { ParleyError } from '../base/errors.ts'
import type { Log } from '../base/log.ts'
import { nextOccurrence } from '../config/calendar.ts'
import type { Settings } from '../config/loaded-settings.ts'
import { noteSnapshotFolder } from '../retention/old-copies.ts'
import { isMissed } from '../retention/what-to-remove.ts'
import type { Removal } from '../store/copies/copy-files.ts'
import { type KeepOptions, keepSnapshot, keptSnapshots } from '../store/snapshot/kept-snapshots.ts'
import type { SnapshotReport } from '../store/status/report.ts'
import type { OpenStore } from '../store/store.ts'
import { META, readNote } from '../store/sync/meta.ts'

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

/** The longest sleep between two checks of the clock, which may be set at any time. */
const LOOK_MS = MINUTE_MS
/** How often a snapshot that waits for maintenance checks whether the maintenance has ended. */
const HELD_LOOK_MS = 1000
/**
 * How long a snapshot waits for maintenance that is due. Maintenance cannot run when the disk is full, the API does not
 * answer or the clock is wrong. A backup that still holds content to be purged is then better than no backup.
 */
const MAX_HOLD_MS = HOUR_MS

/**
 * Makes snapshots on the schedule of `snapshot.every` until the signal. The first snapshot and a missed snapshot are
 * made at once. Maintenance that is due runs first: an earlier snapshot would keep the content that
 * maintenance purges. After a failure, the next snapshot is made as scheduled.
 */
export async function makeSnapshots(duty: SnapshotDuty): Promise<void> {
  const { clock, settings, signal } = duty
  const { every } = settings.snapshot
  if (every === undefined) return clearReport(duty.store)
  const [newest] = await keptSnapshots(settings.database.path, settings.snapshot.folder, clock.now())
  const now = clock.now()
  const next = (after: number) => nextOccurrence(every, after)
  let due = next(now)
  if (due < Number.POSITIVE_INFINITY && isMissed(newest?.at, now, next)) due = now
  const maintenanceHolds = createHold(duty)
  let waitMs = due - clock.now()
  while (due < Number.POSITIVE_INFINITY) {
    await clock.sleep(Math.min(waitMs, LOOK_MS), signal)
    if (signal.aborted) return
    const isHeld = maintenanceHolds()
    const isDue = clock.now() >= due
    if (isDue && !isHeld) await makeSnapshot(duty)
    const planned = next(clock.now())
    // The next occurrence is earlier than planned when the clock was set back.
    due = isDue && !isHeld ? planned : Math.min(due, planned)
    waitMs = isDue && isHeld ? HELD_LOOK_MS : due - clock.now()
  }
}

/**
 * Returns a function that says whether a snapshot must wait for maintenance. Call the function at every check: the wait
 * counts from the first check at which maintenance is due.
 */
function createHold({ clock, isMaintenanceDue }: SnapshotDuty): () => boolean {
  let since: number | undefined
  return () => {
    since = isMaintenanceDue() ? (since ?? clock.elapsed()) : undefined
    return since !== undefined && clock.elapsed() - since < MAX_HOLD_MS
  }
}

function warnAboutStuck(stuck: Removal['stuck'], log: Log): void {
  const hint = 'Check the permissions of its folder.'
  for (const { path, reason } of stuck)
    log.warn('An old snapshot could not be removed', { path, reason, hint })
}

const SURPLUS = 'An old snapshot was removed: snapshot.keep is reached'
const OUTDATED = 'An old snapshot was removed: it had content that has been purged, and the new one does not'

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
    const { path, bytes, startedAt, removed, outdated, stuck } = made
    log.info('A snapshot was created', { path, bytes, duration_ms: Math.round(made.durationMs) })
    for (const old of removed) log.info(outdated.includes(old) ? OUTDATED : SURPLUS, { path: old })
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
  return readNote<SnapshotReport>(state.meta, META.snapshots) ?? NEVER_MADE
}

/** Clears the report when snapshots are off. Otherwise the status would show that the last one is old or failed. */
async function clearReport(store: SnapshotDuty['store']): Promise<void> {
  if (lastReport(store) !== NEVER_MADE) await saveReport(store, null)
}

async function saveReport(store: SnapshotDuty['store'], report: SnapshotReport | null): Promise<void> {
  const write = () => store.state.setMeta(META.snapshots, JSON.stringify(report))
  // The write fails on a full disk. The log has the same facts.
  await store.transaction(write).catch(() => undefined)
}
