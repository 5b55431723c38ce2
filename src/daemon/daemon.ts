import { createReportSources, type ReportSources } from '../app/report-sources.ts'
import { startFields } from '../app/start-fields.ts'
import { type Clock, isoInstant, SECOND_MS } from '../base/clock.ts'
import {
  EXIT_STATUS,
  type ExitStatus,
  exitStatusOf,
  ParleyError,
  reasonOf,
  reasonWithHint,
} from '../base/errors.ts'
import type { Log } from '../base/log.ts'
import type { ApiSettings } from '../config/loaded-settings.ts'
import type { SettingKey } from '../config/settings.ts'
import { endedProblem } from '../health/problems.ts'
import type { HookWatch } from '../hooks/watch.ts'
import { REPORT_POLICY } from '../report/style.ts'
import { createMetrics, type Metrics } from '../server/metrics.ts'
import type { Nudge } from '../server/nudge.ts'
import { startStatusServer } from '../server/server.ts'
import { DATABASE_BUSY } from '../store/database/sqlite-errors.ts'
import { resolvedPath } from '../store/disk/location.ts'
import { otherHolders } from '../store/disk/lock-holders.ts'
import { refuseOtherWorkspaceAt } from '../store/file/open.ts'
import { noteWhileWaiting } from '../store/open-warehouse.ts'
import { reasonOfState } from '../store/status/processes.ts'
import { clearGates } from '../store/sync/gates.ts'
import { META } from '../store/sync/meta.ts'
import { chosenResources, runSession, type SessionParts, type SessionWork } from './daemon-session.ts'
import { startHookWatch } from './hook-watch.ts'
import { createLockKeeper } from './lock-keeper.ts'
import { createMetricSources } from './metric-sources.ts'
import { livenessProblem, readinessProblem } from './readiness.ts'
import { KEY_REFUSED, type SessionsBefore, sessionsUntil, type WaitBetweenSessions } from './recovery.ts'
import { changedSettings } from './settings-changes.ts'
import { type CurrentState, reportedState, runningState, stoppedState } from './state.ts'
import { createTargetCatalogue, type TargetCatalogueParts } from './target-catalogue.ts'
import { readsFor } from './webhook-reads.ts'

/**
 * The daemon: a sequence of sessions, until a signal stops it or an error cannot be recovered from.
 *
 * Between two sessions the daemon keeps only the database's lock, the status server and the watch for hooks. It opens
 * everything else again, so the next session uses a changed key, other settings or a repaired disk. The lock keeps a
 * backfill from starting while the daemon waits.
 *
 * The states are those of `DaemonState`: `running` during a session, `waiting` between a recoverable error and the next
 * session, `stopped` at the end. `recoveryFrom` decides between `waiting` and `stopped`.
 */

export interface DaemonParts extends SessionParts {
  settings: ApiSettings
  /** Reads the settings again. @throws StopError (exit status 78) */
  reload(): ApiSettings
  /** Registers a listener for requests to reload the settings. */
  onReload(listener: () => void): void
  createLog(settings: ApiSettings): Promise<Log>
}

