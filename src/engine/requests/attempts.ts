import { unauthorized } from '../../api/access-errors.ts'
import type { RetryCause } from '../../api/classify.ts'
import type { Client, Sent } from '../../api/client.ts'
import type { Permit } from '../../api/governor/in-flight.ts'
import { CUT_OFF } from '../../api/outcome-texts.ts'
import type { HealthCheck } from '../../api/reach-events.ts'
import { type ApiRequest, pathWithQuery } from '../../api/request.ts'
import { retryDecision } from '../../api/retry.ts'
import { type ParleyError, ResourceError, RetryError, StopError } from '../../base/errors.ts'
import type { EngineContext } from '../context/context.ts'
import type { ChosenJob, EndlessWork, Job, Lane } from '../context/job.ts'
import { triesOf, tryAgain } from '../due/retries.ts'
import { createKeyDoubt } from './key-doubt.ts'
import { applyOutcome, failJob, finishJob, type OutcomeDeps, ROUTE_FAILING } from './outcome.ts'
import type { GovernorPause, Reachability } from './reachability.ts'
import { countRequest, type SchedulerProgress } from './request-counts.ts'
import type { RouteSlots } from './route-slots.ts'

export type RequestAttempts = ReturnType<typeof createRequestAttempts>

export interface RequestAttemptsDeps extends Pick<OutcomeDeps, 'saveLearned'> {
  context: EngineContext
  client: Client
  reachability: Reachability
  slots: Pick<RouteSlots, 'begin'>
  progress: SchedulerProgress
  /** Whether a 401 before the first answer shows by itself that the key is refused. */
  isFirstRefusalFinal: boolean
  /** Present in the daemon. */
  endless: EndlessWork | undefined
  /** Cancels the requests in flight. */
  cancel: AbortSignal
  pause(): GovernorPause
  random: () => number
  stop(error: unknown): void
  /** Called when the sources of a feed may have a job again. */
  askAgain(feed: string): void
}

