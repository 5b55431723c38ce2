import { clean, dueNow, type MaintainDeps, maintain, rebuildLarge } from '../retention/maintain.ts'

/** A backfill that is run each hour should not end late because of the one in which a great deal is to be erased. */
const LONGEST_MS = 60_000

/**
 * The last step of a backfill: the maintenance of a night that has passed since the last one, for whoever runs no
 * daemon. It ends after a minute, and the next run goes on with it. What fails is a warning: everything was read.
 * @param server the API's clock, in ms since the epoch
 */
export async function maintainAfterBackfill(deps: MaintainDeps, server: number | undefined): Promise<void> {
  const { clock, log } = deps
  const [over, tooLong] = [new AbortController(), new AbortController()]
  const signal = AbortSignal.any([deps.signal, tooLong.signal])
  const watching = clock.sleep(LONGEST_MS, over.signal).then(() => tooLong.abort())
  try {
    const due = dueNow(deps, server)
    if (due === 'apart')
      log.warn('Nothing was erased: the clock of this machine differs from that of the API')
    if (due === 'maintenance') await maintain({ ...deps, signal })
    if (due === 'cleaning') await clean({ ...deps, signal })
    // Once a week at most, and of no use when it is cut short.
    await rebuildLarge(deps)
  } catch (error) {
    log.warn('Maintenance after the backfill has failed; the next run tries again', { error })
  } finally {
    over.abort()
    await watching
  }
}
