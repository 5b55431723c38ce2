import type { App } from '../app.ts'
import { type Clock, isoInstant } from '../clock.ts'
import type { ApiSettings } from '../config.ts'
import type { Log } from '../log.ts'
import { META } from '../store/state.ts'
import type { Store } from '../store/store.ts'
import { CALENDAR, nextOccurrence } from './calendar.ts'
import { maintain } from './maintain.ts'
import { type KeepingDeps, keepSearch } from './search-keeping.ts'
import { makeSnapshots, removeOldSnapshots } from './snapshots.ts'

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
  /** Ends the shift, so that what was asked for is done before the next. */
  endShift(): void
}

const KEEP_LEARNED_MS = 60_000
const LISTEN_MS = 1000

export function startDuties({ app, settings, signal, log, endShift }: DutiesDeps): Duties {
  const { clock, store } = app
  const tidy = async () => {
    await removeOldSnapshots({ clock, log, settings })
    const { retention, search } = settings
    await maintain({ store, clock, log, retention, search, signal })
  }
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
    followClock(),
    every(clock, LISTEN_MS, signal, followClock),
    every(clock, KEEP_LEARNED_MS, signal, lasting(app.keepLearned)),
    every(clock, LISTEN_MS, signal, listen),
    nightly(clock, store, signal, lasting(tidy)),
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

/** Less than this is no jump, but a clock that is kept right. */
const JUMP_MS = 5000

/** What is due at an instant of this machine's clock must not wait for it longer because it was set back. */
function createClockFollower({ clock, store }: DutiesDeps['app']): () => Promise<void> {
  const noted = store.state.meta(META.clock)
  /** What the clock would say by now, had it gone on evenly. */
  let expected = noted === undefined ? clock.now() : Date.parse(noted)
  let measuredAt = clock.elapsed()
  return async () => {
    const behindMs = expected + clock.elapsed() - measuredAt - clock.now()
    expected = clock.now()
    measuredAt = clock.elapsed()
    if (behindMs < JUMP_MS) return
    await store.transaction(() => {
      for (const noted of [store.tasks, store.ledger]) noted.moveBack(behindMs, isoInstant(clock.now()))
    })
  }
}

/** By the calendar; at once where the last night was missed. */
async function nightly(
  clock: Clock,
  { state }: Store,
  signal: AbortSignal,
  work: () => Promise<void>,
): Promise<void> {
  const done = state.meta(META.maintainedAt)
  const last = done === undefined ? clock.now() : Date.parse(done)
  if (nextOccurrence(CALENDAR.maintenance, last) <= clock.now()) await work()
  while (!signal.aborted) {
    await clock.sleep(nextOccurrence(CALENDAR.maintenance, clock.now()) - clock.now(), signal)
    if (!signal.aborted) await work()
  }
}
