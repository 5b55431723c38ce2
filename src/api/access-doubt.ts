import { type Backoff, backoffMs } from '../base/backoff.ts'
import type { HealthCheck, NextStep, RefusedRequest } from './reach-events.ts'

/**
 * Whether access is lost. It is in doubt after several unexpected refusals since the last answer. Then every health check
 * is sent. An answer ends the doubt. When all health checks are refused, and later refused again, access is lost; after a
 * long doubt also when only most of them are refused, and the others fail.
 */

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

/** What decides about refusals besides them. */
export interface AroundRefusal {
  /** Most recently answered first. */
  readonly healthChecks: readonly HealthCheck[]
  /** If the API has never answered, the first refusals are final. */
  readonly wasAnswered: boolean
  /** Access is lost when all health checks are refused again, this long after the doubt began. */
  readonly options: { readonly againAfterMs: number }
}

/** This many undeclared refusals since the last answer put access in doubt. */
const DOUBTFUL_REFUSALS = 4
const REFUSED: Backoff = { firstMs: 1000, mostMs: 15_000, jitter: 0.5 }

/** The doubt of a session that follows one that lost access. */
export const lostBefore = (at: number): AccessRefusal => ({
  ...noRefusal(at),
  undeclared: DOUBTFUL_REFUSALS,
  doubtedSince: at,
})

/** @param earlier the refusals before this one */
export function refusalAfter(
  reach: AroundRefusal,
  earlier: AccessRefusal | undefined,
  { at, feed, isDeclared, random }: RefusedRequest,
): AccessRefusal {
  const before = earlier ?? noRefusal(at)
  const undeclared = before.undeclared + (isDeclared ? 0 : 1)
  const refusal: AccessRefusal = {
    ...before,
    undeclared,
    doubtedSince: before.doubtedSince ?? (undeclared >= DOUBTFUL_REFUSALS ? at : undefined),
    refusedAt: new Map([...before.refusedAt, [feed, at]]),
  }
  return withTrial(reach, refusal, { at, feed, random })
}

/**
 * Records a request that was not answered. While access is in doubt, each such request lengthens the wait before the
 * next trial.
 */
export function withTrial(
  { healthChecks }: AroundRefusal,
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
export function stepInRefusal(reach: AroundRefusal, refusal: AccessRefusal, at: number): NextStep {
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
export function isMostlyRefused(
  healthChecks: readonly HealthCheck[],
  { refusedAt, askedAt }: AccessRefusal,
  since = NEVER,
): boolean {
  const isIn = (times: ReadonlyMap<string, number>) => {
    return ({ feed }: HealthCheck) => times.has(feed) && (times.get(feed) ?? NEVER) >= since
  }
  const refused = healthChecks.filter(isIn(refusedAt))
  return healthChecks.every(isIn(askedAt)) && 2 * refused.length >= healthChecks.length
}

/** Refusals count from this time on. Access is lost when every health check has a refusal that counts. */
function decidesFrom({ options, wasAnswered }: AroundRefusal, { doubtedSince }: AccessRefusal): number {
  if (!wasAnswered || doubtedSince === undefined) return Number.MIN_SAFE_INTEGER
  return doubtedSince + options.againAfterMs
}
