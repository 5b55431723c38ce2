import type { App } from '../app/app.ts'
import type { ApiSettings } from '../config/load-settings.ts'
import type { Session } from '../engine/run/session.ts'
import type { DaemonState } from '../store/status/report.ts'

/** The state that is stored and reported. */
export function reportedState({ state, invalidSettings }: CurrentState): DaemonState {
  return invalidSettings === undefined ? state : { ...state, invalid_settings: invalidSettings }
}

/** The daemon's settings, state and session now, for the status server and the metrics, which outlive a session. */
export interface CurrentState {
  settings: ApiSettings
  state: DaemonState
  /** Absent after a reload without an error. */
  invalidSettings?: NonNullable<DaemonState['invalid_settings']>
  /** Undefined between two sessions, as is `session`. */
  app?: App
  session?: Session
}
