import { dirname } from 'node:path'
import { type Clock, DAY_MS, isoInstant, utcDay } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import { MAINTENANCE, nextOccurrence } from '../config/calendar.ts'
import type { Settings } from '../config/loaded-settings.ts'
import { RESOURCE_NAMES } from '../declare/resource-names.ts'
import { type FreeBytes, fileBytes, freeOnSlowDisk } from '../store/disk/disk-space.ts'
import { type BuildOptions, buildSearch, createSearchIndices } from '../store/search/indices.ts'
import type { ownersOf } from '../store/snapshot/copy-process.ts'
import type { OpenStore } from '../store/store.ts'
import { META } from '../store/sync/meta.ts'
import { removeOldCopies } from './old-copies.ts'
import { noteRemains, reportRemains } from './remains-report.ts'
import {
  type ClockTrust,
  clockTrust,
  instantOf,
  isMissed,
  REBUILT_UP_TO_BYTES,
  type Rebuild,
  rebuildFor,
} from './what-to-remove.ts'

/**
 * Nightly maintenance. It purges the content of rows that were deleted `retention.withdrawn_days` ago. It removes the
 * remains from the database's files, and edited texts from the full-text indices. It removes copies of the warehouse
 * that are as old, since they may hold purged content. It prunes the run history and optimizes the file.
 *
 * Each step records in the database what it leaves for a later step, in the transaction of its changes. If the process
 * is killed, the next maintenance continues from these records.
 */

export interface MaintainDeps {
  store: OpenStore
  clock: Clock
  log: Log
  settings: Pick<Settings, 'database' | 'retention' | 'search' | 'snapshot'>
  signal: AbortSignal
  readOwners?: typeof ownersOf
}

/** Rows per transaction. The sync writes between two transactions. */
const BATCH_ROWS = 200
/** Runs that changed nothing are kept for this many days. */
const QUIET_DAYS = 1

/** Rows of `sync_minutes` are kept for this time. */
const MINUTES_DAYS = 14

/** Notes of older answers are kept for this time. A listed row gets an answer at least each week. */
const OLDER_ANSWERS_DAYS = 30

/** Reads that nothing names any more are kept for this time. A webhook may have named them before any list does. */
const UNNAMED_DAYS = 7

/** Rows of `sync_days` are kept for this time. */
const YEAR_DAYS = 366

/** A piece is small enough not to delay the sync, even though FTS5 writes more at its end. */
export const SEARCH_BUILD_PACE: Pick<BuildOptions, 'pieceMs' | 'share'> = { pieceMs: 5, share: 0.25 }

/**
 * - `maintenance`: all steps;
 * - `cleaning`: only the removal of purged content from the `-wal` and the free space;
 * - `clocks-differ`: maintenance is due, but this machine's clock and the API's differ;
 * - `unknown`: maintenance is due, but the API's clock is not known.
 */
export type Due = 'maintenance' | 'cleaning' | 'nothing' | Exclude<ClockTrust, 'agreed'>

/** @param server the API's clock in ms since the epoch; undefined before the first response */
export function dueMaintenance(
  { store, clock }: Pick<MaintainDeps, 'store' | 'clock'>,
  server: number | undefined,
): Due {
  if (!isMaintenanceDue({ store, clock })) return store.purger.remains().inLog ? 'cleaning' : 'nothing'
  const trust = clockTrust({ machine: clock.now(), server })
  return trust === 'agreed' ? 'maintenance' : trust
}

const CLOCK_REASONS: Readonly<Record<Exclude<ClockTrust, 'agreed'>, string>> = {
  'clocks-differ':
    "this machine's clock and the API's differ by more than a day: correct this machine's clock",
  unknown: "the API has not sent its time (Date header), so this machine's clock cannot be checked",
}

/** Logs why maintenance that is due does not run. */
export function warnOfClock(log: Log, due: keyof typeof CLOCK_REASONS): void {
  const reason = CLOCK_REASONS[due]
  log.warn('Maintenance is delayed: nothing is purged while the clock may be wrong', { reason })
}

/** Whether nightly maintenance is due, by this machine's clock alone. */
export function isMaintenanceDue({
  store,
  clock,
}: {
  store: Pick<OpenStore, 'state'>
  clock: Pick<Clock, 'now'>
}): boolean {
  const doneAt = instantOf(store.state.meta(META.maintainedAt))
  return isMissed(doneAt, clock.now(), after => nextOccurrence(MAINTENANCE, after))
}

