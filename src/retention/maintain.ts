import { dirname } from 'node:path'
import { type Clock, isoInstant } from '../clock.ts'
import type { Settings } from '../config.ts'
import type { Log } from '../log.ts'
import type { ownersOf } from '../store/copy-owners.ts'
import { createSearch } from '../store/search.ts'
import { type BuildOptions, buildSearch } from '../store/search-build.ts'
import { type FreeBytes, freeOnDisk } from '../store/snapshot-target.ts'
import { META } from '../store/state.ts'
import type { Store } from '../store/store.ts'
import { CALENDAR, nextOccurrence } from './calendar.ts'
import { type ClockTrust, DAY_MS, isMissed, type Rebuild, rebuildOf, trustIn } from './decisions.ts'
import { removeOldCopies } from './old-copies.ts'

/**
 * Erases what was withdrawn long enough ago, from the database's files and from every copy that parley made; prunes
 * what was noted of runs; and tidies the file. Each step leaves a note in the database before it begins to matter, so
 * that a process that is killed between two of them loses none: the next maintenance goes on from the notes.
 */

export interface MaintainDeps {
  store: Store
  clock: Clock
  log: Log
  settings: Pick<Settings, 'database' | 'retention' | 'search' | 'snapshot'>
  signal: AbortSignal
  owners?: typeof ownersOf
}

/** Rows in one transaction, so that the reading goes on between two of them. */
const LOT = 200
/** Runs that had nothing to tell are of no use for longer. */
const QUIET_DAYS = 1

/** Small enough that the reading does not notice it, together with what FTS5 writes out at each one's end. */
export const SEARCH_PIECE: Pick<BuildOptions, 'pieceMs' | 'share'> = { pieceMs: 5, share: 0.25 }

/** What is to be done now; `apart` and `unknown`: maintenance is due and waits for clocks that agree. */
export type Due = 'maintenance' | 'cleaning' | 'nothing' | Exclude<ClockTrust, 'agreed'>

/** @param server the API's clock, in ms since the epoch; undefined before it has told it */
export function dueNow(
  { store, clock }: Pick<MaintainDeps, 'store' | 'clock'>,
  server: number | undefined,
): Due {
  const machine = clock.now()
  const noted = store.state.meta(META.maintainedAt)
  const doneAt = noted === undefined ? undefined : Date.parse(noted)
  const next = (after: number) => nextOccurrence(CALENDAR.maintenance, after)
  if (!isMissed(doneAt, machine, next)) return store.erasure.remains().inLog ? 'cleaning' : 'nothing'
  const trust = trustIn({ machine, server })
  return trust === 'agreed' ? 'maintenance' : trust
}

/** Only while `dueNow` says so: it believes this machine's clock. */
export async function maintain(deps: MaintainDeps): Promise<void> {
  const { store, clock, log, settings, signal } = deps
  const began = clock.elapsed()
  const now = isoInstant(clock.now())
  const daysAgo = (days: number) => clock.now() - days * DAY_MS
  const { withdrawnDays, runsDays } = settings.retention
  const before = withdrawnDays === 'never' ? undefined : daysAgo(withdrawnDays)
  await store.transaction(() => {
    // Before the first maintenance nothing has told whether the clock was right.
    const isFirst =
      store.state.meta(META.firstMaintainedAt) === undefined &&
      store.state.meta(META.maintainedAt) === undefined
    store.erasure.recount(now, { all: isFirst })
    if (isFirst) store.state.setMeta(META.firstMaintainedAt, now)
  })
  const erased = before === undefined ? 0 : await eraseAll(deps, isoInstant(before), now)
  if (!(await leaveSearch(deps))) return
  await inLots(signal, () =>
    store.transaction(() =>
      store.maintenance.prune({
        runsBefore: isoInstant(daysAgo(runsDays)),
        quietBefore: isoInstant(daysAgo(QUIET_DAYS)),
        rejectsBefore: isoInstant(Math.max(before ?? 0, daysAgo(runsDays))),
        limit: LOT,
        onErased: () => store.erasure.noteErased(now),
      }),
    ),
  )
  if (signal.aborted) return
  const removed = await withoutOldCopies(deps, before)
  await clean(deps)
  if (signal.aborted) return
  store.maintenance.optimize()
  const { wal } = await store.maintenance.checkpoint()
  await store.transaction(() => store.state.setMeta(META.maintainedAt, isoInstant(clock.now())))
  const say = erased + removed > 0 ? log.info : log.debug
  say('Maintenance is done', {
    rows: erased,
    bytes: wal,
    duration_ms: Math.round(clock.elapsed() - began),
  })
}

