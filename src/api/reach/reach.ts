import { type Backoff, backoffMs } from '../base/backoff.ts'
import type { ResourceName } from '../declare/resource-names.ts'
import type { RetryCause } from './classify.ts'
import type { ApiRequest } from './request.ts'

/**
 * Decides whether the API can be reached, and which request may be sent next. Pure: a state and an event give the next
 * state. Times are monotonic milliseconds.
 *
 * Each request has one of five results. It is answered by a usable 2xx, or by an error that concerns only this request,
 * such as 400. It is refused by a 403 or 404, throttled by a 429, and redirected by a 3xx. It fails in all other cases:
 * without an HTTP response, with a 2xx that is not JSON, or with a status that is retried, such as 500.
 *
 * - Route: a route rests after several failures in a row on it, for different paths. During the rest, trials are sent
 *   one by one, with a growing wait before each. The rest ends when a request on the route is answered, refused or
 *   redirected. Other routes are not affected.
 * - Silence: the API is in doubt after several failures in a row, on different routes or without any HTTP status, and
 *   when a backfill's patience is over. Then health checks (requests for cheap lists) are sent on other routes. A result
 *   that is not a failure ends the doubt: a single route that fails never ends a run. A refusal that was expected does
 *   not: a gateway refuses what it does not know, whatever has happened to the API behind it.
 *   When the health checks fail as well, or when no request could even connect, the API is away: trials are sent one by
 *   one, with a growing wait before each, and each on another route. A trial that does not fail ends this state.
 * - Access: access is in doubt after several unexpected refusals since the last answer. Then every health check is
 *   sent. An answer ends the doubt. When all health checks are refused, and later refused again, access is lost; after
 *   a long doubt also when only most of them are refused, and the others fail.
 * - Address: the address is wrong when several responses in a row, on different routes, do not have the API's form, and
 *   no earlier response had it. Then another site is at this address, and a backfill ends at once.
 */

/** A cheap request for a list that every workspace has. */
export interface HealthCheck {
  resource: ResourceName
  /** `resource.feed` */
  feed: string
  request: ApiRequest
}

