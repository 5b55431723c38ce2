import {
  clean,
  dueMaintenance,
  isMaintenanceDue,
  type MaintainDeps,
  maintain,
  rebuildLarge,
  warnOfClock,
} from '../../retention/maintain.ts'

/** Limits maintenance, so that an hourly backfill ends in time even when there is much to purge. */
const LIMIT_MS = 60_000

/**
 * The last step of a backfill: nightly maintenance that is due, for installations without a daemon. It stops after a
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
    if (due === 'cleaning') await clean({ ...deps, signal })
    // The time limit does not apply: a rebuild runs at most once a week, and a partial rebuild has no effect.
    await rebuildLarge(deps)
  } catch (error) {
    log.warn('Maintenance after the backfill failed; the next run tries again', { error })
  } finally {
    over.abort()
    await watching
  }
}
