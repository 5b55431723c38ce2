import { type Clock, isoInstant } from '../clock.ts'
import type { Settings } from '../config.ts'
import { ParleyError } from '../errors.ts'
import type { Log } from '../log.ts'
import { keepSnapshot, keptSnapshots, removeSnapshotsBefore } from '../store/kept-snapshots.ts'
import { META } from '../store/state.ts'
import type { SnapshotReport } from '../store/status-report.ts'
import type { Store } from '../store/store.ts'
import { nextOccurrence } from './calendar.ts'

type SnapshotSettings = Pick<Settings, 'database' | 'snapshot' | 'retention'>

export interface SnapshotDuty {
  store: Pick<Store, 'state' | 'transaction'>
  clock: Clock
  log: Log
  settings: SnapshotSettings
  signal: AbortSignal
  /** What the process that makes them runs. */
  program?: URL
}

/**
 * Makes snapshots by the owner's calendar until the signal; at once where one was missed since the newest. What goes
 * wrong is said, and the next comes as planned.
 */
export async function makeSnapshots(duty: SnapshotDuty): Promise<void> {
  const { clock, settings, signal } = duty
  const { every, folder } = settings.snapshot
  if (every === undefined) return
  const newest = keptSnapshots(settings.database.path, folder)[0]?.at ?? Number.POSITIVE_INFINITY
  // One of the time to come was made before the clock was set back.
  let due = nextOccurrence(every, Math.min(newest, clock.now()))
  for (;;) {
    await clock.sleep(due - clock.now(), signal)
    if (signal.aborted) return
    await makeOne(duty)
    // A timer may fire a little early, which must not make two of one.
    due = nextOccurrence(every, Math.max(due, clock.now()))
  }
}

/** Those that have what was erased since go, also where none is made any more. */
export async function removeOldSnapshots({
  clock,
  log,
  settings,
}: Omit<SnapshotDuty, 'store' | 'signal'>): Promise<void> {
  const { database, snapshot, retention } = settings
  try {
    await removeSnapshotsBefore(database.path, snapshot.folder, oldest(retention, clock))
  } catch (error) {
    log.warn('Old snapshots could not be removed', { error })
  }
}

async function makeOne({ store, clock, log, settings, signal, program }: SnapshotDuty): Promise<void> {
  const { database, snapshot, retention } = settings
  try {
    const made = await keepSnapshot(
      { database: database.path, mode: database.mode, clock, signal, ...(program && { program }) },
      { folder: snapshot.folder, keep: snapshot.keep, notBefore: oldest(retention, clock) },
    )
    const { path, bytes, begunAt } = made
    log.info('A snapshot was made', { path, bytes, duration_ms: Math.round(made.durationMs) })
    await note(store, { made_at: begunAt, path, bytes, failed_at: null, reason: null })
  } catch (error) {
    if (signal.aborted) return
    log.warn('A snapshot could not be made; the next one comes as planned', { error })
    const reason =
      error instanceof ParleyError ? `${error.message}.` : 'a fault of the program; the log has it.'
    await note(store, { ...noted(store), failed_at: isoInstant(clock.now()), reason })
  }
}

function oldest({ withdrawnDays }: Settings['retention'], clock: Clock): number {
  return withdrawnDays === 'never' ? 0 : clock.now() - withdrawnDays * 86_400_000
}

const NEVER_MADE: SnapshotReport = { made_at: null, path: null, bytes: null, failed_at: null, reason: null }

function noted({ state }: SnapshotDuty['store']): SnapshotReport {
  const text = state.meta(META.snapshots)
  return text === undefined ? NEVER_MADE : (JSON.parse(text) as SnapshotReport)
}

async function note(store: SnapshotDuty['store'], report: SnapshotReport): Promise<void> {
  try {
    await store.transaction(() => store.state.setMeta(META.snapshots, JSON.stringify(report)))
  } catch {
    // On a disk that is full it cannot be noted; the log has it.
  }
}
