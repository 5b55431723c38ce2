import { type ApiAccess, accessGone, noAnswerError } from '../../api/access-errors.ts'
import type { Sent } from '../../api/client.ts'
import type { GovernorState } from '../../api/governor/governor.ts'
import type { PermitResult } from '../../api/governor/in-flight.ts'
import {
  after429,
  afterFailure,
  afterSending,
  closedMs,
  closedRoutes,
  concernsOf429,
  isOfOtherRoute,
  limitsAfterAcceptance,
  NO_ROUTE_LIMITS,
  type RouteLimits,
} from '../../api/governor/route-limits.ts'
import { failureCause, failureText, permitResult } from '../../api/outcome-texts.ts'
import {
  isAccessInDoubt,
  isAnotherSite,
  nextReachStep,
  patienceLeftMs,
  type Reach,
  type ReachOptions,
  reachAfter,
  startReach,
  troubleOf,
  withoutWait,
} from '../../api/reach.ts'
import type { NextStep, ReachEvent } from '../../api/reach-events.ts'
import type { ApiRequest } from '../../api/request.ts'
import { isAbandoned, isResting, type RestingRoute, restingRoutes, restMs } from '../../api/route-rests.ts'
import { type Clock, isoInstant, MINUTE_MS } from '../../base/clock.ts'
import type { StopError } from '../../base/errors.ts'
import type { ResourceName } from '../../declare/resource-names.ts'
import {
  API_GATE,
  type ApiGateKind,
  apiGates,
  failureGates,
  GATE_KINDS,
  type Gate,
  ROUTE_GATE,
} from '../../store/sync/gates.ts'
import type { EngineContext } from '../context/context.ts'
import { CATCHING_UP_MS } from '../due/lateness.ts'
import { logOwnLimits, logPauseChange, logReachChange, type NotedPause, type PauseKind } from './reach-log.ts'

export type Reachability = ReturnType<typeof createReachability>

/** Why the API cannot be read. */
export interface Unreachable extends Pick<Gate<ApiGateKind>, 'kind' | 'reason'> {
  /** `since`, `nextTryAt` and `givesUpAt` are in ms since the epoch, by this machine's clock. */
  since: number
  nextTryAt: number
  /** When the run gives up; undefined in the daemon. */
  givesUpAt: number | undefined
}

export interface Asked {
  feed: string
  request: ApiRequest
  isDeclared: boolean
}

export type GovernorPause = Pick<GovernorState, 'pausedUntil' | 'pauseReason'>

export interface ReachabilityDeps {
  context: Pick<EngineContext, 'clock' | 'log' | 'store' | 'backoffs' | 'excusedUntil'>
  /** For error messages. */
  access: ApiAccess
  resources: readonly ResourceName[]
  /** The resources that have requests on this route. */
  resourcesOf(route: string): readonly ResourceName[]
  options: ReachOptions
  /** The gates that an earlier process has closed. */
  before: readonly Gate[]
  random: () => number
}

/** Shorter pauses are not stored. */
const NOTED_PAUSE_MS = 30_000

const PAUSE_REASONS: Readonly<Record<PauseKind, string>> = {
  'asked-to-wait': 'HTTP 429: Too Many Requests',
  'day-used-up': 'api.max_requests_per_day is reached',
}

const THROTTLED = { kind: 'asked-to-wait', reason: PAUSE_REASONS['asked-to-wait'] } as const

