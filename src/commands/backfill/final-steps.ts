import type { App } from '../../app/app.ts'
import type { Log } from '../../base/log.ts'
import type { Settings } from '../../config/loaded-settings.ts'
import {
  dueMaintenance,
  isMaintenanceDue,
  type MaintainDeps,
  maintain,
  rebuildLarge,
  removePurgedRemains,
  warnOfClock,
} from '../../retention/maintain.ts'
import { buildSearch } from '../../store/search/indices.ts'
import type { LiveArea } from '../../terminal/live-area.ts'

/** What a backfill does after it has read everything. */

export interface SearchUpdate {
  app: Pick<App, 'clock' | 'store'>
  settings: Pick<Settings, 'search'>
  log: Log
  /** Shows the progress of the build; undefined when standard error is not a terminal. */
  area: Pick<LiveArea, 'draw' | 'clear'> | undefined
  signal: AbortSignal
}

/** Work is done in batches that take this many ms. The signal is checked between two batches. */
const BATCH_MS = 200

/**
 * A final step of a backfill: adds new rows to the full-text indices, or drops the indices when `search.enabled` is
 * false. Returns true when no work is left.
 */
export async function updateSearchIndices({
  app,
  settings,
  log,
  area,
  signal,
}: SearchUpdate): Promise<boolean> {
  const { clock, store } = app
  const began = clock.elapsed()
  const isWanted = settings.search.enabled
  const { complete, changed } = await buildSearch({
    store,
    clock,
    isWanted,
    pieceMs: BATCH_MS,
    share: 1,
    signal,
    onProgress: ({ done, total }) =>
      area?.draw([`Full-text indices: ${total === 0 ? 100 : Math.floor((100 * done) / total)} %`]),
  })
  area?.clear()
  if (!complete) log.warn('Full-text indices are not complete; the next run continues them')
  else if (changed) {
    const said = isWanted ? 'Full-text indices are up to date' : 'Dropped the full-text indices'
    log.info(said, { duration_ms: Math.round(clock.elapsed() - began) })
  }
  return complete
}

/** Limits maintenance, so that an hourly backfill ends in time even when there is much to purge. */
const LIMIT_MS = 60_000

/**
 * Nightly maintenance that is due, for installations without a daemon. It stops after a
 * minute, and the next run continues it. A failure is only a warning, since the backfill itself succeeded.
 * @param server the time by the API's clock, in ms since the epoch
 */
export async function maintainAfterBackfill(deps: MaintainDeps, server: number | undefined): Promise<void> {
  const { clock, log } = deps
  const [over, tooLong] = [new AbortController(), new AbortController()]
  const signal = AbortSignal.any([deps.signal, tooLong.signal])
  const watching = clock.sleep(LIMIT_MS, over.signal).then(() => tooLong.abort())
  try {
    const due = dueMaintenance(deps, server)
    if (due === 'clocks-differ' || due === 'unknown') warnOfClock(log, due)
    if (due === 'maintenance') await maintain({ ...deps, signal })
    if (tooLong.signal.aborted && !deps.signal.aborted && isMaintenanceDue(deps))
      log.warn('Maintenance is not complete; the next run continues it', {
        path: deps.store.db.name,
        reason: `it takes longer than ${LIMIT_MS / 1000} s`,
      })
    if (due === 'cleaning') await removePurgedRemains({ ...deps, signal })
    // The time limit does not apply: a rebuild runs at most once a week, and a partial rebuild has no effect.
    await rebuildLarge(deps)
  } catch (error) {
    log.warn('Maintenance after the backfill failed; the next run tries again', { error })
  } finally {
    over.abort()
    await watching
  }
}
