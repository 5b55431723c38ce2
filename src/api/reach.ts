import { type Backoff, backoffMs } from '../backoff.ts'
import type { RetryCause } from './classify.ts'
import type { ApiRequest } from './request.ts'

/**
 * Decides whether the API can be reached, and which request may be sent next. Pure: a state and an event give the next
 * state.
 *
 * - Route: it works until requests for several things on it failed in a row. Then it rests: one trial after each growing
 *   wait, until a request on it is answered. Other routes are not affected.
 * - Silence: it is in doubt when requests on different routes failed in a row. Then health checks (requests of cheap
 *   lists) are sent on other routes. An answer ends the doubt. When they fail too, the API is away: one trial after each growing
 *   wait, each on another route, until any request is answered.
 * - Access: it is in doubt when several requests in a row got a 403 or 404 that no declaration expects. Then every
 *   health check is sent. An answer ends the doubt. When all are refused, and refused again later, access is lost.
 * - Address: it is wrong when three answers in a row on different routes do not have the API's form, and no earlier
 *   answer had it. Then another site answers there, and a backfill does not wait any longer.
 *
 * Times are monotonic milliseconds.
 */

/** A cheap request to a list that every workspace has. */
export interface HealthCheck {
  /** `resource.feed` */
  feed: string
  request: ApiRequest
}

export interface ReachOptions {
  healthChecks: readonly HealthCheck[]
  /** Access is lost when all health checks are refused again this long after the first refusals. */
  againAfterMs: number
  /** Whether the API answered an earlier run. Refusals may then be temporary; otherwise the first ones are final. */
  wasAnswered: boolean
  /** Whether an earlier session lost access. Health checks are then sent before anything else. */
  accessWasLost: boolean
}

export interface Reach {
  readonly options: ReachOptions
  /** Most recently answered first. */
  readonly healthChecks: readonly HealthCheck[]
  readonly wasAnswered: boolean
  readonly routes: ReadonlyMap<string, RouteTrouble>
  readonly silence: Silence | undefined
  readonly refusal: AccessRefusal | undefined
  /** Undefined once an answer had the API's form. */
  readonly foreign: ForeignAnswers | undefined
  readonly wasConnected: boolean
}

export interface RouteTrouble {
  /** Failures in a row, without those of requests that were in flight when a rest started. */
  readonly failures: number
  /** The first two different paths that failed. */
  readonly paths: readonly string[]
  /** Number of pauses in a row; 0 while the route is only in doubt. */
  readonly rests: number
  /** Infinity while a trial is in flight. */
  readonly restUntil: number
  /** The last failure. */
  readonly reason: string
}

/** Requests without an answer since the last answer. */
export interface Silence {
  /** When the first of them was sent. */
  readonly since: number
  /** Time of the last HTTP response. While the API is away, error responses of a gateway do not count. */
  readonly quietSince: number
  readonly failures: number
  readonly routes: ReadonlySet<string>
  /** Whether all of them failed to connect, which concerns every route alike. */
  readonly neverConnected: boolean
  /** Whether one of them had an HTTP status. */
  readonly hasStatus: boolean
  readonly reason: string
  /** Failures on further routes since the doubt started. */
  readonly confirmations: number
  readonly isAway: boolean
  readonly trials: number
  readonly nextTrialAt: number
}

/** Requests refused with 403 or 404 since the last answer. */
export interface AccessRefusal {
  readonly since: number
  /** Refusals in a row that no declaration expects. */
  readonly undeclared: number
  readonly doubtedSince: number | undefined
  /** By feed: when a health check was last refused, and when it was last sent with any result. */
  readonly refusedAt: ReadonlyMap<string, number>
  readonly askedAt: ReadonlyMap<string, number>
  readonly trials: number
  readonly nextTrialAt: number
}

/** Answers in a row in a form that is not the API's. */
export interface ForeignAnswers {
  readonly answers: number
  readonly routes: ReadonlySet<string>
  /** Whether one of them was a success. Refusals alone are a matter of access. */
  readonly hasSuccess: boolean
}