/** Holds the state of `api/reach.ts`: updates it with every outcome and records changes in the log and the database. */
export function createReachability({
  context,
  access,
  resources,
  resourcesOf,
  options,
  before,
  random,
}: ReachabilityDeps) {
  const { clock, log, store, backoffs, excusedUntil } = context
  let reach = startReach({ ...options, resting: restingBefore(before, clock) }, clock.elapsed())
  let lastFailure = ''
  /** Whether all responses since the last answer had a form that is not the API's. */
  let onlyForeign: boolean | undefined
  let paused: NotedPause | undefined

  const instant = (elapsed: number) => Math.round(clock.now() + elapsed - clock.elapsed())
  /**
   * When the trouble began, by both clocks. Converted again it would differ a little, and look like another trouble. Only
   * a wall clock that was set counts.
   */
  let began: { at: number; since: number } | undefined
  const trouble = (): Unreachable | undefined => {
    const found = troubleOf(reach)
    if (found) {
      const since = instant(found.since)
      if (began?.at !== found.since || Math.abs(began.since - since) > MINUTE_MS)
        began = { at: found.since, since }
      return {
        kind: found.kind,
        since: began.since,
        nextTryAt: Math.max(instant(found.nextTrialAt), clock.now()),
        reason: found.reason,
        givesUpAt: options.giveUpMs === undefined ? undefined : clock.now() + patienceLeft(),
      }
    }
    if (!paused) return undefined
    const { kind, since, until } = paused
    return { kind, since, nextTryAt: until, reason: PAUSE_REASONS[kind], givesUpAt: undefined }
  }

  /**
   * Whether the wait is for a route with its own limit. While the API is not silent as a whole, such a wait is no
   * silence.
   */
  const isWaitForRoute = () =>
    !reach.silence?.isAway &&
    [...limits.routes.keys()].some(route => closedMs(limits, route, clock.elapsed()) > 0)
  const patienceLeft = () =>
    isWaitForRoute() ? Number.POSITIVE_INFINITY : patienceLeftMs(reach, clock.elapsed())

  let limits: RouteLimits = NO_ROUTE_LIMITS
  const limitsAfter = ({ route }: ApiRequest, sent: Sent, pause: GovernorPause): RouteLimits => {
    const at = clock.elapsed()
    const sentAt = at - sent.durationMs
    const { kind, waitMs } = permitResult(sent)
    if (kind === 'accepted') return limitsAfterAcceptance(limits, { route, at, sentAt })
    if (kind === 'other') return afterFailure(limits, route, at)
    const { pausedUntil = 0, pauseReason } = pause
    const pausedMs = pauseReason === 'requests-per-day' ? 0 : pausedUntil - clock.now()
    return after429(limits, { route, at, sentAt, waitMs, pausedMs, random })
  }

  /**
   * The gates as they were last told. Their times are converted from the monotonic clock to the wall clock only once:
   * converted again they would differ a little, and look like a change.
   */
  let told: { closed: string; gates: Gate[] } = { closed: '[]', gates: [] }
  const routeGates = (): Gate[] => {
    const routes = [
      ...restingRoutes(reach, NOTED_PAUSE_MS).map(one => ({ ...one, kind: 'failing' as const })),
      ...closedRoutes(limits, clock.elapsed(), NOTED_PAUSE_MS).map(one => ({ ...one, ...THROTTLED })),
    ]
    const closed = JSON.stringify(routes)
    if (closed === told.closed) return told.gates
    // A route that fails and is throttled has one gate.
    const gates = new Map(
      routes.map(({ route, since, until, ...gate }) => [
        route,
        gateOf(`${ROUTE_GATE}${route}`, {
          ...gate,
          since: instant(since),
          until: instant(until),
          resources: resourcesOf(route),
        }),
      ]),
    )
    told = { closed, gates: [...gates.values()] }
    return told.gates
  }

  const closedGates = (): Gate[] => {
    const api = trouble()
    const shut = api ? [gateOf(API_GATE, { ...api, until: api.nextTryAt, resources })] : routeGates()
    return [...shut, ...backoffs.closed(NOTED_PAUSE_MS)]
  }

  /** As JSON, the gates in the database. */
  let stored = '[]'
  let seen: readonly Gate[] | undefined
  /**
   * Keeps the rows of `sync_gates` as this process sees the API, for `sync_status` and other processes. An error of a
   * write is ignored: on a full disk another transaction ends the run.
   */
  const storeGates = (closed: readonly Gate[]) => {
    // Each request calls this, and hundreds of CRM objects may be closed, so unchanged gates are skipped first.
    if (closed.length === seen?.length && closed.every((gate, index) => gate === seen?.[index])) return
    for (const name of withoutApi(seen ?? [])) excusedUntil.set(name, clock.elapsed() + CATCHING_UP_MS)
    for (const name of withoutApi(closed)) excusedUntil.set(name, Number.POSITIVE_INFINITY)
    seen = closed
    const rows = JSON.stringify(closed)
    if (rows === stored) return
    stored = rows
    void store.transaction(() => store.gates.set(closed)).catch(() => undefined)
  }
  const noteChange = () => {
    const closed = closedGates()
    // While access is in doubt, an earlier gate of the whole API may still be closed, and its row stays.
    if (!isAccessInDoubt(reach) || closed.some(({ what }) => what === API_GATE)) storeGates(closed)
  }
  backoffs.onChange(noteChange)
  const change = (next: Reach) => {
    const before = reach
    reach = next
    logReachChange(log, { before, after: next, access, now: clock.elapsed() })
    noteChange()
  }

  return {
    /** Replaces the gates that an earlier process stored, unless access was lost. */
    begin(): void {
      stored = JSON.stringify(store.gates.closed())
      if (!options.accessWasLost) storeGates(closedGates())
    },
    noteSending({ route }: ApiRequest): void {
      limits = afterSending(limits, route, clock.elapsed())
    },
    /** What the governor learns from an answer. Call it before `observe`. */
    permitResult({ route }: ApiRequest, sent: Sent): PermitResult {
      const result = permitResult(sent)
      const at = clock.elapsed()
      if (result.kind === 'accepted')
        return { ...result, isElsewhere: isOfOtherRoute(limits, route, at - sent.durationMs) }
      if (result.kind === 'other') return result
      const concerns = concernsOf429(limits, route, at)
      return concerns === 'route' ? { kind: 'other' } : { ...result, mayBeOfRoute: concerns === 'unknown' }
    },
    /** @param pause the governor's pause after the answer, which is stored so that `parley status` can show it */
    observe(asked: Asked, sent: Sent, pause: GovernorPause): void {
      const before = limits
      limits = limitsAfter(asked.request, sent, pause)
      logOwnLimits(log, { before, after: limits, now: clock.elapsed() })
      if (sent.kind === 'retry' && sent.cause !== 'throttled') lastFailure = failureText(sent)
      onlyForeign = sent.kind === 'answer' ? undefined : isForeign(sent, onlyForeign)
      change(reachAfter(reach, eventOf(asked, sent, clock.elapsed(), random)))
    },
    /** The most recently answered first. */
    healthChecks: () => reach.healthChecks,
    next: (): NextStep => nextReachStep(reach, clock.elapsed()),
    /** Whether a route has failed repeatedly and not been answered since: then it has one request at a time. */
    isResting: (route: string): boolean => isResting(reach, route),
    /** Time until a request on this route may be sent, in ms. */
    restMs(route: string): number {
      const at = clock.elapsed()
      return Math.max(restMs(reach, route, at), closedMs(limits, route, at))
    },
    /** Whether a backfill tries this route no more. */
    isAbandoned: (route: string): boolean => isAbandoned(reach, route),
    /** Whether the whole API is silent, so that a failure is not the fault of the request. */
    isAway: () => reach.silence?.isAway === true,
    isAccessInDoubt: () => isAccessInDoubt(reach),
    /** Unexpected 403 and 404 since the last answer. */
    refusedInARow: () => reach.refusal?.undeclared ?? 0,
    /** Stores the governor's current pause, or that it is over, so that `parley status` can show it. */
    notePause({ pausedUntil: until, pauseReason }: GovernorPause): void {
      const kind = pauseReason === 'requests-per-day' ? 'day-used-up' : 'asked-to-wait'
      const before = paused
      if (until === undefined) paused = undefined
      else if (paused || until - clock.now() >= NOTED_PAUSE_MS)
        paused = { kind, since: paused?.kind === kind ? paused.since : clock.now(), until }
      logPauseChange(log, { before, after: paused, now: clock.now() })
      noteChange()
    },
    /** Excludes a wait of parley itself, such as a pause after a 429, from the silence of the API. */
    excludeWait(ms: number): void {
      reach = withoutWait(reach, ms)
    },
    /** Time until the run gives up, in ms; infinite in the daemon. */
    patienceLeftMs: patienceLeft,
    /** The error that ends the run when the API has been silent for too long. */
    silenceError(): StopError | undefined {
      if (patienceLeft() > 0) return undefined
      return noAnswerError(access, lastFailure, onlyForeign === true || isAnotherSite(reach))
    },
    /** The error that ends the run when access is lost. */
    accessError: () => accessGone(access, onlyForeign === true),
    trouble,
    /** Removes the stored gates of the API when this process stops reading. */
    end: () => storeGates(failureGates(closedGates())),
  }
}

