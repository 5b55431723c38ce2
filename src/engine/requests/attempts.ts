import { unauthorized } from '../../api/access-errors.ts'
import type { RetryCause } from '../../api/classify.ts'
import type { Client, Sent } from '../../api/client.ts'
import type { Permit } from '../../api/governor/in-flight.ts'
import { CUT_OFF } from '../../api/outcome-texts.ts'
import type { HealthCheck } from '../../api/reach.ts'
import { retryDecision } from '../../api/retry.ts'
import { ResourceError, RetryError, StopError } from '../../base/errors.ts'
import type { EngineContext } from '../context/context.ts'
import type { Attempt, EndlessWork, Job, Lane } from '../context/job.ts'
import { applyOutcome, failJob, finishJob, type OutcomeDeps } from './outcome.ts'
import type { PendingAttempts } from './pending-attempts.ts'
import type { GovernorPause, Reachability } from './reachability.ts'
import { countRequest, type SchedulerProgress } from './request-counts.ts'
import type { RouteSlots } from './route-slots.ts'

/** Sends requests, applies their outcomes and retries failures. */
export interface RequestAttempts extends Pick<Sender, 'unanswered'> {
  /** Sends the request and applies the outcome. Never rejects: errors that end the run go to `stop`. */
  perform(attempt: Attempt, permit: Permit): Promise<void>
  /** Sends a request only to find out whether the API can be reached. Its answer is not stored. Never rejects. */
  sendHealthCheck(check: HealthCheck, permit: Permit): Promise<void>
  /** Fails the job without a request, since requests on its route keep failing. */
  refuse(attempt: Attempt, reason: string): Promise<void>
  /**
   * Retries the unconfirmed requests, and from then on accepts declared refusals. False when no request
   * is unconfirmed, or when the API also refused a request unexpectedly.
   */
  acceptRefusals(): boolean
}

export interface RequestAttemptsDeps extends SenderDeps, Pick<OutcomeDeps, 'saveLearned'> {
  pending: Pick<PendingAttempts, 'delay' | 'addUnconfirmed' | 'retryUnconfirmed'>
  random: () => number
  stop(error: unknown): void
}

export function createRequestAttempts(deps: RequestAttemptsDeps): RequestAttempts {
  const { context, reachability, progress, pending, cancel } = deps
  const { store, log } = context
  let acceptsRefusals = false
  const { send, unanswered } = createSender(deps)

  const perform = async (tried: Attempt, permit: Permit) => {
    const { job, lane } = tried
    const ticket = store.freshness.begin()
    try {
      const isOver = context.backoffs.trying(job.feed, job.scope)
      const sent = await send(job, lane, permit).finally(isOver)
      await settle(tried, sent, ticket)
    } catch (error) {
      permit.settle(CUT_OFF)
      job.over()
      if (!cancel.aborted) deps.stop(error)
    } finally {
      store.freshness.end(ticket)
    }
  }

  const sendHealthCheck = async (check: HealthCheck, permit: Permit) => {
    try {
      const sent = await send({ ...check, expected: undefined }, 'retry', permit)
      if (sent.kind === 'unauthorized') deps.stop(unauthorized(deps.client.access, sent.message))
      if (sent.kind === 'answer') pending.retryUnconfirmed()
    } catch (error) {
      permit.settle(CUT_OFF)
      if (!cancel.aborted) deps.stop(error)
    }
  }

  const settle = async (tried: Attempt, sent: Sent, ticket: number) => {
    const { job } = tried
    if (isUnconfirmed(job, sent)) {
      pending.addUnconfirmed(tried)
      return
    }
    if (progress.accepted > 0 && !reachability.isAccessInDoubt()) pending.retryUnconfirmed()
    const error = await applyOutcome(deps, tried, sent, ticket)
    if (error === undefined) {
      if (sent.kind === 'answer') context.backoffs.answered(job.feed, job.scope)
      await finishJob(deps, job)
      job.over()
      return
    }
    if (error instanceof StopError) throw error
    if (error instanceof RetryError) {
      const cause = sent.kind === 'retry' ? sent.cause : 'garbled'
      if (retryLater(tried, cause, sent.kind === 'retry' ? sent.waitMs : undefined)) return
    }
    if (isRefusedAccess(sent)) progress.turnedAway += 1
    await failJob(deps, tried, error)
  }

  /** While access is in doubt, or before the first answer, a 403 or 404 says nothing about the requested record. */
  const isUnconfirmed = (job: Job, sent: Sent): boolean => {
    if (!isRefusedAccess(sent)) return false
    if (reachability.isAccessInDoubt()) return true
    return progress.accepted === 0 && !acceptsRefusals && isDeclaredRefusal(job, sent)
  }

  /** In the daemon, what has failed waits longer after each try, so one request is a try. */
  const attemptsOf = ({ feed, scope = '', attempts = Number.POSITIVE_INFINITY }: Job) => {
    const { schedule, backoffs } = context
    const hasFailed = backoffs.hasFailed(feed, '') || backoffs.hasFailed(feed, scope)
    return schedule.isTimed && hasFailed ? 1 : attempts
  }

  const retryLater = (tried: Attempt, cause: RetryCause, waitMs: number | undefined) => {
    const { job, attempt } = tried
    if (reachability.isAway()) {
      // The whole API is silent, so this does not count as a failure of the request. All requests wait together.
      pending.delay(tried, 0)
      return true
    }
    if (cause !== 'throttled' && attempt >= attemptsOf(job)) return false
    const decision = retryDecision({ cause, attempt, waitMs }, deps.random)
    if (!decision.retry) return false
    log.debug('Request is retried', {
      resource: job.resource,
      route: job.request.route,
      attempt,
      reason: cause,
    })
    pending.delay({ ...tried, attempt: attempt + (cause === 'throttled' ? 0 : 1) }, decision.delayMs)
    return true
  }

  return {
    perform,
    sendHealthCheck,
    async refuse(tried, reason) {
      try {
        const message = `Not sent, since requests on this route keep failing: ${reason}`
        const hint = 'Run the command again later; it requests the rest.'
        await failJob(deps, tried, new ResourceError(message, { code: 'route-silent', hint }))
      } catch (error) {
        tried.job.over()
        deps.stop(error)
      }
    },
    unanswered,
    acceptRefusals() {
      if (progress.turnedAway > 0 || pending.retryUnconfirmed() === 0) return false
      acceptsRefusals = true
      return true
    },
  }
}

