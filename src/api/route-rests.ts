import { type Backoff, backoffMs } from '../base/backoff.ts'
import type { FailedRequest } from './reach-events.ts'

/**
 * Which routes rest. A route rests after several failures in a row on it, for different paths. During the rest, trials
 * are sent one by one, with a growing wait before each. The rest ends when a request on the route is answered, refused or
 * redirected. Other routes are not affected.
 */

/** The routes that fail, by name. */
export type Routes = ReadonlyMap<string, RouteTrouble>

export interface WithRoutes {
  readonly routes: Routes
}

export interface RouteTrouble {
  /** When the first request failed. */
  readonly since: number
  /** Failures in a row. Failures of requests that were in flight when a rest started do not count. */
  readonly failures: number
  /** The first two different paths that failed. */
  readonly paths: readonly string[]
  /** Number of rests in a row: each failed trial starts another one. 0 while the route does not rest. */
  readonly rests: number
  /** When the next request on the route may be sent. */
  readonly restUntil: number
  /** The last failure. */
  readonly reason: string
}

export interface RestingRoute {
  route: string
  /** When the first request failed. */
  since: number
  until: number
  /** Number of rests in a row. */
  tries: number
  reason: string
}

/** Failures in a row that make a route rest. They must be for two different paths: a single path may always fail. */
const ROUTE_FAILURES = 3
const ROUTE: Backoff = { firstMs: 1000, mostMs: 15 * 60_000, jitter: 0.5 }

const NO_TROUBLE: Pick<RouteTrouble, 'failures' | 'paths' | 'rests'> = { failures: 0, paths: [], rests: 0 }

/** The routes that rested when an earlier process ended. */
export const routesAtStart = (resting: readonly RestingRoute[]): Routes =>
  new Map(
    resting.map(({ route, until: restUntil, tries: rests, ...trouble }) => [
      route,
      { ...NO_TROUBLE, ...trouble, rests, restUntil },
    ]),
  )

/** Whether a route has rested and not been answered since. Trials on it are sent one by one. */
export function isResting({ routes }: WithRoutes, route: string): boolean {
  return (routes.get(route)?.rests ?? 0) > 0
}

/** Time in ms until a request on this route may be sent; 0 when it may be sent now. */
export function restMs({ routes }: WithRoutes, route: string, at: number): number {
  return Math.max(0, (routes.get(route)?.restUntil ?? at) - at)
}

/** The routes that rest for at least `leastMs` in all, by name. */
export function restingRoutes({ routes }: WithRoutes, leastMs: number): RestingRoute[] {
  return [...routes]
    .filter(([, { rests, since, restUntil }]) => rests > 0 && restUntil - since >= leastMs)
    .map(([route, { since, rests: tries, restUntil: until, reason }]) => ({
      route,
      since,
      until,
      tries,
      reason,
    }))
    .sort((one, other) => one.route.localeCompare(other.route))
}

/** Whether a backfill stops trying this route, after `RESTS_OF_A_RUN` rests. */
export function isAbandoned({ routes }: WithRoutes, route: string): boolean {
  return (routes.get(route)?.rests ?? 0) > RESTS_OF_A_RUN
}

const RESTS_OF_A_RUN = 4

export function routesAfterFailure(
  routes: Routes,
  { at, route, path, message: reason, random }: FailedRequest,
): Routes {
  const before = routes.get(route) ?? { ...NO_TROUBLE, since: at, restUntil: at }
  // Requests that were in flight when the rest started do not count.
  if (at < before.restUntil) return routes
  const failures = before.failures + 1
  const isNew = before.paths.length < 2 && !before.paths.includes(path)
  const paths = isNew ? [...before.paths, path] : before.paths
  const isBroken = before.rests > 0 || (failures >= ROUTE_FAILURES && paths.length > 1)
  const rests = isBroken ? before.rests + 1 : before.rests
  const restUntil = rests === 0 ? at : at + backoffMs(ROUTE, rests, random)
  const { since } = before
  return new Map([...routes, [route, { since, failures, paths, rests, restUntil, reason }]])
}

export function without(routes: Routes, route: string): Routes {
  if (!routes.has(route)) return routes
  return new Map([...routes].filter(([other]) => other !== route))
}