/** What SQLite's own files keep of what was erased. A reader's snapshot keeps it in the log until it ends. */
export async function clean({ store, clock }: MaintainDeps): Promise<void> {
  const rebuild = rebuildNow({ store, clock })
  await store.erasure.clean({ rebuild: rebuild === 'in-memory' ? rebuild : 'none' })
}

/** How the file is to be written anew by now. `on-disk` is only for when nothing else is under way. */
export function rebuildNow({ store, clock }: Pick<MaintainDeps, 'store' | 'clock'>): Rebuild {
  const { inFile, bytes } = store.erasure.remains()
  const noted = store.state.meta(META.rebuildTriedAt)
  const triedAt = noted === undefined ? undefined : Date.parse(noted)
  return rebuildOf({ bytes, holdsPieces: inFile, triedAt, now: clock.now() })
}

/** So much free space for each byte of the database: its new form in a temporary file, and once more in the WAL. */
const SPACE_FACTOR = 2.1

/**
 * Writes a large file anew where that is due. Nothing else may be under way: nobody can write meanwhile. Ended by the
 * signal, or without the space, the file stays as it was and the next week's try is the next.
 */
export async function rebuildLarge(
  { store, clock, log, signal }: MaintainDeps,
  freeBytes: FreeBytes = freeOnDisk,
): Promise<void> {
  if (rebuildNow({ store, clock }) !== 'on-disk') return
  const began = clock.elapsed()
  const { bytes } = store.erasure.remains()
  await store.transaction(() => store.state.setMeta(META.rebuildTriedAt, isoInstant(clock.now())))
  const isRoomy = (await freeBytes(dirname(store.db.name))) >= bytes * SPACE_FACTOR
  const { rebuilt } = await store.erasure.clean(
    isRoomy ? { rebuild: 'on-disk', signal } : { rebuild: 'none' },
  )
  const duration = { duration_ms: Math.round(clock.elapsed() - began), bytes }
  if (rebuilt)
    log.info('The database was written anew, so that nothing of what was erased is left in it', duration)
  else if (!signal.aborted) {
    const reason = isRoomy
      ? 'another program kept it'
      : `it needs ${SPACE_FACTOR} times its size of free space`
    log.warn('The database could not be written anew: free space in it may hold pieces of what was erased', {
      ...duration,
      reason,
    })
  }
}

async function withoutOldCopies(deps: MaintainDeps, before: number | undefined): Promise<number> {
  const { clock, log, signal } = deps
  try {
    return await removeOldCopies(deps, { now: clock.now(), before })
  } catch (error) {
    if (!signal.aborted) log.warn('Old copies of the warehouse could not be looked at', { error })
    return 0
  }
}

/** What was erased, now or before an earlier process ended, leaves the full-text indices for good. */
async function leaveSearch({ store, clock, settings, signal }: MaintainDeps): Promise<boolean> {
  const isWanted = settings.search.enabled
  // The indices that are wanted and not begun are made once everything was read.
  if (isWanted && !createSearch(store).isBegun()) return true
  const { complete } = await buildSearch({ store, clock, isWanted, signal, ...SEARCH_PIECE })
  return complete
}

async function eraseAll({ store, signal }: MaintainDeps, before: string, now: string): Promise<number> {
  const search = createSearch(store)
  let erased = 0
  await inLots(signal, async () => {
    const lot = await store.transaction(() => {
      const done = store.erasure.erase({ before, limit: LOT, now })
      if (done.erased > 0) search.forget()
      return done
    })
    erased += lot.erased
    return lot.more
  })
  return erased
}

/** Repeats the work until it says that nothing more is to be done. */
async function inLots(signal: AbortSignal, work: () => Promise<boolean>): Promise<void> {
  while (!signal.aborted && (await work()));
}