/** Sends requests, applies their outcomes and notes failures that are tried again. */
export function createRequestAttempts(deps: RequestAttemptsDeps) {
  const { context, reachability, progress, cancel } = deps
  const { store, log } = context
  let unanswered = 0
  let acceptsRefusals = false
  /** Jobs whose request was refused while it was not clear whether there is access. */
  const unconfirmed: Job[] = []
  /** Ends the unconfirmed jobs. Returns their number. */
  const endUnconfirmed = (again: boolean): number => {
    const jobs = unconfirmed.splice(0)
    for (const job of jobs) {
      job.over(again)
      deps.askAgain(job.feed)
    }
    return jobs.length
  }
  const askUnconfirmed = () => endUnconfirmed(true)
  const keyDoubt = createKeyDoubt(reachability.healthChecks, context.clock)
  /** Jobs whose request was refused with 401 while it is not clear whether the key is refused. */
  const doubted: Job[] = []
  /** The message of the last 401. */
  let refusal = ''
  const endDoubted = (again: boolean) => {
    for (const job of doubted.splice(0)) {
      job.over(again)
      deps.askAgain(job.feed)
    }
  }
  const refusals = createRefusals()

  /**
   * Sends a request. Passes its outcome to the counts, the governor and `reachability`.
   * @throws StopError when the API has been silent for too long, and an AbortError when `cancel` is aborted
   */
  const send = async (
    { resource, feed, request, expected }: Pick<Job, 'resource' | 'feed' | 'request' | 'expected'>,
    lane: Lane | 'retry',
    permit: Permit,
  ): Promise<Sent> => {
    unanswered += 1
    const answered = deps.slots.begin(request.route)
    reachability.noteSending(request)
    const answer = await deps.client.send(request, cancel).finally(() => {
      unanswered -= 1
    })
    const isOfProxy = answer.kind === 'refused' && answer.isWebPage && isDeclaredRefusal({ expected }, answer)
    const isOfRoute = answer.kind === 'unauthorized' && keyDoubt.isOfRoute(request.route)
    const sent: Sent = isOfProxy
      ? { ...answer, ...WEB_PAGE }
      : isOfRoute
        ? { ...answer, ...REFUSED_BY_ROUTE, message: `${answer.message} (other routes accept the key)` }
        : answer
    answered(sent.kind !== 'retry' || sent.status !== undefined)
    countRequest(context, progress, resource, sent)
    if ('serverTime' in sent && sent.serverTime !== undefined)
      context.server.observe(sent.serverTime, sent.durationMs)
    deps.endless?.onSent(request, lane, sent)
    permit.settle(reachability.permitResult(request, sent))
    const isDeclared = isDeclaredRefusal({ expected }, sent)
    reachability.observe({ feed, request, isDeclared }, sent, deps.pause())
    progress.turnedAwayInARow = reachability.refusedInARow()
    reachability.notePause(deps.pause())
    const silent = reachability.silenceError()
    if (silent) throw silent
    return sent
  }

  /** Sends the request and applies the outcome. Never rejects: errors that end the run go to `stop`. */
  const perform = async (chosen: ChosenJob, permit: Permit): Promise<void> => {
    const { job, lane } = chosen
    const ticket = store.freshness.begin()
    try {
      const isOver = context.backoffs.trying(job.feed, job.scope)
      const isRetry = job.reads !== undefined && triesOf(job.reads) > 0
      const observe = refusals.sending(job.request)
      const sent = await send(job, isRetry ? 'retry' : lane, permit).finally(isOver)
      observe(sent)
      await settle(chosen, sent, ticket)
    } catch (error) {
      permit.settle(CUT_OFF)
      job.over(false)
      if (!cancel.aborted) deps.stop(error)
    } finally {
      store.freshness.end(ticket)
    }
  }

  /** Sends a request only to find out whether the API can be reached. Its answer is not stored. Never rejects. */
  const sendHealthCheck = async (check: HealthCheck, permit: Permit): Promise<void> => {
    try {
      const sent = await send({ ...check, expected: undefined }, 'retry', permit)
      if (sent.kind === 'answer') askUnconfirmed()
      const verdict = keyDoubt.checked(check.request.route, sent)
      if (verdict === 'accepted') endDoubted(true)
      if (sent.kind === 'unauthorized') refusal = sent.message
      if (verdict === 'refused') deps.stop(unauthorized(deps.client.access, refusal))
    } catch (error) {
      permit.settle(CUT_OFF)
      if (!cancel.aborted) deps.stop(error)
    }
  }

  const settle = async (chosen: ChosenJob, sent: Sent, ticket: number) => {
    const { job } = chosen
    if (isUnconfirmed(job, sent)) {
      unconfirmed.push(job)
      return
    }
    if (sent.kind === 'unauthorized' && mayBeOfRoute(job.request)) {
      refusal = sent.message
      doubted.push(job)
      return
    }
    if (progress.accepted > 0 && !reachability.isAccessInDoubt()) askUnconfirmed()
    const error = await applyOutcome(deps, chosen, sent, ticket)
    if (error === undefined) {
      if (sent.kind === 'answer') context.backoffs.answered(job.feed, job.scope)
      await finishJob(deps, job)
      job.over(false)
      return
    }
    if (error instanceof StopError) throw error
    if (error instanceof RetryError && !isRefusedByRoute(sent)) {
      const cause = sent.kind === 'retry' ? sent.cause : 'garbled'
      if (await isAskedAgain(job, cause, sent.kind === 'retry' ? sent.waitMs : undefined)) {
        job.over(true)
        return
      }
    }
    if (isRefusedAccess(sent)) progress.turnedAway += 1
    await failJob(deps, chosen, isAbandoned(job) ? routeFailingError(error) : error)
  }

  /** While access is in doubt, or before the first answer, a 403 or 404 says nothing about the requested record. */
  const isUnconfirmed = (job: Job, sent: Sent): boolean => {
    if (!isRefusedAccess(sent)) return false
    if (reachability.isAccessInDoubt()) return true
    return progress.accepted === 0 && !acceptsRefusals && isDeclaredRefusal(job, sent)
  }

  /** Whether another route decides what a 401 means. */
  const mayBeOfRoute = ({ route }: ApiRequest): boolean =>
    !(deps.isFirstRefusalFinal && progress.accepted === 0) && keyDoubt.refused(route)

  const mostAttempts = ({ feed, scope = '', isPart = false, hasFailed = false }: Job) => {
    const { schedule, backoffs } = context
    const isFailing = hasFailed || backoffs.hasFailed(feed, '') || backoffs.hasFailed(feed, scope)
    return attemptsOf({ isPart, hasFailed: schedule.isTimed && isFailing })
  }

  /** In a backfill, a feed whose route keeps failing is left to the next run. */
  const isAbandoned = ({ request }: Job) =>
    deps.endless === undefined && reachability.isAbandoned(request.route)

  /**
   * Whether a failed request is made again. A failure of this request alone is noted, with the time of the next try.
   */
  const isAskedAgain = async (job: Job, cause: RetryCause, waitMs: number | undefined): Promise<boolean> => {
    // While the whole API is silent, or a rate limit refuses requests, the failure is not noted: the rows of the request
    // stay due.
    if (reachability.isAway() || (cause === 'throttled' && !refusals.isAlone(job.request))) return true
    const { reads, resource, request } = job
    if (reads === undefined || isAbandoned(job)) return false
    const attempt = triesOf(reads) + 1
    if (attempt >= mostAttempts(job)) return false
    const decision = retryDecision(
      { cause: cause === 'throttled' ? 'server' : cause, attempt, waitMs },
      deps.random,
    )
    if (!decision.retry) return false
    log.debug('Request is retried', { resource, route: request.route, attempt, reason: cause })
    await store.transaction(() => tryAgain(context, reads, decision.delayMs))
    return true
  }

  return {
    perform,
    sendHealthCheck,
    /** The list to request next to learn whether the key is refused; undefined when that is not in doubt. */
    keyCheck: keyDoubt.next,
    /** Number of requests in flight without an answer. */
    unanswered: () => unanswered,
    /**
     * Makes the unconfirmed requests again, and from then on accepts declared refusals. False when no request
     * is unconfirmed, or when the API also refused a request unexpectedly.
     */
    acceptRefusals(): boolean {
      if (progress.turnedAway > 0 || askUnconfirmed() === 0) return false
      acceptsRefusals = true
      return true
    },
    /** Ends the jobs whose refusal was not confirmed. */
    end(): void {
      endUnconfirmed(false)
      endDoubted(false)
    },
  }
}

