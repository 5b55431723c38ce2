import { type Backoff, backoffMs } from '../../base/backoff.ts'
import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../../base/clock.ts'

/**
 * Tells a limit of one route from a limit of the whole API. A 429 closes its route. A request of another route is then
 * the trial: when it is accepted meanwhile, the limit is the route's own and other requests go on; when it is refused as
 * well, the limit is common. Pure: a state and an event give the next state. Times are monotonic milliseconds.
 */
export interface RouteLimits {
  /** The routes with a 429 since their last answer, and those that are known to have a limit of their own. */
  readonly routes: ReadonlyMap<string, RouteLimit>
  /** Until this time a 429 is one of a common limit. */
  readonly commonUntil: number
}

export interface RouteLimit {
  readonly isOwn: boolean
  /** When the route was refused first since its last answer; undefined after an answer. */
  readonly since: number | undefined
  readonly refusedAt: number
  /** When the route may be asked again. */
  readonly closedUntil: number
  /** 429s in a row. */
  readonly refusals: number
}

/** What a 429 concerns; `unknown` until a request of another route finds out. */
export type Concerns = 'route' | 'api' | 'unknown'

/** How long a common limit is remembered, since finding it out again costs a refusal. */
const COMMON_MS = HOUR_MS

/** The longest time without a request to the route: the wait that the API asks for may be a mistake. */
const LONGEST_MS = 15 * MINUTE_MS

/** Of a route that is refused again and again without being told how long to wait. */
const UNTOLD: Backoff = { firstMs: 15 * SECOND_MS, mostMs: LONGEST_MS, jitter: 0.5 }

/** The longest time that a request takes. */
const TRIAL_MS = MINUTE_MS

/** A common limit may accept a request so soon after a refusal. */
export const OTHER_ROUTE_MS = 5 * SECOND_MS

export const NO_ROUTE_LIMITS: RouteLimits = { routes: new Map(), commonUntil: Number.NEGATIVE_INFINITY }

export function concernsOf429({ routes, commonUntil }: RouteLimits, route: string, at: number): Concerns {
  const closed = [...routes].filter(([name, { closedUntil }]) => name !== route && closedUntil > at)
  // A limit that many routes share looks like one of each of them while others are accepted now and then.
  if (at < commonUntil || closed.length > 1 || closed.some(([, { isOwn }]) => !isOwn)) return 'api'
  return routes.get(route)?.isOwn ? 'route' : 'unknown'
}

interface RouteRefusal {
  route: string
  at: number
  /** The wait that the API asks for. */
  waitMs: number | undefined
  /** For how long the governor sends no request. */
  pausedMs: number
  random: () => number
}

export function after429(
  limits: RouteLimits,
  { route, at, waitMs, pausedMs, random }: RouteRefusal,
): RouteLimits {
  if (concernsOf429(limits, route, at) === 'api')
    return { routes: new Map(), commonUntil: Math.max(limits.commonUntil, at + COMMON_MS) }
  const before = limits.routes.get(route)
  const refusals = (before?.refusals ?? 0) + 1
  const isOwn = before?.isOwn ?? false
  const untoldMs = backoffMs(UNTOLD, isOwn ? refusals : refusals - 1, random)
  const closedMs = Math.min(waitMs ?? Math.max(pausedMs, untoldMs), LONGEST_MS)
  const limit: RouteLimit = {
    isOwn,
    since: before?.since ?? at,
    refusedAt: at,
    closedUntil: Math.max(before?.closedUntil ?? at, at + closedMs),
    refusals,
  }
  return { ...limits, routes: new Map([...limits.routes, [route, limit]]) }
}

/** While a route that was refused is tried, no other request goes to it. */
export function whileTrying(limits: RouteLimits, route: string, at: number): RouteLimits {
  const limit = limits.routes.get(route)
  if (limit?.since === undefined) return limits
  return { ...limits, routes: new Map([...limits.routes, [route, { ...limit, closedUntil: at + TRIAL_MS }]]) }
}

/** @param sentAt when the accepted request was sent: one that was under way at a refusal says nothing about it */
export function afterAcceptance(limits: RouteLimits, route: string, sentAt: number): RouteLimits {
  if (limits.routes.size === 0) return limits
  const routes = [...limits.routes].flatMap(([name, limit]): [string, RouteLimit][] => {
    if (sentAt <= limit.refusedAt) return [[name, limit]]
    if (name !== route) return [[name, { ...limit, isOwn: limit.isOwn || isProof(limit, sentAt) }]]
    return limit.isOwn ? [[name, { ...limit, since: undefined, closedUntil: sentAt, refusals: 0 }]] : []
  })
  return { ...limits, routes: new Map(routes) }
}

/** Whether a request that was accepted on another route shows that the limit is the route's own. */
const isProof = ({ refusedAt, closedUntil }: RouteLimit, sentAt: number): boolean =>
  sentAt >= refusedAt + OTHER_ROUTE_MS && sentAt < closedUntil

/** How long the route is closed, in ms; 0 when it may be asked. */
export function closedMs({ routes }: RouteLimits, route: string, at: number): number {
  return Math.max(0, (routes.get(route)?.closedUntil ?? at) - at)
}

/** A route with a limit of its own that is closed. */
export interface ClosedRoute extends Pick<RouteLimit, 'closedUntil'> {
  route: string
  since: number
}

/** The routes that are closed for at least `leastMs` in all, by name. */
export function closedRoutes({ routes }: RouteLimits, at: number, leastMs: number): ClosedRoute[] {
  return [...routes]
    .flatMap(([route, { isOwn, since, closedUntil }]) =>
      isOwn && since !== undefined && closedUntil > at && closedUntil - since >= leastMs
        ? [{ route, since, closedUntil }]
        : [],
    )
    .sort((one, other) => one.route.localeCompare(other.route))
}
