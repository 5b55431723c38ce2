import type { App } from '../app/app.ts'
import { type Clock, isoInstant } from '../base/clock.ts'
import { EXIT_STATUS, exitStatusOf, hintOf, reasonOf } from '../base/errors.ts'
import type { ApiSettings } from '../config/loaded-settings.ts'
import type { Session } from '../engine/run/session.ts'
import type { DaemonState } from '../store/status/processes.ts'
import type { WaitBetweenSessions } from './recovery.ts'

/** The states of the daemon, as the daemon stores them for `parley status`. */

export function runningState(clock: Clock): DaemonState {
  return { state: 'running', reason: null, since: isoInstant(clock.now()), until: null }
}

/** @param error the error that ended the daemon; undefined after a signal */
export function stoppedState(clock: Clock, error?: unknown): DaemonState {
  const end =
    error === undefined
      ? { reason: null, exit_status: EXIT_STATUS.done }
      : { reason: reasonOf(error), ...hintOf(error), exit_status: exitStatusOf(error) }
  return { state: 'stopped', ...end, since: isoInstant(clock.now()), until: null }
}

/** The rebuild of a large database file blocks all writes, for minutes. */
export function rebuildingState(clock: Clock): DaemonState {
  const reason = 'it rebuilds the database file to remove purged content, and then goes on'
  return { state: 'waiting', code: 'rebuilding', reason, since: isoInstant(clock.now()), until: null }
}

/** @param before the state until now: a wait for the same reason goes on */
export function waitingState(
  clock: Clock,
  { reason, hint, code, ms }: WaitBetweenSessions,
  before: DaemonState,
): DaemonState {
  const now = clock.now()
  const why = { code, reason, ...(hint !== undefined && { hint }) }
  const since = before.state === 'waiting' && before.code === code ? before.since : isoInstant(now)
  return { state: 'waiting', ...why, since, until: isoInstant(now + ms) }
}

/** The daemon's settings, state and session now, for the status server and the metrics, which outlive a session. */
export interface CurrentState {
  settings: ApiSettings
  state: DaemonState
  /** Why the last reload failed; absent after success. */
  invalidSettings?: NonNullable<DaemonState['invalid_settings']>
  /** `app` and `session` are undefined between two sessions. */
  app?: App
  session?: Session
}

/** The state that is stored and reported. */
export function reportedState({ state, invalidSettings }: CurrentState): DaemonState {
  return invalidSettings === undefined ? state : { ...state, invalid_settings: invalidSettings }
}
