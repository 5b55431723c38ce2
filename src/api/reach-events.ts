import type { ResourceName } from '../declare/resource-names.ts'
import type { RetryCause } from './classify.ts'
import type { ApiRequest } from './request.ts'

/** What reachability learns from requests, and what it decides about the next one. Times are monotonic milliseconds. */
export type ReachEvent =
  /** A 2xx, or an error that concerns neither access nor the whole API, such as 400. */
  | { kind: 'answered'; at: number; route: string }
  | RefusedRequest
  | { kind: 'throttled'; at: number; route: string; feed: string; random: () => number }
  /** A gateway may redirect a request that has no access, so a redirect is no proof of access. */
  | { kind: 'redirected'; at: number; route: string; feed: string; random: () => number }
  | FailedRequest

/** A 403 or 404. */
export interface RefusedRequest {
  kind: 'refused'
  at: number
  route: string
  feed: string
  /** Whether the job of the request expects this status. */
  isDeclared: boolean
  isForeign: boolean
  random: () => number
}

export interface FailedRequest {
  kind: 'failed'
  at: number
  sentAt: number
  route: string
  feed: string
  /** Identifies what was requested on the route. All pages of a list have the same path. */
  path: string
  cause: Exclude<RetryCause, 'throttled'>
  status: number | undefined
  isForeign: boolean
  message: string
  random: () => number
}

/** Which request may be sent next. */
export type NextStep =
  | { kind: 'any' }
  /** Only this health check. */
  | { kind: 'health-check'; check: HealthCheck }
  /** One request of any kind, since there is no health check. */
  | { kind: 'trial' }
  | { kind: 'wait'; ms: number }
  /** Access is lost. */
  | { kind: 'lost' }

/** A cheap request for a list that every workspace has. */
export interface HealthCheck {
  resource: ResourceName
  /** `resource.feed` */
  feed: string
  request: ApiRequest
}
