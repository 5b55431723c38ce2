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
  /** Why the last reload failed; absent after success. */
  invalidSettings?: NonNullable<DaemonState['invalid_settings']>
  /** `app` and `session` are undefined between two sessions. */
  app?: App
  session?: Session
}
