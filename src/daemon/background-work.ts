import type { App } from '../app/app.ts'
import { createReportUpdate } from '../app/report-update.ts'
import { type Clock, SECOND_MS, untilNext } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import type { ApiSettings, Environment } from '../config/loaded-settings.ts'
import { isMaintenanceDue } from '../retention/maintain.ts'
import type { ReportConfig } from '../store/reporting/report-settings.ts'
import { maintainNightly } from './nightly.ts'
import { publishRegularly } from './publish-regularly.ts'
import { maintainSearch, type SearchDeps } from './search-maintenance.ts'
import { makeSnapshots } from './snapshots.ts'

export interface BackgroundWorkDeps {
  app: Pick<App, 'clock' | 'store'>
  settings: Pick<ApiSettings, 'database' | 'proxies' | 'publish' | 'retention' | 'search' | 'snapshot'> &
    SearchDeps['settings'] &
    ReportConfig
  log: Log
  signal: AbortSignal
  /** The environment of this process, and the version of parley. */
  env: Environment
  version: string
  /** The API's clock in ms since the epoch; undefined before the first response. */
  serverTime(): number | undefined
  /** Ends the session. Requests of other processes are handled before the next session. */
  endSession(): void
}

const LISTEN_MS = 5 * SECOND_MS
const REPORTS_MS = 30 * SECOND_MS

/**
 * Does the work of a session next to reading the API: maintenance, snapshots, publications, full-text indices, the tables
 * for reports, and requests of other processes (`sync_requests`). Resolves after the signal, when all of it has ended.
 */
export async function workInBackground({
  app,
  settings,
  signal,
  log,
  env,
  version,
  serverTime,
  endSession,
}: BackgroundWorkDeps): Promise<void> {
  const { clock, store } = app
  /**
   * Ends the session when another process, such as `parley resync`, has written to `sync_requests`. Such requests
   * are handled only between two sessions.
   */
  const listen = async () => {
    if (store.requests.changedByOthers() && store.requests.open().length > 0) endSession()
  }
  /** Logs a failure, such as a full disk. The work runs again when it is next due. */
  const loggingFailures = (work: () => Promise<unknown>) => async () => {
    try {
      await work()
    } catch (error) {
      log.warn('Background work failed; it is tried again when it is next due', { error })
    }
  }
  const duties = [
    every(clock, LISTEN_MS, signal, loggingFailures(listen)),
    maintainNightly({ store, clock, log, settings, signal }, { serverTime, endSession }),
    makeSnapshots({
      store,
      clock,
      log,
      settings,
      signal,
      isMaintenanceDue: () => isMaintenanceDue({ store, clock }),
    }),
    publishRegularly({ store, clock, log, settings, env, version, signal }),
    maintainSearch({ store, clock, log, settings, signal }),
    every(clock, REPORTS_MS, signal, loggingFailures(createReportUpdate({ store, log }, settings))),
  ]
  await Promise.all(
    duties.map(duty =>
      duty.catch(error => log.warn('Background work ended until the next session', { error })),
    ),
  )
}

async function every(
  clock: Clock,
  ms: number,
  signal: AbortSignal,
  work: () => Promise<unknown>,
): Promise<void> {
  for (;;) {
    await clock.sleep(untilNext(ms, clock.now()), signal)
    if (signal.aborted) return
    await work()
  }
}