/** Runs until `stop`. @throws the error that the daemon cannot recover from, usually a StopError */
export async function runDaemon(parts: DaemonParts): Promise<ExitStatus> {
  const { clock, serviceManager, stop } = parts
  const current: CurrentState = { settings: parts.settings, state: runningState(clock) }
  const reloads = createReloads(parts, current)
  let log = await parts.createLog(current.settings)
  const lock = createLockKeeper(clock)
  const sources = createReportSources({
    version: parts.version,
    clock,
    workspaceId: () => current.settings.api.workspaceId,
    databasePath: () => current.settings.database.path,
    hasReport: parts.settings.http.report,
    db: () => current.app?.store.db,
    blockedMs: () => blockedMs(current),
    daemon: () => reportedState(current),
  })
  let served: RunningServer | undefined
  let hooks: HookWatch | undefined
  const opened = new Set<string>()
  serviceManager.watchdog(() => stuck(current) === undefined)
  let before: SessionsBefore = {
    hasStarted: false,
    wasAnsweredBefore: false,
    isKeyTrusted: false,
    timesLost: 0,
  }
  try {
    // The lock comes before the server. When another daemon runs, this one fails at the lock and does not warn about
    // the taken port.
    lock.on(current.settings.database)
    served = await startServer(parts, current, sources, log)
    hooks = startHookWatch({ clock, log, env: parts.env, current, sources })
    const { settings, version, pid } = parts
    const resources = chosenResources(settings)
    log.info('The daemon starts', {
      ...startFields({ settings, version, pid, resources }),
      address: served.address ?? 'off',
    })
    while (!stop.aborted) {
      log = await parts.createLog(current.settings)
      const end = await runSession({
        parts,
        current,
        log,
        lock,
        opened,
        metrics: served.metrics,
        next: reloads.next(),
        before,
      })
      before = sessionsUntil(end)
      const { recovery } = end
      if (end.error === undefined && !stop.aborted) reloads.take(log)
      if (recovery.kind === 'end') throw end.error
      if (recovery.kind === 'continue') continue
      const reason = reasonOfState(current.state)
      log.error('The daemon waits and tries again', { reason, wait_ms: recovery.ms, error: end.error })
      const isKeyTrusted = await waitForNextSession(recovery, { parts, current, reloads, log })
      before = { ...before, isKeyTrusted: isKeyTrusted ?? before.isKeyTrusted }
      if (stop.aborted) noteStopWhileWaiting(parts, current, opened)
    }
    log.info(ENDS, { exit_status: EXIT_STATUS.done, reason: reasonOf(stop.reason) })
    serviceManager.stopping()
    return EXIT_STATUS.done
  } catch (error) {
    current.state = stoppedState(clock, error)
    serviceManager.stopping(reasonOf(error))
    if (NOT_RESTARTED.includes(exitStatusOf(error))) await hooks?.callAtEnd(endedProblem(current.state), stop)
    log.error(ENDS, { exit_status: exitStatusOf(error), reason: reasonOf(error) })
    throw error
  } finally {
    await hooks?.close()
    lock.release()
    await served?.close()
    await serviceManager.close()
  }
}

/**
 * Waits until the time is over, a reload is requested or the daemon is stopped. While a refused key is waited out, a
 * reload with the same key does not end the wait: the API would refuse the key again, and that ends the daemon.
 * @returns true when a person has replaced the refused key
 */
async function waitForNextSession(
  { code, ms }: WaitBetweenSessions,
  { parts, current, reloads, log }: Pick<SessionWork, 'parts' | 'current' | 'log'> & { reloads: Reloads },
): Promise<true | undefined> {
  const { clock, serviceManager, stop } = parts
  const waiting = new AbortController()
  const signal = AbortSignal.any([stop, waiting.signal])
  const { path } = current.settings.database
  const sleep =
    code === DATABASE_BUSY ? sleepWhileLocked(path, ms, { clock, signal }) : clock.sleep(ms, signal)
  const over = sleep.then(() => true)
  try {
    for (;;) {
      // systemd considers a reload unfinished until it gets `ready`. A reload may have begun the failed session too.
      serviceManager.ready(`waiting: ${reasonOfState(current.state)}`)
      const isOver = await Promise.race([over, reloads.requested().then(() => false)])
      if (stop.aborted) return undefined
      const refused = accessOf(current.settings)
      reloads.take(log)
      if (isOver || code !== KEY_REFUSED) return undefined
      if (accessOf(current.settings) !== refused) return true
    }
  } finally {
    waiting.abort()
  }
}

/** How often to look whether another program still has the database locked. */
const LOOK_MS = 5 * SECOND_MS

/** Sleeps for this time, or until no other program is known to hold the lock of the database. */
async function sleepWhileLocked(
  file: string,
  ms: number,
  { clock, signal }: { clock: Clock; signal: AbortSignal },
): Promise<void> {
  let left = ms
  do {
    await clock.sleep(LOOK_MS, signal)
    left -= LOOK_MS
  } while (left > 0 && !signal.aborted && otherHolders(file, 'writing').length > 0)
}

const ENDS = 'The daemon ends'

/** The systemd unit starts a daemon again after any exit status but these. */
const NOT_RESTARTED: readonly ExitStatus[] = [EXIT_STATUS.refused, EXIT_STATUS.settings]

/** The settings for which the API grants or refuses access. */
const accessOf = ({ api }: ApiSettings) => JSON.stringify([api.baseUrl, api.workspaceId, api.key])

function noteStopWhileWaiting(
  { clock }: DaemonParts,
  { settings }: CurrentState,
  opened: ReadonlySet<string>,
): void {
  const path = resolvedPath(settings.database.path)
  if (!opened.has(path)) return
  try {
    noteWhileWaiting(path, settings.api.workspaceId, (meta, db) => {
      meta.set(META.daemonState, JSON.stringify(stoppedState(clock)))
      // The gates are no longer the reason why nothing is read.
      clearGates(db)
    })
  } catch {
    // The disk may be full or the database missing, which may be why the daemon waits. The log reports the end.
  }
}