/** Call it only when `dueMaintenance` returns `maintenance`: it trusts this machine's clock. */
export async function maintain(deps: MaintainDeps): Promise<void> {
  const { store, clock, log, settings, signal } = deps
  const began = clock.elapsed()
  const now = isoInstant(clock.now())
  const daysAgo = (days: number) => clock.now() - days * DAY_MS
  const { withdrawnDays, runsDays } = settings.retention
  const before = withdrawnDays === 'never' ? undefined : daysAgo(withdrawnDays)
  await store.transaction(() => {
    // Before the first maintenance, deletions may have been recorded under a wrong clock. All their waits start again.
    const isFirst =
      store.state.meta(META.firstMaintainedAt) === undefined &&
      store.state.meta(META.maintainedAt) === undefined
    store.purger.restartWaits(now, { all: isFirst })
    if (isFirst) store.state.setMeta(META.firstMaintainedAt, now)
  })
  const purged = before === undefined ? 0 : await purgeAll(deps, isoInstant(before), now)
  if (before !== undefined) await forgetTexts(deps, now)
  if (!(await updateSearch(deps))) return
  await inBatches(signal, () =>
    store.transaction(() =>
      store.maintenance.prune({
        runsBefore: isoInstant(daysAgo(runsDays)),
        quietBefore: isoInstant(daysAgo(QUIET_DAYS)),
        minutesBefore: isoInstant(daysAgo(MINUTES_DAYS)),
        olderAnswersBefore: isoInstant(daysAgo(OLDER_ANSWERS_DAYS)),
        daysBefore: utcDay(daysAgo(YEAR_DAYS)),
        rejectsBefore: isoInstant(Math.max(before ?? 0, daysAgo(runsDays))),
        chosen: JSON.parse(store.state.meta(META.chosenResources) ?? JSON.stringify(RESOURCE_NAMES)),
        unnamedBefore: store.dueClock.after(-UNNAMED_DAYS * DAY_MS),
        limit: BATCH_ROWS,
        onPurged: () => store.purger.notePurged(now),
      }),
    ),
  )
  if (signal.aborted) return
  const removed = await tryToRemoveOldCopies(deps, before)
  await removePurgedRemains(deps)
  if (signal.aborted) return
  store.maintenance.optimize()
  await store.transaction(() => store.state.setMeta(META.maintainedAt, isoInstant(clock.now())))
  const write = purged + removed > 0 ? log.info : log.debug
  write('Maintenance finished', {
    rows: purged,
    bytes: fileBytes(`${store.db.name}-wal`),
    duration_ms: Math.round(clock.elapsed() - began),
  })
}

/**
 * Removes the remains of purged content from the database's files. Remains in the `-wal` stay while a reader's
 * transaction needs that file.
 */
export async function removePurgedRemains({ store, clock, log, signal }: MaintainDeps): Promise<void> {
  const rebuild = dueRebuild({ store, clock })
  await store.purger.clean(rebuild === 'now' ? { rebuild: true, signal } : { rebuild: false })
  const { inLog, inFile, bytes } = store.purger.remains()
  const path = store.db.name
  const inWal = inLog ? 'a program reads an older state of the database' : undefined
  await reportRemains({ store, log }, { place: 'wal', path: `${path}-wal`, reason: inWal })
  // `rebuildLarge` reports on a file that it rebuilds.
  if (inFile && rebuild !== 'now' && bytes <= REBUILT_UP_TO_BYTES) return
  const reason = rebuild === 'now' ? REBUILD_FAILED : TOO_LARGE
  await reportRemains({ store, log }, { place: 'free space', path, reason: inFile ? reason : undefined })
}

const REBUILD_FAILED =
  'the rebuild failed: another program may hold the write lock of the database, the disk may be full, or a limit on memory or file sizes is too low'
const TOO_LARGE = `the file is larger than ${REBUILT_UP_TO_BYTES / 1024 ** 3} GiB and is not rebuilt, since a rebuild blocks all writes`

/** The rebuild that is due for the database file. `alone` may only run while no session or backfill reads the API. */
export function dueRebuild({ store, clock }: Pick<MaintainDeps, 'store' | 'clock'>): Rebuild {
  const remains = store.purger.remains()
  if (!remains.inFile) return 'none'
  const triedAt = instantOf(store.state.meta(META.rebuildTriedAt))
  return rebuildFor({ bytes: remains.bytes, triedAt, now: clock.now() })
}