export interface ReachOptions {
  healthChecks: readonly HealthCheck[]
  /** Access is lost when all health checks are refused again, this long after the doubt began. */
  againAfterMs: number
  /** Whether the API answered an earlier run. If the API has never answered, the first refusals are final. */
  wasAnswered: boolean
  /** Whether an earlier session lost access. If so, health checks are sent before any other request. */
  accessWasLost: boolean
  /** How long a backfill waits for a silent API. Undefined in the daemon. */
  giveUpMs?: number
  /** The routes that rested when an earlier process ended. Each may be tried at once, and rests as long if it fails. */
  resting?: readonly RestingRoute[]
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

export interface Reach {
  readonly options: ReachOptions
  /** Most recently answered first. */
  readonly healthChecks: readonly HealthCheck[]
  readonly wasAnswered: boolean
  readonly routes: ReadonlyMap<string, RouteTrouble>
  readonly silence: Silence | undefined
  readonly refusal: AccessRefusal | undefined
  /** Undefined once a response had the API's form. */
  readonly foreign: ForeignAnswers | undefined
  readonly wasConnected: boolean
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

/** The requests that failed since the last one that did not fail. */
export interface Silence {
  /** When the first failed request was sent. */
  readonly since: number
  /**
   * Start of a backfill's patience: the last failure with an HTTP status, or `since` if there was none. Once the API is
   * away, it is `since`, because a gateway may send such failures. `withoutWait` moves it later.
   */
  readonly quietSince: number
  /** How long parley itself has waited after `since`, in ms, such as after a 429. */
  readonly waitedMs: number
  readonly failures: number
  readonly routes: ReadonlySet<string>
  /** Whether every failed request failed to connect. Such a failure concerns all routes. */
  readonly neverConnected: boolean
  /** Whether a failed request got an HTTP status. */
  readonly hasStatus: boolean
  readonly reason: string
  /** Number of further routes that have failed since the doubt began. */
  readonly confirmations: number
  readonly isAway: boolean
  readonly trials: number
  readonly nextTrialAt: number
}

/** The refusals since the last answer. */
export interface AccessRefusal {
  readonly since: number
  /** Number of refusals with `isDeclared` false. */
  readonly undeclared: number
  readonly doubtedSince: number | undefined
  /** By feed: when a request was last refused. */
  readonly refusedAt: ReadonlyMap<string, number>
  /** By feed: when a request was last refused, throttled, redirected or failed. */
  readonly askedAt: ReadonlyMap<string, number>
  readonly trials: number
  readonly nextTrialAt: number
}

/** Responses in a row that do not have the API's form. */
export interface ForeignAnswers {
  readonly answers: number
  readonly routes: ReadonlySet<string>
  /** Whether one of them was a 2xx. Refusals alone put access in doubt, not the address. */
  readonly hasSuccess: boolean
}

export type ReachEvent =
  /** A 2xx, or an error that concerns neither access nor the whole API, such as 400. */
  | { kind: 'answered'; at: number; route: string }
  | {
      kind: 'refused'
      at: number
      route: string
      feed: string
      /** Whether the job of the request expects this status. */
      isDeclared: boolean
      isForeign: boolean
      random: () => number
    }
  | { kind: 'throttled'; at: number; route: string; feed: string; random: () => number }
  /** A gateway may redirect a request that has no access, so a redirect is no proof of access. */
  | { kind: 'redirected'; at: number; route: string; feed: string; random: () => number }
  | {
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

/** Failures in a row that put the whole API in doubt. */
const DOUBTFUL_FAILURES = 5
/** The doubt is confirmed when this many further routes fail. */
const CONFIRMATIONS = 2
/** Backoff of the trials during an outage. No wait is longer than the outage has lasted so far. */
const AWAY: Backoff = { firstMs: 1000, mostMs: 15 * 60_000, jitter: 0.5 }

/** This many undeclared refusals since the last answer put access in doubt. */
const DOUBTFUL_REFUSALS = 4
const REFUSED: Backoff = { firstMs: 1000, mostMs: 15_000, jitter: 0.5 }

/** Failures in a row that make a route rest. They must be for two different paths: a single path may always fail. */
const ROUTE_FAILURES = 3
const ROUTE: Backoff = { firstMs: 1000, mostMs: 15 * 60_000, jitter: 0.5 }

/** Limits `giveUpMs` until a request has connected. */
export const FIRST_CONNECTION_MS = 10_000

/**
 * After this many foreign responses in a row, at least one of them a 2xx, another site is at the address. They must
 * come from this many routes, or from as many as the health checks have if that is fewer.
 */
const FOREIGN_ANSWERS = 3
const NO_FOREIGN_ANSWERS: ForeignAnswers = { answers: 0, routes: new Set(), hasSuccess: false }

const NO_TROUBLE: Pick<RouteTrouble, 'failures' | 'paths' | 'rests'> = { failures: 0, paths: [], rests: 0 }

export function startReach(options: ReachOptions, at: number): Reach {
  const { resting = [] } = options
  const lost: AccessRefusal = { ...noRefusal(at), undeclared: DOUBTFUL_REFUSALS, doubtedSince: at }
  return {
    options,
    healthChecks: options.healthChecks,
    wasAnswered: options.wasAnswered,
    routes: new Map(
      resting.map(({ route, until: restUntil, tries: rests, ...trouble }) => [
        route,
        { ...NO_TROUBLE, ...trouble, rests, restUntil },
      ]),
    ),
    silence: undefined,
    refusal: options.accessWasLost ? lost : undefined,
    foreign: NO_FOREIGN_ANSWERS,
    wasConnected: false,
  }
}

export function reachAfter(before: Reach, event: ReachEvent): Reach {
  const reach = { ...before, foreign: foreignAfter(before.foreign, event) }
  switch (event.kind) {
    case 'failed':
      return afterFailure(reach, event)
    case 'throttled':
      // It says nothing about the route, so another trial may follow at once.
      return withNotedTrial(withoutSilence(reach), event)
    case 'redirected':
      return withNotedTrial(afterResponse(reach, event.route), event)
    case 'refused':
      if (event.isDeclared && reach.silence)
        return afterRefusal(stillSilent(reach, reach.silence, event), event)
      return afterRefusal(afterResponse(reach, event.route), event)
    case 'answered':
      return afterGrant(afterResponse(reach, event.route), event.route)
  }
}

/** Whether a route has rested and not been answered since. Trials on it are sent one by one. */
export function isResting({ routes }: Reach, route: string): boolean {
  return (routes.get(route)?.rests ?? 0) > 0
}

/** Time in ms until a request on this route may be sent; 0 when it may be sent now. */
export function restMs({ routes }: Reach, route: string, at: number): number {
  return Math.max(0, (routes.get(route)?.restUntil ?? at) - at)
}

/** The routes that rest for at least `leastMs` in all, by name. */
export function restingRoutes({ routes }: Reach, leastMs: number): RestingRoute[] {
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
export function isAbandoned({ routes }: Reach, route: string): boolean {
  return (routes.get(route)?.rests ?? 0) > RESTS_OF_A_RUN
}

const RESTS_OF_A_RUN = 4

export function nextReachStep(reach: Reach, at: number): NextStep {
  const { silence, refusal } = reach
  if (silence !== undefined && isDoubtful(reach, silence, at)) return stepInSilence(reach, silence, at)
  if (refusal?.doubtedSince !== undefined) return stepInRefusal(reach, refusal, at)
  return { kind: 'any' }
}

/** While access is in doubt, a 403 or 404 for a single row does not mean that the row is deleted. */
export function isAccessInDoubt({ refusal }: Reach): boolean {
  return refusal?.doubtedSince !== undefined
}

/** Why the whole API cannot be read at present. A doubt alone is no trouble. */
export interface Trouble {
  kind: 'silent' | 'refused'
  since: number
  nextTrialAt: number
  reason: string
}

export function troubleOf({ silence, refusal, healthChecks }: Reach): Trouble | undefined {
  if (silence?.isAway) {
    const { since, nextTrialAt, reason } = silence
    return { kind: 'silent', since, nextTrialAt, reason }
  }
  if (refusal?.doubtedSince === undefined || !isMostlyRefused(healthChecks, refusal, NEVER)) return undefined
  const { since, nextTrialAt, refusedAt } = refusal
  const requests = healthChecks.every(({ feed }) => refusedAt.has(feed)) ? 'every request' : 'most requests'
  return { kind: 'refused', since, nextTrialAt, reason: `HTTP 403 or 404 for ${requests}` }
}

/**
 * Ms until a backfill gives up; 0 or less when it must give up now. Infinity in a daemon and without a silence, and when
 * the patience is over while health checks decide whether an API that responded before is away.
 */
export function patienceLeftMs(reach: Reach, at: number): number {
  const { silence, foreign, options } = reach
  if (options.giveUpMs !== undefined && isAnotherSite(reach)) return 0
  if (silence === undefined) return Number.POSITIVE_INFINITY
  const left = quietLeftMs(reach, silence, at)
  return left <= 0 && foreign === undefined && !silence.isAway ? Number.POSITIVE_INFINITY : left
}

/** Ms until the silence has lasted as long as a backfill's patience. Infinity in a daemon. */
function quietLeftMs({ wasConnected, options }: Reach, { quietSince }: Silence, at: number): number {
  const { giveUpMs } = options
  if (giveUpMs === undefined) return Number.POSITIVE_INFINITY
  const patience = wasConnected ? giveUpMs : Math.min(giveUpMs, FIRST_CONNECTION_MS)
  return quietSince + patience - at
}

/** Whether another site than the API is at the address. */
export function isAnotherSite({ foreign, healthChecks }: Reach): boolean {
  if (!foreign?.hasSuccess) return false
  const known = new Set(healthChecks.map(({ request }) => request.route)).size
  return foreign.answers >= FOREIGN_ANSWERS && foreign.routes.size >= Math.min(FOREIGN_ANSWERS, known)
}

/** The state after parley itself waited for `ms`, such as after a 429. The wait does not count as silence. */
export function withoutWait(reach: Reach, ms: number): Reach {
  const { silence } = reach
  if (silence === undefined) return reach
  const { quietSince, waitedMs } = silence
  return { ...reach, silence: { ...silence, quietSince: quietSince + ms, waitedMs: waitedMs + ms } }
}

function foreignAfter(before: ForeignAnswers | undefined, event: ReachEvent): ForeignAnswers | undefined {
  if (before === undefined || event.kind === 'answered') return undefined
  if (event.kind === 'throttled' || event.kind === 'redirected') return NO_FOREIGN_ANSWERS
  if (!event.isForeign) {
    if (event.kind === 'refused') return undefined
    // A failure without a response says nothing about the form of responses.
    return event.status === undefined ? before : NO_FOREIGN_ANSWERS
  }
  return {
    answers: before.answers + 1,
    routes: new Set([...before.routes, event.route]),
    hasSuccess: before.hasSuccess || event.kind === 'failed',
  }
}

function afterResponse(reach: Reach, route: string): Reach {
  const connected = withoutSilence(reach)
  return { ...connected, routes: without(connected.routes, route) }
}

/** While the API was away, routes may have failed for that reason only. So all rests end when the API is back. */
function withoutSilence(reach: Reach): Reach {
  const routes = reach.silence?.isAway ? new Map<string, RouteTrouble>() : reach.routes
  return { ...reach, routes, wasConnected: true, silence: undefined }
}

function afterGrant(reach: Reach, route: string): Reach {
  return {
    ...reach,
    wasAnswered: true,
    refusal: undefined,
    healthChecks: withAnsweredFirst(reach.healthChecks, route),
  }
}

const withNotedTrial = (reach: Reach, event: Parameters<typeof withTrial>[2]): Reach => ({
  ...reach,
  refusal: reach.refusal && withTrial(reach, reach.refusal, event),
})

function withAnsweredFirst(healthChecks: readonly HealthCheck[], route: string): readonly HealthCheck[] {
  const index = healthChecks.findIndex(({ request }) => request.route === route)
  if (index <= 0) return healthChecks
  return [
    ...healthChecks.slice(index, index + 1),
    ...healthChecks.slice(0, index),
    ...healthChecks.slice(index + 1),
  ]
}

function afterRefusal(reach: Reach, event: Extract<ReachEvent, { kind: 'refused' }>): Reach {
  const { at, feed, isDeclared, random } = event
  const before = reach.refusal ?? noRefusal(at)
  const undeclared = before.undeclared + (isDeclared ? 0 : 1)
  const refusal: AccessRefusal = {
    ...before,
    undeclared,
    doubtedSince: before.doubtedSince ?? (undeclared >= DOUBTFUL_REFUSALS ? at : undefined),
    refusedAt: new Map([...before.refusedAt, [feed, at]]),
  }
  return { ...reach, refusal: withTrial(reach, refusal, { at, feed, random }) }
}

/**
 * Records a request that was not answered. While access is in doubt, each such request lengthens the wait before the
 * next trial.
 */
function withTrial(
  { healthChecks }: Reach,
  refusal: AccessRefusal,
  { at, feed, random }: { at: number; feed: string; random: () => number },
): AccessRefusal {
  const trials = refusal.doubtedSince === undefined ? 0 : refusal.trials + 1
  const waitMs = backoffMs(REFUSED, trials - healthChecks.length, random)
  return { ...refusal, askedAt: new Map([...refusal.askedAt, [feed, at]]), trials, nextTrialAt: at + waitMs }
}

function noRefusal(at: number): AccessRefusal {
  return {
    since: at,
    undeclared: 0,
    doubtedSince: undefined,
    refusedAt: new Map(),
    askedAt: new Map(),
    trials: 0,
    nextTrialAt: at,
  }
}

/**
 * While access is in doubt, every health check is sent at once, and once more at the time from which refusals count
 * (`decidesFrom`). In between, single trials find out whether access has returned.
 */
function stepInRefusal(reach: Reach, refusal: AccessRefusal, at: number): NextStep {
  const { healthChecks } = reach
  const { refusedAt, askedAt, nextTrialAt } = refusal
  const countsFrom = decidesFrom(reach, refusal)
  const isRefused = (feed: string) => (refusedAt.get(feed) ?? NEVER) >= countsFrom
  const askedLast = ({ feed }: HealthCheck) => askedAt.get(feed) ?? NEVER
  const [check] = [...healthChecks].sort((one, other) => askedLast(one) - askedLast(other))
  if (check === undefined) {
    if ([...refusedAt.keys()].some(isRefused)) return { kind: 'lost' }
    return at < nextTrialAt ? { kind: 'wait', ms: nextTrialAt - at } : { kind: 'trial' }
  }
  if (healthChecks.every(({ feed }) => isRefused(feed))) return { kind: 'lost' }
  const isLong = at >= (refusal.doubtedSince ?? at) + LONG_DOUBT_MS
  if (isLong && isMostlyRefused(healthChecks, refusal, countsFrom)) return { kind: 'lost' }
  const isDue = askedLast(check) === NEVER || (at >= countsFrom && askedLast(check) < countsFrom)
  const waitMs = isDue ? 0 : (countsFrom > at ? Math.min(nextTrialAt, countsFrom) : nextTrialAt) - at
  return waitMs > 0 ? { kind: 'wait', ms: waitMs } : { kind: 'health-check', check }
}

const NEVER = Number.NEGATIVE_INFINITY

/** After a doubt of this length, access is lost although some of the lists fail in another way. */
const LONG_DOUBT_MS = 15 * 60_000

/** Whether every health check was sent since a time, and at least half of them were refused. An answer ends the doubt. */
function isMostlyRefused(
  healthChecks: readonly HealthCheck[],
  { refusedAt, askedAt }: AccessRefusal,
  since: number,
): boolean {
  const isIn = (times: ReadonlyMap<string, number>) => {
    return ({ feed }: HealthCheck) => times.has(feed) && (times.get(feed) ?? NEVER) >= since
  }
  const refused = healthChecks.filter(isIn(refusedAt))
  return healthChecks.every(isIn(askedAt)) && 2 * refused.length >= healthChecks.length
}

/** Refusals count from this time on. Access is lost when every health check has a refusal that counts. */
function decidesFrom({ options, wasAnswered }: Reach, { doubtedSince }: AccessRefusal): number {
  if (!wasAnswered || doubtedSince === undefined) return Number.MIN_SAFE_INTEGER
  return doubtedSince + options.againAfterMs
}

function afterFailure(reach: Reach, event: Extract<ReachEvent, { kind: 'failed' }>): Reach {
  const silence = silenceAfter(reach, event)
  return {
    ...withNotedTrial(reach, event),
    silence,
    routes: silence.isAway ? reach.routes : routesAfterFailure(reach.routes, event),
    wasConnected: reach.wasConnected || event.cause !== 'unreachable',
  }
}

function silenceAfter(reach: Reach, event: Extract<ReachEvent, { kind: 'failed' }>): Silence {
  const { at, sentAt, route, cause, status, message: reason, random } = event
  const before = reach.silence ?? noSilence(sentAt)
  // A request that fails before the next trial is due was already in flight, so it does not count as a trial.
  if (before.isAway && at < before.nextTrialAt) return { ...before, reason }
  const failed: Silence = {
    ...before,
    reason,
    quietSince: status === undefined || before.isAway ? before.quietSince : at,
    failures: before.failures + 1,
    routes: new Set([...before.routes, route]),
    neverConnected: before.neverConnected && cause === 'unreachable',
    hasStatus: before.hasStatus || status !== undefined,
    confirmations:
      before.confirmations + (isDoubtful(reach, before, at) && !before.routes.has(route) ? 1 : 0),
  }
  return judged(reach, failed, { at, random })
}

/** The state after a response that says nothing about the API behind a gateway. The route counts as tried. */
function stillSilent(
  reach: Reach,
  silence: Silence,
  { at, route, random }: Extract<ReachEvent, { kind: 'refused' }>,
): Reach {
  const tried = { ...silence, routes: new Set([...silence.routes, route]) }
  const isEarly = silence.isAway && at < silence.nextTrialAt
  return {
    ...reach,
    routes: without(reach.routes, route),
    wasConnected: true,
    silence: isEarly ? silence : judged(reach, tried, { at, random }),
  }
}

/** The silence after a request without success: the API may be away now, and each trial makes the next one wait longer. */
function judged(
  reach: Reach,
  silence: Silence,
  { at, random }: { at: number; random: () => number },
): Silence {
  const { isAway, since, waitedMs } = silence
  if (!isAway && !isConfirmed(reach, silence, at)) return silence
  const trials = silence.trials + 1
  const quietSince = isAway ? silence.quietSince : since + waitedMs
  return { ...silence, isAway: true, quietSince, trials, nextTrialAt: at + backoffMs(AWAY, trials, random) }
}

function noSilence(at: number): Silence {
  return {
    since: at,
    quietSince: at,
    waitedMs: 0,
    failures: 0,
    routes: new Set(),
    neverConnected: true,
    hasStatus: false,
    reason: '',
    confirmations: 0,
    isAway: false,
    trials: 0,
    nextTrialAt: at,
  }
}

/**
 * Whether the whole API is in doubt. Errors with an HTTP status on a single route concern only that route. The end of a
 * backfill's patience is a doubt too: the health checks decide whether the run ends.
 */
function isDoubtful(reach: Reach, silence: Silence, at: number): boolean {
  const { isAway, failures, routes, hasStatus } = silence
  if (isAway || (failures >= DOUBTFUL_FAILURES && (routes.size > 1 || !hasStatus))) return true
  return quietLeftMs(reach, silence, at) <= 0
}

function isConfirmed(reach: Reach, silence: Silence, at: number): boolean {
  if (!isDoubtful(reach, silence, at)) return false
  return (
    silence.neverConnected ||
    silence.confirmations >= CONFIRMATIONS ||
    untriedHealthChecks(reach, silence).length === 0
  )
}

/** The health checks on routes that did not fail during the silence and do not rest. */
function untriedHealthChecks(reach: Reach, { routes }: Silence): readonly HealthCheck[] {
  return reach.healthChecks.filter(({ request: { route } }) => !routes.has(route) && !isResting(reach, route))
}

function stepInSilence(reach: Reach, silence: Silence, at: number): NextStep {
  if (silence.isAway && at < silence.nextTrialAt) return { kind: 'wait', ms: silence.nextTrialAt - at }
  const [fresh] = untriedHealthChecks(reach, silence)
  if (fresh) return { kind: 'health-check', check: fresh }
  // Every health check was tried. So all are sent in turn, and the one that was answered most recently comes first.
  const { healthChecks } = reach
  const next = healthChecks[(silence.trials - 1) % Math.max(1, healthChecks.length)]
  return next ? { kind: 'health-check', check: next } : { kind: 'trial' }
}

function routesAfterFailure(
  routes: Reach['routes'],
  { at, route, path, message: reason, random }: Extract<ReachEvent, { kind: 'failed' }>,
): Reach['routes'] {
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

function without(routes: Reach['routes'], route: string): Reach['routes'] {
  if (!routes.has(route)) return routes
  return new Map([...routes].filter(([other]) => other !== route))
}