export type ReachEvent =
  /** 2xx, and every refusal that does not concern access, such as 400. */
  | { kind: 'answered'; at: number; route: string }
  | {
      kind: 'refused'
      at: number
      route: string
      feed: string
      isDeclared: boolean
      isForeign: boolean
      random: () => number
    }
  | { kind: 'throttled'; at: number; route: string }
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
/** Failures on further routes that confirm the doubt. */
const CONFIRMATIONS = 2
const AWAY: Backoff = { firstMs: 1000, mostMs: 60_000, jitter: 0.5 }

/** Undeclared refusals in a row that put access in doubt. */
const DOUBTFUL_REFUSALS = 4
const REFUSED: Backoff = { firstMs: 1000, mostMs: 15_000, jitter: 0.5 }

/** Failures in a row that make a route rest. They must be for two different paths, since a single one may always fail. */
const ROUTE_FAILURES = 3
const ROUTE: Backoff = { firstMs: 1000, mostMs: 5 * 60_000, jitter: 0.5 }

/** The first request of all must at least connect within this time. */
const FIRST_CONNECTION_MS = 10_000

/** Foreign answers in a row that prove another site: each on a different route, if there are that many routes. */
const FOREIGN_ANSWERS = 3
const NO_FOREIGN_ANSWERS: ForeignAnswers = { answers: 0, routes: new Set(), hasSuccess: false }

export function startReach(options: ReachOptions, at: number): Reach {
  const lost: AccessRefusal = { ...noRefusal(at), undeclared: DOUBTFUL_REFUSALS, doubtedSince: at }
  return {
    options,
    healthChecks: options.healthChecks,
    wasAnswered: options.wasAnswered,
    routes: new Map(),
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
      return withFreedRoute({ ...reach, wasConnected: true, silence: undefined }, event.route, event.at)
    case 'refused':
      return afterRefusal(afterResponse(reach, event.route), event)
    case 'answered':
      return afterGrant(afterResponse(reach, event.route), event.route)
  }
}

/** The state while a request on this route is in flight. On a resting route it is the only one. */
export function whileSending(reach: Reach, route: string): Reach {
  const trouble = reach.routes.get(route)
  if (trouble === undefined || trouble.rests === 0) return reach
  return withRoute(reach, route, { ...trouble, restUntil: Number.POSITIVE_INFINITY })
}

/** Time in ms until a request on this route may be sent; 0 when it may be sent now. */
export function restMs({ routes }: Reach, route: string, at: number): number {
  return Math.max(0, (routes.get(route)?.restUntil ?? at) - at)
}

/** Whether a backfill stops trying this route, after `RESTS_OF_A_RUN` rests. */
export function isAbandoned({ routes }: Reach, route: string): boolean {
  return (routes.get(route)?.rests ?? 0) > RESTS_OF_A_RUN
}

const RESTS_OF_A_RUN = 4

export function nextStep(reach: Reach, at: number): NextStep {
  const { silence, refusal } = reach
  if (silence !== undefined && isDoubtful(silence)) return stepInSilence(reach, silence, at)
  if (refusal?.doubtedSince !== undefined) return stepInRefusal(reach, refusal, at)
  return { kind: 'any' }
}

/** While access is in doubt, the refusal of a single row means nothing. */
export function isAccessInDoubt({ refusal }: Reach): boolean {
  return refusal?.doubtedSince !== undefined
}

/** Why the whole API cannot be read at present. There is none while it is only in doubt. */
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
  if (refusal?.doubtedSince === undefined || healthChecks.some(({ feed }) => !refusal.refusedAt.has(feed)))
    return undefined
  const { since, nextTrialAt } = refusal
  return { kind: 'refused', since, nextTrialAt, reason: 'it answers every request with 403 or 404' }
}

