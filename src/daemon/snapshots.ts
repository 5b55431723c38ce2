import { type Clock, isoInstant } from '../clock.ts'
import type { Settings } from '../config.ts'
import { ParleyError } from '../errors.ts'
import type { Log } from '../log.ts'
import { nextOccurrence } from '../retention/calendar.ts'
import { noteSnapshotFolder } from '../retention/old-copies.ts'
import { type Keeping, keepSnapshot, keptSnapshots } from '../store/kept-snapshots.ts'
import { META } from '../store/state.ts'
import type { SnapshotReport } from '../store/status-report.ts'
import type { Store } from '../store/store.ts'

type SnapshotSettings = Pick<Settings, 'database' | 'snapshot'>

export interface SnapshotDuty {
  store: Pick<Store, 'db' | 'state' | 'transaction'>
  clock: Clock
  log: Log
  settings: SnapshotSettings
  signal: AbortSignal
  /** What the process that makes them runs. */
  program?: URL
  owners?: Keeping['owners']
}

/** So often at least it looks whether the clock was set, in ms. */
const LOOK_MS = 60_000

/**
 * Makes snapshots by the owner's calendar until the signal; at once where there is none, or one was missed since the
 * newest. What goes wrong is said, and the next comes as planned.
 */
export async function makeSnapshots(duty: SnapshotDuty): Promise<void> {
  const { clock, settings, signal } = duty
  const { every } = settings.snapshot
  if (every === undefined) return forget(duty.store)
  const newest = await newestOf(duty)
  const isPossible = nextOccurrence(every, clock.now()) < Number.POSITIVE_INFINITY
  let due = newest === undefined && isPossible ? clock.now() : nextOccurrence(every, newest ?? clock.now())
  while (due < Number.POSITIVE_INFINITY) {
    await clock.sleep(Math.min(due - clock.now(), LOOK_MS), signal)
    if (signal.aborted) return
    const isDue = clock.now() >= due
    if (isDue) await makeOne(duty)
    const next = nextOccurrence(every, clock.now())
    // Sooner than was planned: the clock was set back.
    due = isDue ? next : Math.min(due, next)
  }
}

/** Those of the time to come were made before the clock was set back. */
async function newestOf({ clock, settings }: SnapshotDuty): Promise<number | undefined> {
  const { database, snapshot } = settings
  const [newest] = await keptSnapshots(database.path, snapshot.folder, clock.now())
  return newest && Math.min(newest.at, clock.now())
}

function warnOf(stuck: readonly string[], log: Log): void {
  for (const path of stuck) log.warn('An old snapshot could not be removed', { path })
}

async function makeOne({
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
    const { path, bytes, begunAt, removed, stuck } = made
    log.info('A snapshot was made', { path, bytes, duration_ms: Math.round(made.durationMs) })
    for (const old of removed) log.info('A snapshot beyond those that are kept was removed', { path: old })
    warnOf(stuck, log)
    await note(store, { made_at: begunAt, path, bytes, failed_at: null, reason: null })
  } catch (error) {
    if (signal.aborted) return
    log.warn('A snapshot could not be made; the next one comes as planned', { error })
    const reason =
      error instanceof ParleyError ? `${error.message}.` : 'a fault of the program; the log has it.'
    await note(store, { ...noted(store), failed_at: isoInstant(clock.now()), reason })
  }
}

const NEVER_MADE: SnapshotReport = { made_at: null, path: null, bytes: null, failed_at: null, reason: null }

function noted({ state }: SnapshotDuty['store']): SnapshotReport {
  const text = state.meta(META.snapshots)
  return text === undefined ? NEVER_MADE : ((JSON.parse(text) as SnapshotReport | null) ?? NEVER_MADE)
}

/** Where none is to be made any more, nobody is to be told for ever that the last is old, or that it failed. */
async function forget(store: SnapshotDuty['store']): Promise<void> {
  if (noted(store) !== NEVER_MADE) await note(store, null)
}

async function note(store: SnapshotDuty['store'], report: SnapshotReport | null): Promise<void> {
  try {
    await store.transaction(() => store.state.setMeta(META.snapshots, JSON.stringify(report)))
  } catch {
    // On a disk that is full it cannot be noted; the log has it.
  }
}
