import { type Clock, isoInstant } from '../clock.ts'
import type { ApiSettings } from '../config.ts'
import type { Log } from '../log.ts'
import { removeCopiesBefore } from '../store/backup.ts'
import { createSearch } from '../store/search.ts'
import { buildSearch } from '../store/search-build.ts'
import { META } from '../store/state.ts'
import type { Store } from '../store/store.ts'
import { SEARCH_PIECE } from './search-keeping.ts'

export interface MaintainDeps {
  store: Store
  clock: Clock
  log: Log
  retention: ApiSettings['retention']
  search: ApiSettings['search']
  signal: AbortSignal
}

const DAY_MS = 86_400_000
/** Rows in one transaction, so that the reading goes on between two of them. */
const LOT = 200
/** Runs that had nothing to tell are of no use for longer. */
const QUIET_DAYS = 1
/** A file up to this size is written anew after an erasure, so that no copy of what was erased is left in it. */
const REBUILD_UP_TO_BYTES = 32 * 1024 * 1024
const CLEAN_AGAIN_MS = 60_000

/** Erases what was withdrawn long enough ago, prunes what was noted of runs, and tidies the file. */
export async function maintain(deps: MaintainDeps): Promise<void> {
  const { store, clock, log, retention, signal } = deps
  const daysAgo = (days: number) => isoInstant(clock.now() - days * DAY_MS)
  const began = clock.elapsed()
  const { withdrawnDays, runsDays } = retention
  const erased = withdrawnDays === 'never' ? 0 : await eraseAll(store, daysAgo(withdrawnDays), signal)
  await leaveSearch(deps)
  const clean = async (upTo: number) => (await store.erasure.clean({ rebuildUpToBytes: upTo })).logCleared
  let isClean = erased === 0 || (await clean(REBUILD_UP_TO_BYTES))
  // The copy that an upgrade has made holds what was erased since.
  if (withdrawnDays !== 'never') await removeOldCopies(deps, clock.now() - withdrawnDays * DAY_MS)
  await inLots(signal, () =>
    store.transaction(() =>
      store.maintenance.prune({
        runsBefore: daysAgo(runsDays),
        quietBefore: daysAgo(QUIET_DAYS),
        rejectsBefore: daysAgo(withdrawnDays === 'never' ? runsDays : Math.min(runsDays, withdrawnDays)),
        limit: LOT,
      }),
    ),
  )
  if (signal.aborted) return
  store.maintenance.optimize()
  const { wal } = await store.maintenance.checkpoint()
  await store.transaction(() => store.state.setMeta(META.maintainedAt, isoInstant(clock.now())))
  log.info('Maintenance is done', {
    rows: erased,
    bytes: wal,
    duration_ms: Math.round(clock.elapsed() - began),
  })
  // A reader's snapshot keeps what was erased in the log until it ends.
  while (!isClean && !signal.aborted) {
    await clock.sleep(CLEAN_AGAIN_MS, signal)
    isClean = await clean(0)
  }
}

async function removeOldCopies({ store, log }: MaintainDeps, before: number): Promise<void> {
  try {
    await removeCopiesBefore(store.db.name, before)
  } catch (error) {
    log.warn('The copy that an upgrade has made could not be removed', { error })
  }
}

/**
 * What was erased, now or before an earlier process ended, leaves the full-text indices for good. Those that are not
 * wanted are being dropped meanwhile.
 */
async function leaveSearch({ store, clock, search, signal }: MaintainDeps): Promise<void> {
  const isWanted = search.enabled
  if (isWanted && createSearch(store).isBegun())
    await buildSearch({ store, clock, isWanted, signal, ...SEARCH_PIECE })
}

async function eraseAll(store: Store, before: string, signal: AbortSignal): Promise<number> {
  const search = createSearch(store)
  let erased = 0
  await inLots(signal, async () => {
    const lot = await store.transaction(() => {
      const done = store.erasure.erase({ before, limit: LOT })
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