/** How long a run may still wait for an answer, in ms. Infinity for a daemon, which never gives up. */
export function patienceLeftMs(reach: Reach, giveUpMs: number, at: number): number {
  const { wasConnected, silence } = reach
  if (giveUpMs === Number.POSITIVE_INFINITY) return giveUpMs
  if (isAnotherSite(reach)) return 0
  if (silence === undefined) return Number.POSITIVE_INFINITY
  const patience = wasConnected ? giveUpMs : Math.min(giveUpMs, FIRST_CONNECTION_MS)
  return silence.quietSince + patience - at
}

/** Whether another site answers at the API's address. */
export function isAnotherSite({ foreign, healthChecks }: Reach): boolean {
  if (!foreign?.hasSuccess) return false
  const known = new Set(healthChecks.map(({ request }) => request.route)).size
  return foreign.answers >= FOREIGN_ANSWERS && foreign.routes.size >= Math.min(FOREIGN_ANSWERS, known)
}

/** Excludes a wait that the API or a setting asked for from the silence. */
export function withoutWait(reach: Reach, ms: number): Reach {
  const { silence } = reach
  return silence ? { ...reach, silence: { ...silence, quietSince: silence.quietSince + ms } } : reach
}

function foreignAfter(before: ForeignAnswers | undefined, event: ReachEvent): ForeignAnswers | undefined {
  if (before === undefined || event.kind === 'answered') return undefined
  if (event.kind === 'throttled') return NO_FOREIGN_ANSWERS
  if (!event.isForeign) {
    if (event.kind === 'refused') return undefined
    // A failure without an answer says nothing about the form of answers.
    return event.status === undefined ? before : NO_FOREIGN_ANSWERS
  }
  return {
    answers: before.answers + 1,
    routes: new Set([...before.routes, event.route]),
    hasSuccess: before.hasSuccess || event.kind === 'failed',
  }
}

function afterResponse(reach: Reach, route: string): Reach {
  // Routes that rested while the API was away may work, so all rests end.
  const isBack = reach.silence?.isAway === true
  const routes =
    isBack || reach.routes.has(route) ? without(isBack ? new Map() : reach.routes, route) : reach.routes
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

/** The state after a request with any result. While access is in doubt, the wait before the next trial grows. */
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
 * While access is in doubt: every health check is sent at once, and again when its refusal decides. In between, single
 * trials find out whether access has returned.
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
  const isDue = askedLast(check) === NEVER || (at >= countsFrom && askedLast(check) < countsFrom)
  const waitMs = isDue ? 0 : Math.min(nextTrialAt, nextSweepAt(countsFrom, at)) - at
  return waitMs > 0 ? { kind: 'wait', ms: waitMs } : { kind: 'health-check', check }
}

const NEVER = Number.NEGATIVE_INFINITY

/** Access is lost when every health check is refused after this time. */
function decidesFrom({ options, wasAnswered }: Reach, { doubtedSince }: AccessRefusal): number {
  if (!wasAnswered || doubtedSince === undefined) return Number.MIN_SAFE_INTEGER
  return doubtedSince + options.againAfterMs
}

function nextSweepAt(countsFrom: number, at: number): number {
  return countsFrom > at ? countsFrom : Number.POSITIVE_INFINITY
}

function afterFailure(reach: Reach, event: Extract<ReachEvent, { kind: 'failed' }>): Reach {
  const silence = silenceAfter(reach, event)
  return {
    ...reach,
    silence,
    refusal: reach.refusal && withTrial(reach, reach.refusal, event),
    routes: silence.isAway ? reach.routes : routesAfterFailure(reach.routes, event),
    wasConnected: reach.wasConnected || event.cause !== 'unreachable',
  }
}

