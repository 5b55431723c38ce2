import type { Client } from '../../api/client.ts'
import type { Governor } from '../../api/governor/governor.ts'
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import type { ResourceName } from '../../declare/resource-names.ts'
import type { Store } from '../../store/store.ts'

/** The dependencies that a backfill and a session of the daemon share. */
export interface EngineDeps {
  store: Store
  client: Client
  governor: Governor
  clock: Clock
  log: Log
  /** A number from 0 up to 1, for jitter. */
  random: () => number
  options: EngineOptions
  /** In catalogue order, parents included. */
  resources: readonly ResourceName[]
  /**
   * The daemon's interval for the newest segment of each timeline. A backfill needs it to store `next_run_at`, since a
   * daemon may follow.
   */
  pollMs: number
  /**
   * Saves the learned limits of the API and the clock. Called inside the transaction of every answer and of every
   * minute.
   */
  saveLearned?: () => void
  /** Once aborted, no new job starts. */
  stopNew: AbortSignal
  /** Cancels the requests in flight. */
  cancel: AbortSignal
}

export interface EngineOptions {
  /** Only records with an event time since this instant are requested. */
  since: string | null
  intervalScale: number
  accessLogEndParameter: string
  words: boolean
  /** The configured ceiling `api.max_requests_per_day`, if one is set. */
  requestsPerDay?: number | undefined
}
