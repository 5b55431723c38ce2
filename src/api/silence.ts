import { type Backoff, backoffMs } from '../base/backoff.ts'
import type { FailedRequest, HealthCheck, NextStep, RefusedRequest } from './reach-events.ts'
import { isResting, type WithRoutes } from './route-rests.ts'

/**
 * Whether the whole API is silent. It is in doubt after several failures in a row, on different routes or without any
 * HTTP status, and when a backfill's patience is over. Then health checks (requests for cheap lists) are sent on other
 * routes. A result that is not a failure ends the doubt: a single route that fails never ends a run. A refusal that was
 * expected does not: a gateway refuses what it does not know, whatever has happened to the API behind it.
 *
 * When the health checks fail as well, or when no request could even connect, the API is away: trials are sent one by
 * one, with a growing wait before each, and each on another route. A trial that does not fail ends this state.
 */

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

/** What decides about a silence besides it. */
export interface AroundSilence extends WithRoutes {
  /** Most recently answered first. */
  readonly healthChecks: readonly HealthCheck[]
  readonly wasConnected: boolean
  /** `giveUpMs`: how long a backfill waits for a silent API. Undefined in the daemon. */
  readonly options: { readonly giveUpMs?: number }
}

/** Failures in a row that put the whole API in doubt. */
const DOUBTFUL_FAILURES = 5
/** The doubt is confirmed when this many further routes fail. */
const CONFIRMATIONS = 2
/** Backoff of the trials during an outage. No wait is longer than the outage has lasted so far. */
const AWAY: Backoff = { firstMs: 1000, mostMs: 15 * 60_000, jitter: 0.5 }

/** Limits `giveUpMs` until a request has connected. */
export const FIRST_CONNECTION_MS = 10_000

/** Ms until the silence has lasted as long as a backfill's patience. Infinity in a daemon. */
export function quietLeftMs(
  { wasConnected, options }: AroundSilence,
  { quietSince }: Silence,
  at: number,
): number {
  const { giveUpMs } = options
  if (giveUpMs === undefined) return Number.POSITIVE_INFINITY
  const patience = wasConnected ? giveUpMs : Math.min(giveUpMs, FIRST_CONNECTION_MS)
  return quietSince + patience - at
}

/** @param earlier the silence before this failure */
export function silenceAfterFailure(
  reach: AroundSilence,
  earlier: Silence | undefined,
  event: FailedRequest,
): Silence {
  const { at, sentAt, route, cause, status, message: reason, random } = event
  const before = earlier ?? noSilence(sentAt)
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

/** The silence after a response that says nothing about the API behind a gateway. The route counts as tried. */
export function silenceAfterRefusal(
  reach: AroundSilence,
  silence: Silence,
  { at, route, random }: RefusedRequest,
): Silence {
  if (silence.isAway && at < silence.nextTrialAt) return silence
  const tried = { ...silence, routes: new Set([...silence.routes, route]) }
  return judged(reach, tried, { at, random })
}

/** The silence after a request without success: the API may be away now, and each trial makes the next one wait longer. */
function judged(
  reach: AroundSilence,
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
export function isDoubtful(reach: AroundSilence, silence: Silence, at: number): boolean {
  const { isAway, failures, routes, hasStatus } = silence
  if (isAway || (failures >= DOUBTFUL_FAILURES && (routes.size > 1 || !hasStatus))) return true
  return quietLeftMs(reach, silence, at) <= 0
}

function isConfirmed(reach: AroundSilence, silence: Silence, at: number): boolean {
  if (!isDoubtful(reach, silence, at)) return false
  return (
    silence.neverConnected ||
    silence.confirmations >= CONFIRMATIONS ||
    untriedHealthChecks(reach, silence).length === 0
  )
}

/** The health checks on routes that did not fail during the silence and do not rest. */
function untriedHealthChecks(reach: AroundSilence, { routes }: Silence): readonly HealthCheck[] {
  return reach.healthChecks.filter(({ request: { route } }) => !routes.has(route) && !isResting(reach, route))
}

export function stepInSilence(reach: AroundSilence, silence: Silence, at: number): NextStep {
  if (silence.isAway && at < silence.nextTrialAt) return { kind: 'wait', ms: silence.nextTrialAt - at }
  const [fresh] = untriedHealthChecks(reach, silence)
  if (fresh) return { kind: 'health-check', check: fresh }
  // Every health check was tried. So all are sent in turn, and the one that was answered most recently comes first.
  const { healthChecks } = reach
  const next = healthChecks[(silence.trials - 1) % Math.max(1, healthChecks.length)]
  return next ? { kind: 'health-check', check: next } : { kind: 'trial' }
}
