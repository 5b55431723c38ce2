import { type Backoff, backoffMs } from '../../base/backoff.ts'
import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../../base/clock.ts'

/**
 * Tells a limit of one route from a limit of the whole API. A 429 closes its route. A request of another route is
 * then the trial: when it is accepted meanwhile, the limit is the route's own, and other requests go on; when it is
 * refused as well, the limit is common, and `pace.ts` alone decides. Several routes with their own limits look the
 * same; three refusals in a row of one route, with accepted requests of others in between, tell them apart. A route
 * with its own limit has a distance between its requests, which grows with each refusal and shrinks with each
 * answer. The distance prevents bursts on the route. It does no harm if the limit turns out to be common. Pure: a
 * state and an event give the next state. Times are monotonic milliseconds.
 */
export interface RouteLimits {
  /** The routes with a 429 since their last answer, and those that are known to have their own limit. */
  readonly routes: ReadonlyMap<string, RouteLimit>
  /** Until this time, every 429 counts as a refusal by a common limit. */
  readonly commonUntil: number
}

export interface RouteLimit {
  readonly isOwn: boolean
  /** When the route was refused first since its last answer; undefined after an answer. */
  readonly since: number | undefined
  /** When the route was refused last. The 429s of requests that were sent before this time belong to that refusal. */
  readonly refusedAt: number
  /** Refusals in a row. */
  readonly refusals: number
  /** How many of them were contradicted: before the next one, a request of another route was accepted. */
  readonly contradicted: number
  readonly isContradicted: boolean
  /** When the route may be asked again. */
  readonly closedUntil: number
  /** Until this time, one request tries whether the route is open, and no second request is sent. */
  readonly triedUntil: number
  /** Minimum time between two requests of a route with its own limit. */
  readonly distanceMs: number
  /** Routes with a request that was accepted while this one was closed. */
  readonly provedBy: ReadonlySet<string>
}

/** What a 429 concerns; `unknown` until a request of another route finds out. */
export type Concerns = 'route' | 'api' | 'unknown'

/** How long a common limit is remembered, since finding it out again costs a refusal. */
const COMMON_MS = HOUR_MS

/** The longest time without a request to the route: the wait that the API asks for may be a mistake. */
const LONGEST_MS = 15 * MINUTE_MS

/** Backoff of a route whose 429s do not state a wait. */
const UNTOLD: Backoff = { firstMs: 10 * SECOND_MS, mostMs: LONGEST_MS, jitter: 0.5 }

/** The longest time that a request takes. */
const TRIAL_MS = MINUTE_MS

/** How soon after a refusal a common limit may accept a request of another route. */
export const OTHER_ROUTE_MS = 5 * SECOND_MS

/** This many contradicted refusals in a row prove that the limit is the route's own, whatever else is refused. */
const PROVED_BY = 3

const DISTANCE = { leastMs: 50, mostMs: 30 * SECOND_MS, refused: 1.5, accepted: 0.998 }

export const NO_ROUTE_LIMITS: RouteLimits = { routes: new Map(), commonUntil: Number.NEGATIVE_INFINITY }

export function concernsOf429({ routes, commonUntil }: RouteLimits, route: string, at: number): Concerns {
  const limit = routes.get(route)
  if (limit && isProved(limit)) return 'route'
  const closed = [...routes].filter(
    ([name, other]) => name !== route && other.closedUntil > at && !isProved(other),
  )
  // If one other route is closed, both routes share a limit, unless a third route has proved that the closed route has
  // its own. If several are closed, the limit is common: a limit that many routes share looks like one of each route
  // while other requests are accepted now and then.
  const isOfOther = ([, { provedBy }]: (typeof closed)[number]) => [...provedBy].some(name => name !== route)
  if (at < commonUntil || closed.length > 1 || !closed.every(isOfOther)) return 'api'
  return limit?.isOwn ? 'route' : 'unknown'
}

interface RouteRefusal {
  route: string
  at: number
  sentAt: number
  /** The wait that the API asks for. */
  waitMs: number | undefined
  /** For how long the governor sends no request. */
  pausedMs: number
  random: () => number
}

export function after429(limits: RouteLimits, refusal: RouteRefusal): RouteLimits {
  const { route, at, sentAt, waitMs, pausedMs, random } = refusal
  const isCommon = concernsOf429(limits, route, at) === 'api'
  const before = limits.routes.get(route)
  if (before && sentAt <= before.refusedAt) {
    const closedUntil = Math.max(before.closedUntil, at + Math.min(waitMs ?? 0, LONGEST_MS))
    const after = withRoute(limits, route, { ...before, closedUntil })
    return isCommon ? common(after, at) : after
  }
  const { isOwn = false, distanceMs = 0 } = before ?? {}
  const refusals = (before?.refusals ?? 0) + 1
  const untoldMs = backoffMs(UNTOLD, isOwn ? refusals : refusals - 1, random)
  const { leastMs, mostMs, refused } = DISTANCE
  const after = withRoute(limits, route, {
    isOwn,
    since: before?.since ?? at,
    refusedAt: at,
    refusals,
    contradicted: before ? contradictions(before) : 0,
    isContradicted: false,
    closedUntil: at + Math.min(waitMs ?? Math.max(pausedMs, untoldMs, 0), LONGEST_MS),
    triedUntil: at,
    distanceMs: Math.min(mostMs, Math.max(leastMs, distanceMs * refused)),
    provedBy: new Set(),
  })
  return isCommon ? common(after, at) : after
}