/** The resources that cannot be read because of the API itself. */
const withoutApi = (gates: readonly Gate[]) =>
  apiGates(gates).flatMap(({ kind, resources }) => (GATE_KINDS[kind].isFault ? resources : []))

type Closed = Pick<Gate, 'kind' | 'reason' | 'resources'> & { since: number; until: number; tries?: number }

function gateOf(what: string, { kind, reason, since, until, resources, tries = 0 }: Closed): Gate {
  return { what, kind, since: isoInstant(since), until: isoInstant(until), reason, resources, tries }
}

/** The routes that an earlier process has closed since they failed. Each may be tried at once. */
function restingBefore(
  gates: readonly Gate[],
  { now, elapsed }: Pick<Clock, 'now' | 'elapsed'>,
): RestingRoute[] {
  return gates
    .filter(({ what, kind }) => what.startsWith(ROUTE_GATE) && kind === 'failing')
    .map(({ what, since, reason, tries }) => ({
      route: what.slice(ROUTE_GATE.length),
      since: elapsed() - (now() - Date.parse(since)),
      until: elapsed(),
      tries,
      reason,
    }))
}

/** A failure without a response says nothing about the form of responses. */
function isForeign(sent: Sent, before: boolean | undefined): boolean | undefined {
  if (sent.kind === 'retry' && sent.status === undefined) return before
  const isForeignNow = (sent.kind === 'refused' || sent.kind === 'retry') && sent.isForeign === true
  return isForeignNow && before !== false
}

function eventOf(
  { feed, request, isDeclared }: Asked,
  sent: Sent,
  at: number,
  random: () => number,
): ReachEvent {
  const { route } = request
  if (sent.kind === 'refused' && (sent.status === 403 || sent.status === 404)) {
    return { kind: 'refused', at, route, feed, isDeclared, isForeign: sent.isForeign, random }
  }
  if (sent.kind === 'fault' && sent.code === 'redirect')
    return { kind: 'redirected', at, route, feed, random }
  if (sent.kind !== 'retry') return { kind: 'answered', at, route }
  const { cause, status } = sent
  if (cause === 'throttled') return { kind: 'throttled', at, route, feed, random }
  const sentAt = at - sent.durationMs
  return {
    kind: 'failed',
    at,
    sentAt,
    route,
    feed,
    path: request.path,
    cause,
    status,
    isForeign: sent.isForeign === true,
    message: failureCause(sent),
    random,
  }
}