/**
 * The most requests in a row that may fail before their job fails. In the daemon, a failed part waits longer after each
 * failure, so it has one attempt. Otherwise the retry rules decide (`api/retry.ts`).
 */
export function attemptsOf({ isPart = false, hasFailed = false }: Pick<Job, 'isPart' | 'hasFailed'>): number {
  if (isPart) return ATTEMPTS_OF_A_PART
  return hasFailed ? 1 : Number.POSITIVE_INFINITY
}

const ATTEMPTS_OF_A_PART = 2

/**
 * Tells a request that is refused with 429 at any rate from one that a rate limit refuses: since its first refusal, the
 * API has accepted a later request of the same route.
 */
function createRefusals() {
  let sent = 0
  /** By path and query: the number of the first request that was refused since the last other answer. */
  const refused = new Map<string, number>()
  /** By route: the number of the last request that was accepted. */
  const accepted = new Map<string, number>()
  return {
    sending(request: ApiRequest) {
      sent += 1
      const number = sent
      return (outcome: Sent) => {
        const name = pathWithQuery(request)
        if (outcome.kind !== 'retry') accepted.set(request.route, number)
        if (outcome.kind !== 'retry' || outcome.cause !== 'throttled') refused.delete(name)
        else if (!refused.has(name)) refused.set(name, number)
      }
    },
    isAlone: (request: ApiRequest): boolean =>
      (accepted.get(request.route) ?? 0) > (refused.get(pathWithQuery(request)) ?? Number.POSITIVE_INFINITY),
  }
}

function isDeclaredRefusal({ expected }: Pick<Job, 'expected'>, sent: Sent): boolean {
  return sent.kind === 'refused' && expected?.[sent.status] !== undefined
}

function isRefusedAccess(sent: Sent): boolean {
  return sent.kind === 'refused' && (sent.status === 403 || sent.status === 404)
}

function routeFailingError({ message }: ParleyError): ResourceError {
  return new ResourceError(`Requests on this route keep failing: ${message}`, {
    code: ROUTE_FAILING,
    hint: 'Run the command again later; it requests the rest.',
  })
}

/** A 401 of one route only is a failure of that route, which rests like one that answers 500. */
const REFUSED_BY_ROUTE = { kind: 'retry', cause: 'server', status: 401 } as const

/** Such a failure lasts, so its job fails at once. */
const isRefusedByRoute = (sent: Sent): boolean =>
  sent.kind === 'retry' && sent.status === REFUSED_BY_ROUTE.status

/** The API answers in JSON (spec: Errors): the 404 of a proxy says nothing about the record. */
const WEB_PAGE = {
  kind: 'retry',
  cause: 'garbled',
  message: 'The answer is a web page, not JSON',
  isForeign: true,
} as const