/** Settings that take effect only when the process starts. */
const NEEDS_RESTART: readonly SettingKey[] = [
  'http.listen',
  'http.token',
  'http.report',
  'http.catalogue_token',
  'http.nudge_secret',
]

type Reloads = ReturnType<typeof createReloads>

function createReloads(
  { settings: started, clock, reload, onReload, serviceManager }: DaemonParts,
  current: CurrentState,
) {
  let requested = new AbortController()
  onReload(() => {
    serviceManager.reloading()
    requested.abort()
  })
  return {
    /** Aborted when a reload is requested. */
    next: () => requested.signal,
    /** Resolves when a reload is requested. */
    requested: () =>
      new Promise<void>(resolve => {
        if (requested.signal.aborted) resolve()
        else requested.signal.addEventListener('abort', () => resolve(), { once: true })
      }),
    /** Reloads the settings after each session, also without a request: a person may have corrected them. */
    take(log: Log) {
      const isRequested = requested.signal.aborted
      requested = new AbortController()
      try {
        const fresh = reload()
        const { workspaceId: id, baseUrl } = fresh.api
        refuseOtherWorkspaceAt(fresh.database.path, { id, baseUrl })
        const changed = changedSettings(current.settings, fresh)
        const pending = changedSettings(started, fresh)
        current.settings = fresh
        delete current.invalidSettings
        for (const change of changed) {
          const { setting, after } = change
          const later = pending.find(other => other.setting === setting)
          if (!NEEDS_RESTART.includes(setting)) log.info('A setting has changed; it takes effect now', change)
          else if (later) log.info('A setting has changed; it takes effect after a restart', later)
          else log.info('A setting is back at its value in effect; no restart is needed', { setting, after })
        }
        if (isRequested && changed.length === 0) log.info('The settings were reloaded; none has changed')
      } catch (error) {
        if (!(error instanceof ParleyError)) throw error
        log.error('The settings were not reloaded; the daemon keeps the current ones', { error })
        const { since } = current.invalidSettings ?? { since: isoInstant(clock.now()) }
        current.invalidSettings = { since, reason: reasonWithHint(error) }
      }
    },
  }
}

interface RunningServer {
  /** Undefined where the status server does not listen. */
  address: string | undefined
  metrics: Metrics
  close(): Promise<void>
}

/** Starts the status server and the metrics, which outlive the sessions. */
async function startServer(
  { clock, version }: DaemonParts,
  current: CurrentState,
  { status, page, report }: ReportSources,
  log: Log,
): Promise<RunningServer> {
  const metrics = createMetrics({ clock, version, sources: createMetricSources(current, { clock, status }) })
  const nudge = (hint: Nudge) => {
    current.session
      ?.readFirst(readsFor(hint))
      .catch(error => log.warn('Failed to process a webhook', { error }))
  }
  const catalogue = servedCatalogue({ current, clock, log })
  const server = await startStatusServer({
    listen: current.settings.http.listen,
    token: current.settings.http.token,
    catalogue,
    nudgeSecret: current.settings.http.nudgeSecret,
    log,
    clock,
    metrics,
    stuck: () => stuck(current),
    ready: () => readinessProblem(current),
    status,
    page,
    report: current.settings.http.report ? { html: report, policy: REPORT_POLICY } : undefined,
    nudge,
  })
  return {
    address: server.address,
    metrics,
    async close() {
      await server.close()
      catalogue?.catalogue.close()
      metrics.close()
    },
  }
}

/** @returns undefined unless both settings that the catalogue needs are set */
function servedCatalogue(parts: TargetCatalogueParts & { current: CurrentState }) {
  const { http, publish } = parts.current.settings
  if (http.catalogueToken === undefined) return undefined
  if (publish.target !== undefined)
    return { catalogue: createTargetCatalogue(parts), token: http.catalogueToken }
  parts.log.warn('The catalogue is not served', {
    setting: 'publish.target',
    reason: 'there is no target: set publish.target, and restart the daemon',
  })
  return undefined
}

const blockedMs = ({ app }: CurrentState): number => app?.store.transaction.blockedMs() ?? 0

const stuck = (current: CurrentState): string | undefined => livenessProblem(blockedMs(current))
