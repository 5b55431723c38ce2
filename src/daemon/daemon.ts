import { type App, openApp, whatRuns } from '../app.ts'
import { withParents } from '../catalog.ts'
import type { Clock } from '../clock.ts'
import type { ApiSettings } from '../config.ts'
import { type SettingKey, settingOf } from '../config-settings.ts'
import type { Unreachable } from '../engine/reachability.ts'
import type { Shift, ShiftObserver } from '../engine/shift.ts'
import { EXIT_STATUS, type ExitStatus, exitStatusOf, ParleyError, reasonOf, StopError } from '../errors.ts'
import type { Log } from '../log.ts'
import { RESOURCE_NAMES, type ResourceName } from '../resource.ts'
import { rebuildLarge } from '../retention/maintain.ts'
import { createMetrics } from '../server/metrics.ts'
import type { Nudge } from '../server/nudge.ts'
import { startStatusServer } from '../server/server.ts'
import type { ServiceManager } from '../service-manager.ts'
import { requireStillThere } from '../store/database/file-identity.ts'
import { refuseOtherWorkspaceAt } from '../store/database/workspace-check.ts'
import { type HeldLock, lockDatabase } from '../store/lock.ts'
import { truePath } from '../store/open.ts'
import { META, type UnreachableNote } from '../store/state.ts'
import type { DaemonState } from '../store/status-report.ts'
import { type Duties, startDuties } from './duties.ts'
import { createTold } from './figures.ts'
import { livenessAfter } from './liveness.ts'
import { readsFor } from './nudged.ts'
import { isAccessLost, recoveryFrom, type ShiftEnd } from './recovery.ts'
import { changedSettings } from './settings-changes.ts'
import { running, stopped, waiting } from './state.ts'

/**
 * The long-running process: one shift after the other, until it is told to stop or cannot go on. Between two shifts
 * everything is closed, so that a changed key, other settings or a mended disk count from the next one on. Only the
 * lock is kept: while the daemon waits, no backfill takes its place.
 */

export interface DaemonParts {
  settings: ApiSettings
  /** Reads the settings again. @throws StopError (78) */
  reload(): ApiSettings
  /** Calls the listener whenever the settings are to be read again. */
  onReload(listener: () => void): void
  createLog(settings: ApiSettings): Promise<Log>
  serviceManager: ServiceManager
  clock: Clock
  pid: number
  version: string
  /** Ends it. */
  stop: AbortSignal
}

/** What is under way may finish for so long. */
const GRACE_MS = 10_000

/** What the parts that outlive a shift may know of the present one. */
interface Present {
  settings: ApiSettings
  state: DaemonState
  app?: App
  shift?: Shift
}

/** @throws StopError when it cannot begin */
export async function runDaemon(parts: DaemonParts): Promise<ExitStatus> {
  const { clock, serviceManager, stop } = parts
  const present: Present = { settings: parts.settings, state: running(clock) }
  const reloads = createReloads(parts, present)
  let log = await parts.createLog(present.settings)
  const lock = createLockKeeper(clock)
  let served: Served | undefined
  const opened = new Set<string>()
  serviceManager.watchdog(() => liveness(present) === true)
  let hadBegun = false
  let wasAnsweredBefore = false
  let timesLost = 0
  try {
    // First of all: where another process has the lock, nothing else that it has is missed.
    lock.on(present.settings.database)
    served = await serve(parts, present, log)
    const { settings, version, pid } = parts
    const resources = chosenResources(settings)
    log.info('The daemon starts', {
      ...whatRuns({ settings, version, pid, resources }),
      address: served.address ?? 'off',
    })
    while (!stop.aborted) {
      log = await parts.createLog(present.settings)
      const end = await workShift({
        parts,
        present,
        log,
        lock,
        opened,
        observer: served.observer,
        onTransaction: served.onTransaction,
        next: reloads.next(),
        before: { wasAnsweredBefore, timesLost },
      })
      hadBegun ||= end.hadBegun
      timesLost = end.timesLost
      if (end.error === undefined) {
        if (!stop.aborted) reloads.take(log)
        continue
      }
      const recovery = recoveryFrom({ ...end, error: end.error, hadBegun })
      wasAnsweredBefore ||= end.wasAnswered || end.wasAnsweredBefore
      if (recovery.kind === 'end') throw end.error
      present.state = waiting(clock, recovery.reason, recovery.ms)
      // Also where it was reloading, which systemd takes to last until it is told that all is ready.
      serviceManager.ready(`waiting: ${recovery.reason}`)
      log.error('The daemon waits and tries again', {
        reason: recovery.reason,
        wait_ms: recovery.ms,
        error: end.error,
      })
      await clock.sleep(recovery.ms, AbortSignal.any([stop, reloads.next()]))
      if (!stop.aborted) reloads.take(log)
    }
    log.info(ENDS, { exit_status: EXIT_STATUS.done, reason: reasonOf(stop.reason) })
    return EXIT_STATUS.done
  } catch (error) {
    log.error(ENDS, { exit_status: exitStatusOf(error), reason: reasonOf(error) })
    serviceManager.status(reasonOf(error))
    throw error
  } finally {
    serviceManager.stopping()
    lock.release()
    await served?.close()
    await serviceManager.close()
  }
}