function isDeclaredRefusal(job: Job, sent: Sent): boolean {
  return sent.kind === 'refused' && job.expected?.[sent.status] !== undefined
}

function isRefusedAccess(sent: Sent): boolean {
  return sent.kind === 'refused' && (sent.status === 403 || sent.status === 404)
}

/** Sends requests through `api/client.ts`. Passes each outcome to the counts, the governor and `reachability`. */
interface Sender {
  /** @throws StopError when the API has been silent for too long, and an AbortError when `cancel` is aborted */
  send(sendable: Sendable, lane: Lane, permit: Permit): Promise<Sent>
  /** Number of requests in flight without an answer. */
  unanswered(): number
}

type Sendable = Pick<Job, 'resource' | 'feed' | 'request' | 'expected'>

interface SenderDeps {
  context: EngineContext
  client: Client
  reachability: Reachability
  slots: Pick<RouteSlots, 'begin'>
  progress: SchedulerProgress
  /** Present in the daemon. */
  endless: EndlessWork | undefined
  /** Cancels the requests in flight. */
  cancel: AbortSignal
  pause(): GovernorPause
}

function createSender(deps: SenderDeps): Sender {
  const { context, reachability, progress, endless } = deps
  let unanswered = 0
  return {
    async send({ resource, feed, request, expected }, lane, permit) {
      unanswered += 1
      const answered = deps.slots.begin(request.route)
      reachability.noteSending(request)
      const sent = await deps.client.send(request, deps.cancel).finally(() => {
        unanswered -= 1
      })
      answered(sent.kind !== 'retry' || sent.status !== undefined)
      countRequest(context, progress, resource, sent)
      if ('serverTime' in sent && sent.serverTime !== undefined)
        context.server.observe(sent.serverTime, sent.durationMs)
      endless?.onSent(request, lane, sent)
      permit.settle(reachability.permitResult(request, sent))
      const isDeclared = sent.kind === 'refused' && expected?.[sent.status] !== undefined
      reachability.observe({ feed, request, isDeclared }, sent, deps.pause())
      progress.turnedAwayInARow = reachability.refusedInARow()
      reachability.notePause(deps.pause())
      const silent = reachability.silenceError()
      if (silent) throw silent
      return sent
    },
    unanswered: () => unanswered,
  }
}