function silenceAfter(reach: Reach, event: Extract<ReachEvent, { kind: 'failed' }>): Silence {
  const { at, sentAt, route, cause, status, message: reason, random } = event
  const before = reach.silence ?? noSilence(sentAt)
  // Requests that were in flight when the API went away, or at the last trial, do not count as a trial.
  if (before.isAway && at < before.nextTrialAt) return { ...before, reason }
  const failed: Silence = {
    ...before,
    reason,
    quietSince: status === undefined || before.isAway ? before.quietSince : at,
    failures: before.failures + 1,
    routes: new Set([...before.routes, route]),
    neverConnected: before.neverConnected && cause === 'unreachable',
    hasStatus: before.hasStatus || status !== undefined,
    confirmations: before.confirmations + (isDoubtful(before) && !before.routes.has(route) ? 1 : 0),
  }
  if (!before.isAway && !isConfirmed(reach, failed)) return failed
  const trials = failed.trials + 1
  const quietSince = before.isAway ? before.quietSince : before.since
  return { ...failed, isAway: true, quietSince, trials, nextTrialAt: at + backoffMs(AWAY, trials, random) }
}

function noSilence(at: number): Silence {
  return {
    since: at,
    quietSince: at,
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

/** Server errors on a single route only concern that route. */
function isDoubtful({ isAway, failures, routes, hasStatus }: Silence): boolean {
  return isAway || (failures >= DOUBTFUL_FAILURES && (routes.size > 1 || !hasStatus))
}

function isConfirmed(reach: Reach, silence: Silence): boolean {
  if (!isDoubtful(silence)) return false
  return (
    silence.neverConnected ||
    silence.confirmations >= CONFIRMATIONS ||
    untriedHealthChecks(reach, silence).length === 0
  )
}

/** Health checks on routes that did not fail. */
function untriedHealthChecks(
  { healthChecks, routes: troubles }: Reach,
  { routes }: Silence,
): readonly HealthCheck[] {
  return healthChecks.filter(
    ({ request: { route } }) => !routes.has(route) && (troubles.get(route)?.rests ?? 0) === 0,
  )
}

function stepInSilence(reach: Reach, silence: Silence, at: number): NextStep {
  if (silence.isAway && at < silence.nextTrialAt) return { kind: 'wait', ms: silence.nextTrialAt - at }
  const [fresh] = untriedHealthChecks(reach, silence)
  if (fresh) return { kind: 'health-check', check: fresh }
  // All have failed: try them in turn, starting with the one that was answered most recently.
  const { healthChecks } = reach
  const next = healthChecks[(silence.trials - 1) % Math.max(1, healthChecks.length)]
  return next ? { kind: 'health-check', check: next } : { kind: 'trial' }
}

function routesAfterFailure(
  routes: Reach['routes'],
  { at, route, path, message: reason, random }: Extract<ReachEvent, { kind: 'failed' }>,
): Reach['routes'] {
  const before = routes.get(route) ?? { failures: 0, paths: [], rests: 0, restUntil: at, reason }
  // Requests that were in flight when the rest started do not count.
  if (at < before.restUntil && before.restUntil !== Number.POSITIVE_INFINITY) return routes
  const failures = before.failures + 1
  const isNew = before.paths.length < 2 && !before.paths.includes(path)
  const paths = isNew ? [...before.paths, path] : before.paths
  const isBroken = failures >= ROUTE_FAILURES && paths.length > 1
  const rests = isBroken ? before.rests + 1 : before.rests
  const restUntil = rests === 0 ? at : at + backoffMs(ROUTE, rests, random)
  return new Map([...routes, [route, { failures, paths, rests, restUntil, reason }]])
}

/** A throttled trial says nothing about the route: another trial may follow. */
function withFreedRoute(reach: Reach, route: string, at: number): Reach {
  const trouble = reach.routes.get(route)
  return trouble?.restUntil === Number.POSITIVE_INFINITY
    ? withRoute(reach, route, { ...trouble, restUntil: at })
    : reach
}

function withRoute(reach: Reach, route: string, trouble: RouteTrouble): Reach {
  return { ...reach, routes: new Map([...reach.routes, [route, trouble]]) }
}

function without(routes: Reach['routes'], route: string): Reach['routes'] {
  return new Map([...routes].filter(([other]) => other !== route))
}