const ENDS = 'The daemon ends'

interface ShiftWork {
  parts: DaemonParts
  present: Present
  log: Log
  lock: LockKeeper
  observer: ShiftObserver
  /** Databases that this process has opened: one that is gone is waited for, and not made again. */
  opened: Set<string>
  onTransaction(ms: number): void
  /** Aborted when a new shift is to begin. */
  next: AbortSignal
  /** What the shifts before have met. */
  before: Pick<ShiftEnd, 'wasAnsweredBefore' | 'timesLost'>
}

type Ended = Omit<ShiftEnd, 'error'> & { error?: unknown }

/** One shift from its opening to its close. */
async function workShift({
  parts,
  present,
  log,
  lock,
  opened,
  observer,
  onTransaction,
  next,
  before,
}: ShiftWork): Promise<Ended> {
  const { clock, serviceManager, pid, stop } = parts
  const { settings } = present
  const asked = new AbortController()
  const soft = AbortSignal.any([stop, next, asked.signal])
  const hard = afterGrace(clock, soft)
  let app: App
  try {
    const path = truePath(settings.database.path)
    if (opened.has(path)) requireStillThere(path)
    const held = lock.on(settings.database)
    app = await openApp({ settings, log, command: 'daemon', pid, held, soft, hard, onTransaction })
    opened.add(path)
  } catch (error) {
    return { error, hadBegun: false, wasAnswered: false, ...before }
  }
  const wasAnsweredBefore = before.wasAnsweredBefore || app.store.state.wasEverAnswered()
  const wasLost = before.timesLost > 0
  const shift = app.shift(chosenResources(settings), {
    observer,
    access: { wasAnswered: wasAnsweredBefore && !wasLost, wasLost },
  })
  Object.assign(present, { app, shift })
  if (present.state.state !== 'running') present.state = running(clock)
  const note = (state: DaemonState) =>
    app.store.transaction(() => app.store.state.setMeta(META.daemonState, JSON.stringify(state)))
  let duties: Duties | undefined
  let error: unknown
  try {
    await note(present.state)
    serviceManager.ready('running')
    // Nothing else is under way yet, and nothing could be written meanwhile.
    await rebuildLarge({ store: app.store, clock, log, settings, signal: soft })
    const { serverTime } = shift
    duties = startDuties({ app, settings, log, signal: soft, serverTime, endShift: () => asked.abort() })
    await shift.run()
  } catch (thrown) {
    error = thrown
  }
  asked.abort()
  await duties?.ended
  const wasAnswered = shift.progress().accepted > 0
  const timesLost = isAccessLost(error) ? (wasAnswered ? 1 : before.timesLost + 1) : 0
  const end = { error, hadBegun: true, wasAnswered, wasAnsweredBefore, timesLost }
  const after = stateAfter(clock, end, stop)
  const lost = lostAccess(after, end, chosenResources(settings))
  // On a disk that is full it cannot be noted; the log and the status server say it.
  if (after) await note(after).catch(() => undefined)
  if (lost) await app.store.transaction(() => app.store.state.noteUnreachable(lost)).catch(() => undefined)
  delete present.app
  delete present.shift
  await app.close()
  return end
}

interface LockKeeper {
  /** The lock of this database, taken unless it is held already. @throws StopError (75) */
  on(database: ApiSettings['database']): HeldLock
  release(): void
}

function createLockKeeper(clock: Clock): LockKeeper {
  let held: { path: string; lock: HeldLock } | undefined
  const release = () => {
    held?.lock.release()
    held = undefined
  }
  return {
    on(database) {
      const path = truePath(database.path)
      if (held?.path !== path || !held.lock.isCurrent()) {
        release()
        held = { path, lock: lockDatabase(path, clock, database.mode) }
      }
      return held.lock
    },
    release,
  }
}