/** Free space needed per byte of the database: the rebuilt file is written to a temporary file and then to the WAL. */
const SPACE_FACTOR = 2.1

export interface RebuildOptions {
  /**
   * Called before a rebuild begins. This callback may still write; afterwards no write is possible until the rebuild
   * ends.
   */
  onStart?: () => Promise<void>
  freeBytes?: FreeBytes
}

/**
 * Rebuilds a large database file if that is due. Call it when nothing else is in progress, since a rebuild blocks all
 * writes. When the signal ends the rebuild, or the disk lacks space, the file stays as it is. The next attempt is a
 * week later.
 */
export async function rebuildLarge(
  { store, clock, log, signal }: MaintainDeps,
  { onStart, freeBytes = freeOnSlowDisk }: RebuildOptions = {},
): Promise<void> {
  if (dueRebuild({ store, clock }) !== 'alone') return
  const began = clock.elapsed()
  const { bytes } = store.purger.remains()
  await store.transaction(() => store.state.setMeta(META.rebuildTriedAt, isoInstant(clock.now())))
  const isRoomy = (await freeBytes(dirname(store.db.name))) >= bytes * SPACE_FACTOR
  if (isRoomy) {
    log.info('Rebuilding the database file to remove purged content; until it ends nothing is written', {
      path: store.db.name,
      bytes,
    })
    await onStart?.()
  }
  const rebuilt = await store.purger.clean(isRoomy ? { rebuild: true, signal } : { rebuild: false })
  const path = store.db.name
  const fields = { path, duration_ms: Math.round(clock.elapsed() - began), bytes }
  const reason = failureOf({ isRoomy, isStopped: signal.aborted })
  await noteRemains(store, 'free space', rebuilt ? [] : [{ path, reason }])
  if (rebuilt) log.info('The database file was rebuilt, and holds no remains of purged content', fields)
  else
    log.warn('The database file could not be rebuilt; its free space may hold remains of purged content', {
      ...fields,
      reason,
    })
}

function failureOf({ isRoomy, isStopped }: { isRoomy: boolean; isStopped: boolean }): string {
  if (!isRoomy)
    return `a rebuild needs free space of ${SPACE_FACTOR} times the size of the database on the disk`
  return isStopped
    ? 'parley was stopped during the rebuild; the next attempt follows a week later'
    : REBUILD_FAILED
}

async function tryToRemoveOldCopies(deps: MaintainDeps, before: number | undefined): Promise<number> {
  const { clock, log, signal } = deps
  try {
    return await removeOldCopies(deps, { now: clock.now(), before })
  } catch (error) {
    if (!signal.aborted) log.warn('Old copies of the warehouse could not be checked', { error })
    return 0
  }
}

/** Makes the purge of each outdated full-text index due. `updateSearch` runs it. */
async function forgetTexts({ store }: MaintainDeps, now: string): Promise<void> {
  await store.transaction(() => {
    if (createSearchIndices(store).forget()) store.purger.noteRemains(now)
  })
}

/**
 * Builds the full-text indices and runs their purges, also purges that an earlier process began. Drops the indices when
 * the search is switched off. Returns false when the signal ended the work.
 */
async function updateSearch({ store, clock, settings, signal }: MaintainDeps): Promise<boolean> {
  const isWanted = settings.search.enabled
  // Indices that do not exist yet are built once history is loaded.
  if (isWanted && !createSearchIndices(store).exists()) return true
  const { complete } = await buildSearch({ store, clock, isWanted, signal, ...SEARCH_BUILD_PACE })
  return complete
}

async function purgeAll({ store, log, signal }: MaintainDeps, before: string, now: string): Promise<number> {
  let purged = 0
  const unknown = new Set<string>()
  const onUnknown = (table: string) => unknown.add(table)
  await inBatches(signal, async () => {
    const batch = await store.transaction(() =>
      store.purger.purge({ before, limit: BATCH_ROWS, now, onUnknown }),
    )
    purged += batch.purged
    return batch.more
  })
  for (const table of unknown)
    log.warn('Deleted rows of a table could not be purged', {
      table,
      path: store.db.name,
      reason: 'another version of parley created the table, and this one does not know its columns',
    })
  return purged
}

/** Repeats the work until it returns false or the signal is aborted. */
async function inBatches(signal: AbortSignal, work: () => Promise<boolean>): Promise<void> {
  while (!signal.aborted && (await work()));
}
