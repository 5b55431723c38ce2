import { type Backoff, backoffMs } from '../backoff.ts'
import type { RetryCause } from './classify.ts'
import type { ApiRequest } from './request.ts'

/**
 * Whether the API can be reached. Pure: a state and what was heard give a state, and a state says what may be asked.
 *
 * - A route works until requests for several things on it failed in a row. Then it rests, with one trial at the end of
 *   each growing wait, until a request on it is answered. Other routes are not touched.
 * - The API answers until requests on different routes failed in a row. Then witnesses (cheap lists) on routes that did
 *   not fail are asked. An answer ends the doubt; when they fail too, the API is away: one trial at the end of each
 *   growing wait, each on another route, until anything is answered.
 * - Access is granted until several requests in a row were refused with 403 or 404 that nothing declares. Then every
 *   witness is asked. An answer ends the doubt; when all are refused, and refused again some time later, access is lost.
 * - The address is the API's until three answers in a row on different routes have a form that is not the API's, and no
 *   answer had its form before. Then another site answers there, and a run that ends waits no longer.
 *
 * Times are monotonic milliseconds.
 */

/** A cheap request to a list that every workspace has. */
export interface Witness {
  /** `resource.feed` */
  feed: string
  request: ApiRequest
}

export interface ReachOptions {
  witnesses: readonly Witness[]
  /** How long after the first refusals all witnesses must be refused again before lost access is believed. */
  againAfterMs: number
  /** The API has answered an earlier run, so that refusals may be a fault that passes. Else the first ones count. */
  wasAnswered: boolean
  /** An earlier session ended because access was lost: witnesses are asked before anything else. */
  accessWasLost: boolean
}

export interface Reach {
  readonly options: ReachOptions
  /** Most recently answered first. */
  readonly witnesses: readonly Witness[]
  readonly wasAnswered: boolean
  readonly routes: ReadonlyMap<string, RouteTrouble>
  readonly silence: Silence | undefined
  readonly refusal: Refusal | undefined
  /** Undefined once an answer had the form of the API's. */
  readonly foreign: ForeignAnswers | undefined
  readonly wasConnected: boolean
}

export interface RouteTrouble {
  /** In a row, the requests that were under way when a rest began left out. */
  readonly failures: number
  /** The first different paths that failed, two at most. */
  readonly paths: readonly string[]
  /** How many rests in a row; 0 while the route is only suspected. */
  readonly rests: number
  /** Infinite while a trial is under way. */
  readonly restUntil: number
  /** What the last failure was. */
  readonly reason: string
}

/** Requests without an answer since the last answer. */
export interface Silence {
  /** When the first of them was sent. */
  readonly since: number
  /** Since when there was no HTTP response at all; while the API is away those of a gateway do not count. */
  readonly quietSince: number
  readonly failures: number
  readonly routes: ReadonlySet<string>
  /** All of them failed before the connection was made, which says the same of every route. */
  readonly neverConnected: boolean
  /** One of them had an HTTP status. */
  readonly hasStatus: boolean
  readonly reason: string
  /** Failures on further routes since the doubt began. */
  readonly confirmations: number
  readonly isAway: boolean
  readonly trials: number
  readonly nextTrialAt: number
}

/** Requests refused with 403 or 404 since the last answer. */
export interface Refusal {
  readonly since: number
  /** Those that nothing declares, in a row. */
  readonly undeclared: number
  readonly doubtedSince: number | undefined
  /** By feed: when a witness was refused last, and when it was asked last, whatever came of it. */
  readonly refusedAt: ReadonlyMap<string, number>
  readonly askedAt: ReadonlyMap<string, number>
  readonly trials: number
  readonly nextTrialAt: number
}

/** Answers in a row in a form that is not the API's. */
export interface ForeignAnswers {
  readonly answers: number
  readonly routes: ReadonlySet<string>
  /** One of them was a success. Refusals alone are judged as refusals. */
  readonly hasSuccess: boolean
}

export type Heard =
  /** 2xx, and every refusal that is not of access, such as 400. */
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
      /** Tells the things that a route is asked for apart. A list is one, however its pages are asked for. */
      path: string
      cause: Exclude<RetryCause, 'throttled'>
      status: number | undefined
      isForeign: boolean
      message: string
      random: () => number
    }

