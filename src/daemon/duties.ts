import type { App } from '../app.ts'
import type { Clock } from '../clock.ts'
import type { ApiSettings } from '../config.ts'
import type { Log } from '../log.ts'
import type { Store } from '../store/store.ts'
import { CALENDAR, nextOccurrence } from './calendar.ts'
import { MAINTAINED_AT, maintain } from './maintain.ts'

/** What is done beside the reading while a shift lasts. */
export interface Duties {
  /** Resolves when all of them have ended, after the signal. */
  ended: Promise<void>
}

export interface DutiesDeps {
  app: App
  settings: ApiSettings
  log: Log
  signal: AbortSignal
  /** Ends the shift, so that what was asked for is done before the next. */
  endShift(): void
}

const KEEP_LEARNED_MS = 60_000
const LISTEN_MS = 1000

export function startDuties({ app, settings, signal, log, endShift }: DutiesDeps): Duties {
  const { clock, store } = app
  const tidy = () => maintain({ store, clock, log, retention: settings.retention, signal })
  /** Another process has asked for something: it is done between two shifts, when nothing is under way. */
  const listen = async () => {
    if (store.requests.changedByOthers() && store.requests.open().length > 0) endShift()
  }
  const duties = [
    every(clock, KEEP_LEARNED_MS, signal, app.keepLearned),
    every(clock, LISTEN_MS, signal, listen),
    nightly(clock, store, signal, tidy),
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

/** By the calendar; at once where the last night was missed. */
async function nightly(
  clock: Clock,
  { state }: Store,
  signal: AbortSignal,
  work: () => Promise<void>,
): Promise<void> {
  const done = state.meta(MAINTAINED_AT)
  const last = done === undefined ? clock.now() : Date.parse(done)
  if (nextOccurrence(CALENDAR.maintenance, last) <= clock.now()) await work()
  while (!signal.aborted) {
    await clock.sleep(nextOccurrence(CALENDAR.maintenance, clock.now()) - clock.now(), signal)
    if (!signal.aborted) await work()
  }
}
