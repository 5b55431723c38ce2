import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../base/clock.ts'
import {
  type Due,
  dueMaintenance,
  dueRebuild,
  type MaintainDeps,
  maintain,
  removePurgedRemains,
  warnOfClock,
} from '../retention/maintain.ts'

export interface SessionControl {
  /** The API's clock in ms since the epoch; undefined before the first response. */
  serverTime(): number | undefined
  /** Ends the session. A large database is rebuilt before the next session. */
  endSession(): void
}

/** How often the clock is checked. One long timer would be late after the machine was suspended. */
const LOOK_MS = MINUTE_MS
/** The same before the API's first answer, which tells the API's time. */
const LOOK_FIRST_MS = SECOND_MS
/**
 * The wait after maintenance or cleaning, with or without an error. Either may leave work: the disk may be full, or a
 * reader may need the `-wal`.
 */
const RETRY_MS = 10 * MINUTE_MS
const WAIT_MS: Readonly<Record<Due, number>> = {
  maintenance: RETRY_MS,
  cleaning: RETRY_MS,
  nothing: LOOK_MS,
  'clocks-differ': LOOK_MS,
  unknown: LOOK_FIRST_MS,
}
/** How long to wait for the API's clock before a warning is logged. */
const PATIENCE_MS = HOUR_MS

/** Runs maintenance every night until the signal. After a missed night it runs at once. */
export async function maintainNightly(
  deps: MaintainDeps,
  { serverTime, endSession }: SessionControl,
): Promise<void> {
  const { clock, log, signal } = deps
  const warn = createDelayWarning(deps)
  const work: Readonly<Record<Due, () => Promise<void>>> = {
    maintenance: () => maintain(deps),
    cleaning: () => removePurgedRemains(deps),
    nothing: async () => undefined,
    'clocks-differ': async () => warn('clocks-differ'),
    unknown: async () => warn('unknown'),
  }
  while (!signal.aborted) {
    let waitMs = LOOK_MS
    try {
      const due = dueMaintenance(deps, serverTime())
      await work[due]()
      waitMs = WAIT_MS[due]
      if (dueRebuild(deps) === 'alone') endSession()
    } catch (error) {
      log.warn('Maintenance failed; it is tried again in ten minutes', { error })
      waitMs = RETRY_MS
    }
    await clock.sleep(waitMs, signal)
  }
}

/** Returns a function that logs why maintenance is delayed, once per session. */
function createDelayWarning({ clock, log }: MaintainDeps): (due: 'clocks-differ' | 'unknown') => void {
  const began = clock.elapsed()
  let isLogged = false
  return due => {
    if (isLogged || (due === 'unknown' && clock.elapsed() - began < PATIENCE_MS)) return
    isLogged = true
    warnOfClock(log, due)
  }
}