/** What may be asked next. */
export type NextStep =
  | { kind: 'any' }
  /** This one, alone. */
  | { kind: 'witness'; witness: Witness }
  /** Anything, alone: no witness is known. */
  | { kind: 'trial' }
  | { kind: 'wait'; ms: number }
  /** Access is lost. */
  | { kind: 'lost' }

/** So many failures in a row, and it is not the things that were asked for. */
const DOUBTFUL_FAILURES = 5
/** So many failing witnesses confirm it. */
const CONFIRMATIONS = 2
const AWAY: Backoff = { firstMs: 1000, mostMs: 60_000, jitter: 0.5 }

/** So many undeclared refusals in a row. */
const DOUBTFUL_REFUSALS = 4
const REFUSED: Backoff = { firstMs: 1000, mostMs: 15_000, jitter: 0.5 }

/** So many failures in a row, and for two different paths: one record or one page of a list may always fail. */
const ROUTE_FAILURES = 3
const ROUTE: Backoff = { firstMs: 1000, mostMs: 5 * 60_000, jitter: 0.5 }

/** The first request of all must at least connect within this time. */
const FIRST_CONNECTION_MS = 10_000

/** So many foreign answers in a row, on as many routes where so many are known. */
const FOREIGN_ANSWERS = 3
const NO_FOREIGN_ANSWERS: ForeignAnswers = { answers: 0, routes: new Set(), hasSuccess: false }

export function startReach(options: ReachOptions, at: number): Reach {
  const lost: Refusal = { ...noRefusal(at), undeclared: DOUBTFUL_REFUSALS, doubtedSince: at }
  return {
    options,
    witnesses: options.witnesses,
    wasAnswered: options.wasAnswered,
    routes: new Map(),
    silence: undefined,
    refusal: options.accessWasLost ? lost : undefined,
    foreign: NO_FOREIGN_ANSWERS,
    wasConnected: false,
  }
}

export function heard(before: Reach, event: Heard): Reach {
  const reach = { ...before, foreign: foreignAfter(before.foreign, event) }
  switch (event.kind) {
    case 'failed':
      return afterFailure(reach, event)
    case 'throttled':
      return routeFreed({ ...reach, wasConnected: true, silence: undefined }, event.route, event.at)
    case 'refused':
      return afterRefusal(afterResponse(reach, event.route), event)
    case 'answered':
      return afterGrant(afterResponse(reach, event.route), event.route)
  }
}

/** A request on this route is about to be sent: on a route that rests it is the only one. */
export function sending(reach: Reach, route: string): Reach {
  const trouble = reach.routes.get(route)
  if (trouble === undefined || trouble.rests === 0) return reach
  return withRoute(reach, route, { ...trouble, restUntil: Number.POSITIVE_INFINITY })
}

/** Until a request on this route may be sent, in ms; 0 when it may. */
export function restMs({ routes }: Reach, route: string, at: number): number {
  return Math.max(0, (routes.get(route)?.restUntil ?? at) - at)
}

/** A route that failed again after so many rests is given up by a run that ends. */
export function isGivenUp({ routes }: Reach, route: string): boolean {
  return (routes.get(route)?.rests ?? 0) > RESTS_OF_A_RUN
}

const RESTS_OF_A_RUN = 4

export function nextStep(reach: Reach, at: number): NextStep {
  const { silence, refusal } = reach
  if (silence !== undefined && isDoubtful(silence)) return stepInSilence(reach, silence, at)
  if (refusal?.doubtedSince !== undefined) return stepInRefusal(reach, refusal, at)
  return { kind: 'any' }
}

/** Whether what is refused now may be believed: not while access as such is in doubt. */
export function isAccessInDoubt({ refusal }: Reach): boolean {
  return refusal?.doubtedSince !== undefined
}

/** Why the API as a whole cannot be read at present, once that is more than a doubt. */
export interface Trouble {
  kind: 'silent' | 'refused'
  since: number
  nextTrialAt: number
  reason: string
}

export function troubleOf({ silence, refusal, witnesses }: Reach): Trouble | undefined {
  if (silence?.isAway) {
    const { since, nextTrialAt, reason } = silence
    return { kind: 'silent', since, nextTrialAt, reason }
  }
  if (refusal?.doubtedSince === undefined || witnesses.some(({ feed }) => !refusal.refusedAt.has(feed)))
    return undefined
  const { since, nextTrialAt } = refusal
  return { kind: 'refused', since, nextTrialAt, reason: 'it answers 403 or 404 to everything' }
}