/** What `sync_status` says while the daemon waits for a key or for access. */
function lostAccess(
  state: DaemonState | undefined,
  { error }: Ended,
  resources: readonly ResourceName[],
): UnreachableNote | undefined {
  const isRefused = error instanceof StopError && error.exitStatus === EXIT_STATUS.refused
  if (!isRefused || state?.state !== 'waiting' || state.until === null) return undefined
  const { since, until, reason } = state
  return { kind: 'refused', reason: reason ?? error.message, since, next_try_at: until, resources }
}

/** What others read of the daemon between two shifts; undefined where the next follows at once. */
function stateAfter(clock: Clock, end: ShiftEnd, stop: AbortSignal): DaemonState | undefined {
  if (stop.aborted) return stopped(clock)
  if (end.error === undefined) return undefined
  const recovery = recoveryFrom(end)
  return recovery.kind === 'wait' ? waiting(clock, recovery.reason, recovery.ms) : stopped(clock, end.error)
}

function chosenResources({ sync }: ApiSettings): readonly ResourceName[] {
  return withParents(RESOURCE_NAMES.filter(name => sync.resources?.includes(name) ?? true))
}

/** Aborted some time after the signal. */
function afterGrace(clock: Clock, signal: AbortSignal): AbortSignal {
  const hard = new AbortController()
  const begin = () => void clock.sleep(GRACE_MS).then(() => hard.abort())
  if (signal.aborted) begin()
  else signal.addEventListener('abort', begin, { once: true })
  return hard.signal
}

/** These count from the next start on. */
const NEEDS_RESTART: readonly SettingKey[] = ['http.listen', 'http.nudge_secret']

function createReloads({ reload, onReload, serviceManager }: DaemonParts, present: Present) {
  let wanted = new AbortController()
  onReload(() => {
    serviceManager.reloading()
    wanted.abort()
  })
  return {
    /** Aborted when the settings are to be read again. */
    next: () => wanted.signal,
    /** Reads the settings again, be it that they were said to have changed or that something is mended with them. */
    take(log: Log) {
      const isAsked = wanted.signal.aborted
      wanted = new AbortController()
      try {
        const fresh = reload()
        const { workspaceId: id, baseUrl } = fresh.api
        refuseOtherWorkspaceAt(fresh.database.path, { id, baseUrl })
        const changed = changedSettings(present.settings, fresh)
        present.settings = fresh
        for (const setting of changed) {
          const late = NEEDS_RESTART.includes(setting)
          const shown = settingOf(setting).secret
            ? undefined
            : late
              ? 'counts after a restart'
              : 'counts from now on'
          log.info('A setting has changed', { setting, ...(shown === undefined ? {} : { reason: shown }) })
        }
        if (isAsked && changed.length === 0) log.info('The settings were read again; none has changed')
      } catch (error) {
        if (!(error instanceof ParleyError)) throw error
        log.error('The settings were read again and are wrong; the old ones stay', { error })
      }
    },
  }
}

interface Served {
  /** Where the status server listens; undefined where it does not. */
  address: string | undefined
  observer: ShiftObserver
  onTransaction(ms: number): void
  close(): Promise<void>
}

/** What goes on whatever the shift: the status server and the metrics. */
async function serve({ clock, version }: DaemonParts, present: Present, log: Log): Promise<Served> {
  const told = createTold(present, { clock, version })
  const metrics = createMetrics({ clock, sources: told.metrics })
  const nudge = (hint: Nudge) => {
    present.shift
      ?.hurry(readsFor(hint))
      .catch(error => log.warn('A webhook could not be followed', { error }))
  }
  const server = await startStatusServer({
    listen: present.settings.http.listen,
    nudgeSecret: present.settings.http.nudgeSecret,
    log,
    clock,
    metrics,
    live: () => liveness(present),
    ready: () => notReady(present),
    status: told.status,
    nudge,
  })
  return {
    address: server.address,
    observer: { sent: metrics.sent, passed: metrics.passed },
    onTransaction: metrics.transacted,
    async close() {
      await server.close()
      metrics.close()
    },
  }
}

const TROUBLES: Readonly<Record<Unreachable['kind'], string>> = {
  silent: 'the API does not answer',
  refused: 'the API grants no access',
  'asked-to-wait': 'the API is not asked',
}

function liveness({ app }: Present): true | string {
  return livenessAfter(app?.store.transaction.stuckMs() ?? 0)
}

function notReady({ state, shift }: Present): string | undefined {
  if (state.state !== 'running') return state.reason ?? state.state
  const trouble = shift?.progress().trouble()
  if (trouble) return `${TROUBLES[trouble.kind]}: ${trouble.reason}`
  return shift ? undefined : 'the next shift is about to begin'
}
