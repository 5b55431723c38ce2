import {
  type AccessRefusal,
  isMostlyRefused,
  lostBefore,
  refusalAfter,
  stepInRefusal,
  withTrial,
} from './access-doubt.ts'
import type { FailedRequest, HealthCheck, NextStep, ReachEvent, RefusedRequest } from './reach-events.ts'
import { type RestingRoute, type Routes, routesAfterFailure, routesAtStart, without } from './route-rests.ts'
import {
  isDoubtful,
  quietLeftMs,
  type Silence,
  silenceAfterFailure,
  silenceAfterRefusal,
  stepInSilence,
} from './silence.ts'

/**
 * Decides whether the API can be reached, and which request may be sent next. Pure: a state and an event give the next
 * state. Times are monotonic milliseconds.
 *
 * Each request has one of five results. It is answered by a usable 2xx, or by an error that concerns only this request,
 * such as 400. It is refused by a 403 or 404, throttled by a 429, and redirected by a 3xx. It fails in all other cases:
 * without an HTTP response, with a 2xx that is not JSON, or with a status that is retried, such as 500.
 *
 * Failures put a route to rest (`route-rests.ts`), or the whole API in doubt (`silence.ts`); refusals put access in doubt
 * (`access-doubt.ts`). The address is wrong when several responses in a row, on different routes, do not have the API's
 * form, and no earlier response had it. Then another site is at this address, and a backfill ends at once.
 */

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

export interface Reach {
  readonly options: ReachOptions
  /** Most recently answered first. */
  readonly healthChecks: readonly HealthCheck[]
  readonly wasAnswered: boolean
  readonly routes: Routes
  readonly silence: Silence | undefined
  readonly refusal: AccessRefusal | undefined
  /** Undefined once a response had the API's form. */
  readonly foreign: ForeignAnswers | undefined
  readonly wasConnected: boolean
}

/** Responses in a row that do not have the API's form. */
export interface ForeignAnswers {
  readonly answers: number
  readonly routes: ReadonlySet<string>
  /** Whether one of them was a 2xx. Refusals alone put access in doubt, not the address. */
  readonly hasSuccess: boolean
}

/**
 * After this many foreign responses in a row, at least one of them a 2xx, another site is at the address. They must
 * come from this many routes, or from as many as the health checks have if that is fewer.
 */
const FOREIGN_ANSWERS = 3
const NO_FOREIGN_ANSWERS: ForeignAnswers = { answers: 0, routes: new Set(), hasSuccess: false }

export function startReach(options: ReachOptions, at: number): Reach {
  const { resting = [] } = options
  return {
    options,
    healthChecks: options.healthChecks,
    wasAnswered: options.wasAnswered,
    routes: routesAtStart(resting),
    silence: undefined,
    refusal: options.accessWasLost ? lostBefore(at) : undefined,
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
  if (refusal?.doubtedSince === undefined || !isMostlyRefused(healthChecks, refusal)) return undefined
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
  const routes = reach.silence?.isAway ? new Map() : reach.routes
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

const afterRefusal = (reach: Reach, event: RefusedRequest): Reach => ({
  ...reach,
  refusal: refusalAfter(reach, reach.refusal, event),
})

function afterFailure(reach: Reach, event: FailedRequest): Reach {
  const silence = silenceAfterFailure(reach, reach.silence, event)
  return {
    ...withNotedTrial(reach, event),
    silence,
    routes: silence.isAway ? reach.routes : routesAfterFailure(reach.routes, event),
    wasConnected: reach.wasConnected || event.cause !== 'unreachable',
  }
}

/** The state after a response that says nothing about the API behind a gateway. */
const stillSilent = (reach: Reach, silence: Silence, event: RefusedRequest): Reach => ({
  ...reach,
  routes: without(reach.routes, event.route),
  wasConnected: true,
  silence: silenceAfterRefusal(reach, silence, event),
})