/** How long a run may still wait for an answer that gives up after so long. What never gives up waits indefinitely. */
export function patienceLeftMs(reach: Reach, giveUpMs: number, at: number): number {
  const { wasConnected, silence } = reach
  if (giveUpMs === Number.POSITIVE_INFINITY) return giveUpMs
  if (isAnotherSite(reach)) return 0
  if (silence === undefined) return Number.POSITIVE_INFINITY
  const patience = wasConnected ? giveUpMs : Math.min(giveUpMs, FIRST_CONNECTION_MS)
  return silence.quietSince + patience - at
}

/** Whether something else than the API answers at its address. */
export function isAnotherSite({ foreign, witnesses }: Reach): boolean {
  if (!foreign?.hasSuccess) return false
  const known = new Set(witnesses.map(({ request }) => request.route)).size
  return foreign.answers >= FOREIGN_ANSWERS && foreign.routes.size >= Math.min(FOREIGN_ANSWERS, known)
}

/** A wait that the API or the owner asked for is no silence. */
export function excused(reach: Reach, ms: number): Reach {
  const { silence } = reach
  return silence ? { ...reach, silence: { ...silence, quietSince: silence.quietSince + ms } } : reach
}

function foreignAfter(before: ForeignAnswers | undefined, event: Heard): ForeignAnswers | undefined {
  if (before === undefined || event.kind === 'answered') return undefined
  if (event.kind === 'throttled') return NO_FOREIGN_ANSWERS
  if (!event.isForeign) {
    if (event.kind === 'refused') return undefined
    // What fails without an answer tells nothing of its form.
    return event.status === undefined ? before : NO_FOREIGN_ANSWERS
  }
  return {
    answers: before.answers + 1,
    routes: new Set([...before.routes, event.route]),
    hasSuccess: before.hasSuccess || event.kind === 'failed',
  }
}

function afterResponse(reach: Reach, route: string): Reach {
  // What rested while the API was away did so for no fault of its own.
  const isBack = reach.silence?.isAway === true
  const routes =
    isBack || reach.routes.has(route) ? without(isBack ? new Map() : reach.routes, route) : reach.routes
  return { ...reach, routes, wasConnected: true, silence: undefined }
}

function afterGrant(reach: Reach, route: string): Reach {
  return { ...reach, wasAnswered: true, refusal: undefined, witnesses: answeredFirst(reach.witnesses, route) }
}

function answeredFirst(witnesses: readonly Witness[], route: string): readonly Witness[] {
  const index = witnesses.findIndex(({ request }) => request.route === route)
  if (index <= 0) return witnesses
  return [...witnesses.slice(index, index + 1), ...witnesses.slice(0, index), ...witnesses.slice(index + 1)]
}

function afterRefusal(reach: Reach, event: Extract<Heard, { kind: 'refused' }>): Reach {
  const { at, feed, isDeclared, random } = event
  const before = reach.refusal ?? noRefusal(at)
  const undeclared = before.undeclared + (isDeclared ? 0 : 1)
  const refusal: Refusal = {
    ...before,
    undeclared,
    doubtedSince: before.doubtedSince ?? (undeclared >= DOUBTFUL_REFUSALS ? at : undefined),
    refusedAt: new Map([...before.refusedAt, [feed, at]]),
  }
  return { ...reach, refusal: tried(reach, refusal, { at, feed, random }) }
}

/** A request was made, whatever came of it: while access is in doubt the next one waits for longer. */
function tried(
  { witnesses }: Reach,
  refusal: Refusal,
  { at, feed, random }: { at: number; feed: string; random: () => number },
): Refusal {
  const trials = refusal.doubtedSince === undefined ? 0 : refusal.trials + 1
  const waitMs = backoffMs(REFUSED, trials - witnesses.length, random)
  return { ...refusal, askedAt: new Map([...refusal.askedAt, [feed, at]]), trials, nextTrialAt: at + waitMs }
}

