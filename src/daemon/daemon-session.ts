import { type App, openApp } from '../app/app.ts'
import { afterGrace } from '../app/grace-after-stop.ts'
import type { Clock } from '../base/clock.ts'
import { EXIT_STATUS, reasonWithHint, StopError } from '../base/errors.ts'
import type { Log } from '../base/log.ts'
import { withParents } from '../catalog/catalog.ts'
import type { ApiSettings, Environment } from '../config/loaded-settings.ts'
import { RESOURCE_NAMES, type ResourceName } from '../declare/resource-names.ts'
import type { SessionObserver } from '../engine/run/session.ts'
import { isWithoutAccess } from '../health/problems.ts'
import { rebuildLarge } from '../retention/maintain.ts'
import type { Metrics } from '../server/metrics.ts'
import { requireStillThere, resolvedPath } from '../store/disk/location.ts'
import type { DaemonState } from '../store/status/processes.ts'
import { API_GATE, type Gate } from '../store/sync/gates.ts'
import { META } from '../store/sync/meta.ts'
import { workInBackground } from './background-work.ts'
import type { LockKeeper } from './lock-keeper.ts'
import {
  isAccessLost,
  KEY_REFUSED,
  type Recovery,
  recoveryFrom,
  type SessionEnd,
  type SessionsBefore,
} from './recovery.ts'
import type { ServiceManager } from './service-manager.ts'
import {
  type CurrentState,
  rebuildingState,
  reportedState,
  runningState,
  stoppedState,
  waitingState,
} from './state.ts'

export interface SessionParts {
  serviceManager: ServiceManager
  /** The environment of the commands in `[hooks]`. */
  env: Environment
  clock: Clock
  pid: number
  version: string
  stop: AbortSignal
}

export interface SessionWork {
  parts: SessionParts
  current: CurrentState
  log: Log
  lock: LockKeeper
  metrics: Metrics
  /** Paths of the databases that this process has opened. When such a file is missing, the daemon waits for it. */
  opened: Set<string>
  /** Aborted on a request to reload the settings. New settings need a new session. */
  next: AbortSignal
  /** Results of the earlier sessions. */
  before: SessionsBefore
}

type SessionResult = SessionEnd & { recovery: Recovery }

/**
 * Opens the database, runs one session and closes everything. Errors are returned, not thrown, with what follows. If the
 * daemon waits, this is its state from then on.
 */
export async function runSession({
  parts,
  current,
  log,
  lock,
  opened,
  metrics,
  next,
  before,
}: SessionWork): Promise<SessionResult> {
  const { clock, serviceManager, pid, stop } = parts
  const { settings } = current
  const asked = new AbortController()
  const stopNew = AbortSignal.any([stop, next, asked.signal])
  const cancel = afterGrace(clock, stopNew)
  let app: App
  try {
    const path = resolvedPath(settings.database.path)
    if (opened.has(path)) requireStillThere(path)
    const held = lock.on(settings.database)
    const work = { command: 'daemon', pid, held, stopNew, cancel, onTransaction: metrics.recordTransaction }
    app = await openApp({ settings, clock, log, ...work })
    opened.add(path)
  } catch (error) {
    return conclude({ error, wasAnswered: false, ...before }, clock, current)
  }
  const wasAnsweredBefore = before.wasAnsweredBefore || app.store.state.wasEverAnswered()
  const wasLost = before.timesLost > 0
  let waited = current.state.state === 'waiting' ? current.state : undefined
  const noteContinuation = () => {
    if (waited === undefined) return
    log.info('The daemon continues', {
      code: waited.code,
      duration_ms: clock.now() - Date.parse(waited.since),
    })
    waited = undefined
  }
  const onRequest: SessionObserver['onRequest'] = request => {
    if (request.status === 200) noteContinuation()
    metrics.recordRequest(request)
  }
  const session = app.session(chosenResources(settings), {
    observer: { onRequest, onRunEnd: metrics.recordRun },
    access: {
      wasAnswered: wasAnsweredBefore && !wasLost,
      wasLost,
      isFirstRefusalFinal: !wasAnsweredBefore || waited?.code === KEY_REFUSED,
    },
  })
  Object.assign(current, { app, session })
  const note = (state: DaemonState) => {
    const stored = JSON.stringify(reportedState({ ...current, state }))
    return app.store.transaction(() => app.store.state.setMeta(META.daemonState, stored))
  }
  let duties: Promise<void> | undefined
  let error: unknown
  try {
    const running = current.state.state === 'running' ? current.state : runningState(clock)
    await note(running)
    current.state = running
    // Only an answer of the API shows whether access is back.
    if (waited && !isWithoutAccess(waited)) noteContinuation()
    serviceManager.ready('running')
    const show = (state: DaemonState) => {
      current.state = state
      return note(state)
    }
    // A rebuild blocks all writes, so it runs before the session starts.
    const rebuild = { store: app.store, clock, log, settings, signal: stopNew }
    await rebuildLarge(rebuild, { onStart: () => show(rebuildingState(clock)) })
    if (current.state.state !== 'running') await show(runningState(clock))
    const { serverTime } = session
    duties = workInBackground({
      app,
      settings,
      log,
      env: parts.env,
      version: parts.version,
      signal: stopNew,
      serverTime,
      endSession: () => asked.abort(),
    })
    await session.run()
  } catch (thrown) {
    error = thrown
  }
  asked.abort()
  await duties
  const wasAnswered = session.progress().accepted > 0
  const isKeyTrusted = before.isKeyTrusted || wasAnswered
  const timesLost = isAccessLost(error) ? (wasAnswered ? 1 : before.timesLost + 1) : 0
  const end = conclude(
    { error, hasStarted: true, wasAnswered, wasAnsweredBefore, isKeyTrusted, timesLost },
    clock,
    current,
  )
  const isWaiting = !stop.aborted && end.recovery.kind === 'wait'
  const after = isWaiting ? current.state : stoppedState(clock, stop.aborted ? undefined : error)
  const lost = isWaiting && accessLossNote(after, error, chosenResources(settings))
  // Both writes fail on a full disk. The log and the status server still report the state.
  if (stop.aborted || end.recovery.kind !== 'continue') await note(after).catch(() => undefined)
  if (lost) await app.store.transaction(() => app.store.gates.set([lost])).catch(() => undefined)
  delete current.app
  delete current.session
  await app.close()
  return end
}

function conclude(end: SessionEnd, clock: Clock, current: CurrentState): SessionResult {
  const recovery = recoveryFrom(end)
  if (recovery.kind === 'wait') current.state = waitingState(clock, recovery, current.state)
  return { ...end, recovery }
}

/** What `sync_status` shows while the daemon waits for a new key or for access; undefined in all other cases. */
function accessLossNote(
  { since, until }: DaemonState,
  error: unknown,
  resources: readonly ResourceName[],
): Gate | undefined {
  const isRefused = error instanceof StopError && error.exitStatus === EXIT_STATUS.refused
  if (!isRefused || until === null) return undefined
  return { what: API_GATE, kind: 'refused', reason: reasonWithHint(error), since, until, resources, tries: 0 }
}

export function chosenResources({ sync }: ApiSettings): readonly ResourceName[] {
  return withParents(RESOURCE_NAMES.filter(name => sync.resources?.includes(name) ?? true))
}