/** The state after a 429 that concerns all routes: each is open, except those that are proved to have their own limit. */
function common({ routes, commonUntil }: RouteLimits, at: number): RouteLimits {
  const opened = [...routes].map(([name, limit]): [string, RouteLimit] => [
    name,
    isProved(limit)
      ? limit
      : { ...limit, isOwn: false, distanceMs: 0, closedUntil: at, triedUntil: at, provedBy: new Set() },
  ])
  return { routes: new Map(opened), commonUntil: at < commonUntil ? commonUntil : at + COMMON_MS }
}

const contradictions = ({ contradicted, isContradicted }: RouteLimit): number =>
  contradicted + Number(isContradicted)

/** By chance, a common limit hardly ever refuses one route so often in a row while it accepts others in between. */
const isProved = (limit: RouteLimit): boolean => contradictions(limit) >= PROVED_BY

export function afterSending(limits: RouteLimits, route: string, at: number): RouteLimits {
  const limit = limits.routes.get(route)
  if (limit?.since !== undefined) return withRoute(limits, route, { ...limit, triedUntil: at + TRIAL_MS })
  if (limit?.isOwn) return withRoute(limits, route, { ...limit, closedUntil: at + limit.distanceMs })
  return limits
}

/** The state after a request that has shown nothing about the limit, such as one with a 500. */
export function afterFailure(limits: RouteLimits, route: string, at: number): RouteLimits {
  const limit = limits.routes.get(route)
  return limit ? withRoute(limits, route, { ...limit, triedUntil: at }) : limits
}

interface RouteAcceptance {
  route: string
  at: number
  /** When the request was sent. If it was already in flight at a refusal, it says nothing about that refusal. */
  sentAt: number
}

export function limitsAfterAcceptance(
  limits: RouteLimits,
  { route, at, sentAt }: RouteAcceptance,
): RouteLimits {
  if (limits.routes.size === 0) return limits
  const routes = [...limits.routes].flatMap(([name, limit]): [string, RouteLimit][] => {
    if (name !== route) {
      if (!isContradiction(limit, sentAt)) return [[name, limit]]
      const contradicted = { ...limit, isContradicted: true }
      if (isProof(limit, sentAt))
        return [[name, { ...contradicted, isOwn: true, provedBy: new Set([...limit.provedBy, route]) }]]
      return [[name, { ...contradicted, isOwn: limit.isOwn || isProved(contradicted) }]]
    }
    if (sentAt <= limit.refusedAt) return [[name, limit]]
    if (!limit.isOwn) return []
    const distanceMs = limit.distanceMs * DISTANCE.accepted
    const wasRefused = limit.since !== undefined
    const closedUntil = wasRefused ? at + distanceMs : limit.closedUntil
    const contradicted = isProved(limit) ? PROVED_BY : 0
    const open = { since: undefined, refusals: 0, contradicted, isContradicted: false, triedUntil: at }
    return [[name, { ...limit, ...open, closedUntil, distanceMs }]]
  })
  return { ...limits, routes: new Map(routes) }
}

/** Whether an accepted request of this route, sent at `sentAt`, shows that another route has its own limit. */
export function isOfOtherRoute({ routes }: RouteLimits, route: string, sentAt: number): boolean {
  return [...routes].some(([name, limit]) => name !== route && isProof(limit, sentAt))
}

/** Whether an accepted request of another route, sent at `sentAt`, contradicts that the last refusal was common. */
const isContradiction = ({ since, refusedAt }: RouteLimit, sentAt: number): boolean =>
  since !== undefined && sentAt >= refusedAt + OTHER_ROUTE_MS

const isProof = (limit: RouteLimit, sentAt: number): boolean =>
  isContradiction(limit, sentAt) && sentAt < limit.closedUntil

/** How long the route is closed, in ms; 0 when it may be asked. */
export function closedMs({ routes }: RouteLimits, route: string, at: number): number {
  const limit = routes.get(route)
  return limit ? Math.max(0, limit.closedUntil - at, limit.triedUntil - at) : 0
}

function withRoute(limits: RouteLimits, route: string, limit: RouteLimit): RouteLimits {
  return { ...limits, routes: new Map([...limits.routes, [route, limit]]) }
}

/** A route with its own limit. It is closed, or a request tries whether it is open. */
export interface ClosedRoute {
  route: string
  since: number
  until: number
}

/** The routes that are closed for at least `leastMs` in all, by name. */
export function closedRoutes({ routes }: RouteLimits, at: number, leastMs: number): ClosedRoute[] {
  return [...routes]
    .flatMap(([route, { isOwn, since, closedUntil, triedUntil }]) =>
      isOwn && since !== undefined && Math.max(closedUntil, triedUntil) > at && closedUntil - since >= leastMs
        ? [{ route, since, until: closedUntil }]
        : [],
    )
    .sort((one, other) => one.route.localeCompare(other.route))
}