function noRefusal(at: number): Refusal {
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

/** All are asked at once, and again when it counts; in between one at a time finds out whether it is over. */
function stepInRefusal(reach: Reach, refusal: Refusal, at: number): NextStep {
  const { witnesses } = reach
  const { refusedAt, askedAt, nextTrialAt } = refusal
  const countsFrom = countedFrom(reach, refusal)
  const isRefused = (feed: string) => (refusedAt.get(feed) ?? NEVER) >= countsFrom
  const askedLast = ({ feed }: Witness) => askedAt.get(feed) ?? NEVER
  const [witness] = [...witnesses].sort((one, other) => askedLast(one) - askedLast(other))
  if (witness === undefined) {
    if ([...refusedAt.keys()].some(isRefused)) return { kind: 'lost' }
    return at < nextTrialAt ? { kind: 'wait', ms: nextTrialAt - at } : { kind: 'trial' }
  }
  if (witnesses.every(({ feed }) => isRefused(feed))) return { kind: 'lost' }
  const isDue = askedLast(witness) === NEVER || (at >= countsFrom && askedLast(witness) < countsFrom)
  const waitMs = isDue ? 0 : Math.min(nextTrialAt, nextSweepAt(countsFrom, at)) - at
  return waitMs > 0 ? { kind: 'wait', ms: waitMs } : { kind: 'witness', witness }
}

const NEVER = Number.NEGATIVE_INFINITY

/** Refusals from then on, by every witness, tell that access is lost. */
function countedFrom({ options, wasAnswered }: Reach, { doubtedSince }: Refusal): number {
  if (!wasAnswered || doubtedSince === undefined) return Number.MIN_SAFE_INTEGER
  return doubtedSince + options.againAfterMs
}

function nextSweepAt(countsFrom: number, at: number): number {
  return countsFrom > at ? countsFrom : Number.POSITIVE_INFINITY
}

function afterFailure(reach: Reach, event: Extract<Heard, { kind: 'failed' }>): Reach {
  const silence = silenceAfter(reach, event)
  return {
    ...reach,
    silence,
    refusal: reach.refusal && tried(reach, reach.refusal, event),
    routes: silence.isAway ? reach.routes : troubled(reach.routes, event),
    wasConnected: reach.wasConnected || event.cause !== 'unreachable',
  }
}

function silenceAfter(reach: Reach, event: Extract<Heard, { kind: 'failed' }>): Silence {
  const { at, sentAt, route, cause, status, message: reason, random } = event
  const before = reach.silence ?? noSilence(sentAt)
  // What was under way when the last trial was made, or when the API went away, is no further step.
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

/** A server error on one route alone is that route's. */
function isDoubtful({ isAway, failures, routes, hasStatus }: Silence): boolean {
  return isAway || (failures >= DOUBTFUL_FAILURES && (routes.size > 1 || !hasStatus))
}

function isConfirmed(reach: Reach, silence: Silence): boolean {
  if (!isDoubtful(silence)) return false
  return (
    silence.neverConnected || silence.confirmations >= CONFIRMATIONS || unheard(reach, silence).length === 0
  )
}

/** Witnesses on routes that did not fail. */
function unheard({ witnesses, routes: troubles }: Reach, { routes }: Silence): readonly Witness[] {
  return witnesses.filter(
    ({ request: { route } }) => !routes.has(route) && (troubles.get(route)?.rests ?? 0) === 0,
  )
}

function stepInSilence(reach: Reach, silence: Silence, at: number): NextStep {
  if (silence.isAway && at < silence.nextTrialAt) return { kind: 'wait', ms: silence.nextTrialAt - at }
  const [fresh] = unheard(reach, silence)
  if (fresh) return { kind: 'witness', witness: fresh }
  // All have failed: in turn, the one that was answered last first.
  const { witnesses } = reach
  const next = witnesses[(silence.trials - 1) % Math.max(1, witnesses.length)]
  return next ? { kind: 'witness', witness: next } : { kind: 'trial' }
}

function troubled(
  routes: Reach['routes'],
  { at, route, path, message: reason, random }: Extract<Heard, { kind: 'failed' }>,
): Reach['routes'] {
  const before = routes.get(route) ?? { failures: 0, paths: [], rests: 0, restUntil: at, reason }
  // What was under way when the rest began is no further failure.
  if (at < before.restUntil && before.restUntil !== Number.POSITIVE_INFINITY) return routes
  const failures = before.failures + 1
  const isNew = before.paths.length < 2 && !before.paths.includes(path)
  const paths = isNew ? [...before.paths, path] : before.paths
  const isBroken = failures >= ROUTE_FAILURES && paths.length > 1
  const rests = isBroken ? before.rests + 1 : before.rests
  const restUntil = rests === 0 ? at : at + backoffMs(ROUTE, rests, random)
  return new Map([...routes, [route, { failures, paths, rests, restUntil, reason }]])
}

/** A trial was refused for its rate, which says nothing of the route: another may follow. */
function routeFreed(reach: Reach, route: string, at: number): Reach {
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
