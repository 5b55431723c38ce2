import type { App } from '../app.ts'
import type { Clock } from '../clock.ts'
import type { ApiSettings } from '../config.ts'
import { createClockFollower, noteClock } from '../engine/clock-follower.ts'
import type { Log } from '../log.ts'
import { maintainNightly } from './nightly.ts'
import { type KeepingDeps, keepSearch } from './search-keeping.ts'
import { makeSnapshots } from './snapshots.ts'

/** What is done beside the reading while a shift lasts. */
export interface Duties {
  /** Resolves when all of them have ended, after the signal. */
  ended: Promise<void>
}

export interface DutiesDeps {
  app: Pick<App, 'clock' | 'store' | 'keepLearned'>
  settings: Pick<ApiSettings, 'database' | 'retention' | 'search' | 'snapshot'> & KeepingDeps['settings']
  log: Log
  signal: AbortSignal
  /** The API's clock, in ms since the epoch; undefined before the first answer. */
  serverTime(): number | undefined
  /** Ends the shift, so that what was asked for is done before the next. */
  endShift(): void
}

const KEEP_LEARNED_MS = 60_000
const LISTEN_MS = 1000

export function startDuties({ app, settings, signal, log, serverTime, endShift }: DutiesDeps): Duties {
  const { clock, store } = app
  /** Another process has asked for something: it is done between two shifts, when nothing is under way. */
  const listen = async () => {
    if (store.requests.changedByOthers() && store.requests.open().length > 0) endShift()
  }
  /** What fails, as on a disk that is full for a while, is done when it is due the next time. */
  const lasting = (work: () => Promise<unknown>) => async () => {
    try {
      await work()
    } catch (error) {
      log.warn('A duty of the daemon has failed; it is tried again when it is next due', { error })
    }
  }
  const followClock = createClockFollower(app)
  const duties = [
    followClock()
      .then(() => noteClock(app))
      // On a disk that is full no due time can be noted either.
      .catch(() => undefined),
    every(clock, LISTEN_MS, signal, followClock),
    every(clock, KEEP_LEARNED_MS, signal, lasting(app.keepLearned)),
    every(clock, LISTEN_MS, signal, listen),
    maintainNightly({ store, clock, log, settings, signal }, { serverTime, endShift }),
    makeSnapshots({ store, clock, log, settings, signal }),
    keepSearch({ store, clock, log, settings, signal }),
  ]
  const ended = Promise.all(
    duties.map(duty => duty.catch(error => log.warn('A duty of the daemon has ended', { error }))),
  )
  return { ended: ended.then(() => undefined) }
}

async function every(
  clock: Clock,
  ms: number,
  signal: AbortSignal,
  work: () => Promise<unknown>,
): Promise<void> {
  for (;;) {
    await clock.sleep(ms, signal)
    if (signal.aborted) return
    await work()
  }
}
