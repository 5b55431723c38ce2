import { clean, type Due, dueNow, type MaintainDeps, maintain, rebuildNow } from '../retention/maintain.ts'

export interface Surroundings {
  /** The API's clock, in ms since the epoch; undefined before the first answer. */
  serverTime(): number | undefined
  /** Ends the shift: a large database is written anew before the next. */
  endShift(): void
}

/** A timer does not run while the machine sleeps, so the clock is looked at, and not waited for. */
const LOOK_MS = 1000
/** After a failure, as on a disk that is full, and while a reader keeps the log. */
const AGAIN_MS = 10 * 60_000
/** An API that has not answered for so long keeps the maintenance waiting for long. */
const PATIENCE_MS = 3_600_000

/** Does the maintenance each night, and at once where a night was missed; until the signal. */
export async function maintainNightly(
  deps: MaintainDeps,
  { serverTime, endShift }: Surroundings,
): Promise<void> {
  const { clock, log, signal } = deps
  const warn = createWarning(deps)
  const work: Readonly<Record<Due, () => Promise<void>>> = {
    maintenance: () => maintain(deps),
    cleaning: () => clean(deps),
    nothing: async () => undefined,
    apart: async () => warn('apart'),
    unknown: async () => warn('unknown'),
  }
  while (!signal.aborted) {
    let waitMs = LOOK_MS
    try {
      const due = dueNow(deps, serverTime())
      await work[due]()
      if (due === 'cleaning' || due === 'maintenance') waitMs = AGAIN_MS
      if (rebuildNow(deps) === 'on-disk') endShift()
    } catch (error) {
      log.warn('A duty of the daemon has failed; it is tried again in ten minutes', { error })
      waitMs = AGAIN_MS
    }
    await clock.sleep(waitMs, signal)
  }
}

/** Once, or the log would repeat it with every look. */
function createWarning({ clock, log }: MaintainDeps): (due: 'apart' | 'unknown') => void {
  const began = clock.elapsed()
  let isTold = false
  return due => {
    if (isTold || (due === 'unknown' && clock.elapsed() - began < PATIENCE_MS)) return
    isTold = true
    const reason =
      due === 'apart'
        ? 'the clock of this machine differs from that of the API by more than a day'
        : 'the API has not answered, so that this machine’s clock cannot be checked'
    log.warn('Maintenance is due and waits: nothing is erased while the clock may be wrong', { reason })
  }
}
