import { unauthorized } from '../../api/access.ts'
import type { RetryCause } from '../../api/classify.ts'
import type { Client, Sent } from '../../api/client.ts'
import type { Permit } from '../../api/governor/governor.ts'
import { retryDecision } from '../../api/retry.ts'
import { failureText, permitResult } from '../../api/verdict.ts'
import { isoInstant } from '../../clock.ts'
import { type ParleyError, ResourceError, RetryError, StopError } from '../../errors.ts'
import type { EngineContext } from '../context.ts'
import { faultOf, ofRequest } from './faults.ts'
import type { EndlessWork, Job, Lane } from './job.ts'
import type { Attempt } from './lanes.ts'
import { count, type SchedulerProgress } from './progress.ts'
import type { Reachability } from './reachability.ts'
import type { ListWitness } from './witnesses.ts'

/** What becomes of a request that was chosen: it is sent, and its outcome applied, or it is made again later. */
export interface Attempts {
  /** Sends it and applies what comes. Never rejects: what ends the run goes to `stop`. */
  perform(attempt: Attempt, permit: Permit): Promise<void>
  /** Finds out with a witness whether the API can be reached; nothing of the answer is kept. Never rejects. */
  ask(witness: ListWitness, permit: Permit): Promise<void>
  /** Makes it later, when its route answers again. */
  park(attempt: Attempt): void
  /** Whether a request of this feed waits for its route, so that the feed need not give another. */
  isParked(feed: string): boolean
  /** Fails it without a request: its route has not answered for long enough. */
  refuse(attempt: Attempt, reason: string): Promise<void>
  /** Takes a retry that has fallen due. */
  takeDue(): Attempt | undefined
  /** Until the next retry, in ms; infinite when there is none. */
  waitMs(): number
  /** Requests that were sent and have no answer yet. */
  unanswered(): number
  /**
   * Nothing is left but refusals that were declared: then they are what they say, and are asked for once more.
   * False when there are none.
   */
  believe(): boolean
  /** Ends the jobs that would have been tried again. */
  giveUp(): void
}

export interface AttemptsDeps {
  context: EngineContext
  client: Client
  reachability: Reachability
  progress: SchedulerProgress
  random: () => number
  /** Present in the daemon. */
  endless: EndlessWork | undefined
  /** Ends the requests under way. */
  atOnce: AbortSignal
  /** Until when nothing may be sent, in ms since the epoch. */
  pausedUntil(): number | undefined
  stop(error: unknown): void
  /** Notes what was learned of the API's limits: called inside the transactions of answers, however often. */
  noteLearned?: () => void
}

interface Delayed extends Attempt {
  /** By `clock.elapsed`. */
  notBefore: number
}

export function createAttempts(deps: AttemptsDeps): Attempts {
  const { context, reachability, progress, endless, atOnce } = deps
  const { clock, store, log } = context
  const delayed: Delayed[] = []
  const doubtful: Attempt[] = []
  /** By feed: the route that it waits for. */
  const parked = new Map<string, string>()
  let believing = false
  let unanswered = 0

  const send = async (
    { resource, feed, request, expected }: Sendable,
    lane: Lane,
    permit: Permit,
  ): Promise<Sent> => {
    unanswered += 1
    reachability.sending(request)
    const sent = await deps.client.send(request, atOnce).finally(() => {
      unanswered -= 1
    })
    count(context, progress, resource, sent)
    endless?.sent(request, lane, sent)
    permit.settle(permitResult(sent))
    const isDeclared = sent.kind === 'refused' && expected?.[sent.status] !== undefined
    reachability.heard({ feed, request, isDeclared }, sent)
    progress.turnedAwayInARow = reachability.refusedInARow()
    if (sent.kind === 'retry' && sent.cause === 'throttled') reachability.waiting(deps.pausedUntil())
    const silent = reachability.tooLong()
    if (silent) throw silent
    return sent
  }

  const perform = async (tried: Attempt, permit: Permit) => {
    const { job, lane } = tried
    const ticket = store.freshness.begin()
    try {
      const sent = await send(job, lane, permit)
      await settle(tried, sent, ticket)
    } catch (error) {
      permit.cancel()
      job.over()
      if (!atOnce.aborted) deps.stop(error)
    } finally {
      store.freshness.end(ticket)
    }
  }

  const ask = async (witness: ListWitness, permit: Permit) => {
    try {
      const sent = await send({ ...witness, expected: undefined }, 'retry', permit)
      if (sent.kind === 'unauthorized') deps.stop(unauthorized(deps.client.access, sent.message))
      if (sent.kind === 'answer') askDoubtfulAgain()
    } catch (error) {
      permit.cancel()
      if (!atOnce.aborted) deps.stop(error)
    }
  }

  const settle = async (tried: Attempt, sent: Sent, ticket: number) => {
    const { job } = tried
    if (isDoubtful(job, sent)) {
      doubtful.push(tried)
      return
    }
    if (progress.accepted > 0 && !reachability.isAccessInDoubt()) askDoubtfulAgain()
    const error = await applied(deps, tried, sent, ticket)
    if (error === undefined) {
      if (sent.kind === 'answer') context.backoffs.answered(job.feed, job.scope)
      await finish(job)
      job.over()
      return
    }
    if (error instanceof StopError) throw error
    if (error instanceof RetryError) {
      const cause = sent.kind === 'retry' ? sent.cause : 'garbled'
      if (retryLater(tried, cause, sent.kind === 'retry' ? sent.waitMs : undefined)) return
    }
    if (isRefusedAccess(sent)) progress.turnedAway += 1
    await fail(tried, error)
  }

  const finish = async (job: Job) => {
    const batches = job.afterwards?.()
    while (batches && !atOnce.aborted && !(await store.transaction(() => batches.next().done)));
  }

  /** While the API grants access to nothing, a 403 or 404 says nothing about the one thing that was asked for. */
  const isDoubtful = (job: Job, sent: Sent): boolean => {
    if (!isRefusedAccess(sent)) return false
    if (reachability.isAccessInDoubt()) return true
    return progress.accepted === 0 && !believing && isDeclaredRefusal(job, sent)
  }

  const fail = async ({ job, lane }: Attempt, error: ParleyError) => {
    const named = ofRequest(error, job.request)
    try {
      await store.transaction(() => {
        endless?.applying(job, lane)
        job.failed(named)
      })
    } catch (thrown) {
      const fault = faultOf(thrown, job)
      if (fault instanceof StopError) throw fault
      log.error('A failure could not be noted; its feed is left alone for a while', {
        resource: job.resource,
        error: fault,
      })
      context.backoffs.failed(job.feed, job.scope ?? '')
    }
    job.over()
  }

  const retryLater = (tried: Attempt, cause: RetryCause, waitMs: number | undefined) => {
    const { job, attempt } = tried
    if (reachability.isAway()) {
      // What nothing answers to is no fault of this request, and the wait is kept for all of them together.
      delayed.push({ ...tried, notBefore: clock.elapsed() })
      return true
    }
    if (cause !== 'throttled' && attempt >= (job.attempts ?? Number.POSITIVE_INFINITY)) return false
    const decision = retryDecision({ cause, attempt, waitMs }, deps.random)
    if (!decision.retry) return false
    log.debug('A request is made again', {
      resource: job.resource,
      route: job.request.route,
      attempt,
      reason: cause,
    })
    delayed.push({
      ...tried,
      attempt: attempt + (cause === 'throttled' ? 0 : 1),
      notBefore: clock.elapsed() + decision.delayMs,
    })
    return true
  }

  const askDoubtfulAgain = () => {
    delayed.push(...doubtful.splice(0).map(tried => ({ ...tried, notBefore: clock.elapsed() })))
  }

  /** A request on a route that is given up need not wait: it fails at once. */
  const restMs = ({ job: { request } }: Attempt) =>
    endless === undefined && reachability.abandonReason(request.route) !== undefined
      ? 0
      : reachability.restMs(request.route)

  return {
    perform,
    ask,
    park(tried) {
      const { feed, request } = tried.job
      parked.set(feed, request.route)
      delayed.push({ ...tried, notBefore: clock.elapsed() })
    },
    isParked(feed) {
      const route = parked.get(feed)
      if (route === undefined) return false
      if (reachability.restMs(route) > 0) return true
      parked.delete(feed)
      return false
    },
    async refuse(tried, reason) {
      try {
        await fail(tried, new ResourceError(reason, { code: 'route-silent' }))
      } catch (error) {
        tried.job.over()
        deps.stop(error)
      }
    },
    takeDue() {
      const due = delayed.findIndex(tried => tried.notBefore <= clock.elapsed() && restMs(tried) <= 0)
      return due < 0 ? undefined : delayed.splice(due, 1)[0]
    },
    waitMs: () =>
      Math.min(...delayed.map(tried => Math.max(tried.notBefore - clock.elapsed(), restMs(tried)))),
    unanswered: () => unanswered,
    believe() {
      if (doubtful.length === 0 || progress.turnedAway > 0) return false
      believing = true
      askDoubtfulAgain()
      return true
    },
    giveUp() {
      for (const { job } of [...delayed, ...doubtful]) job.over()
    },
  }
}

type Sendable = Pick<Job, 'resource' | 'feed' | 'request' | 'expected'>

/** Applies an outcome to its job inside a transaction. Returns what went wrong, if anything did. */
async function applied(
  { context, client, endless, noteLearned }: AttemptsDeps,
  { job, lane }: Attempt,
  sent: Sent,
  ticket: number,
): Promise<ParleyError | undefined> {
  if (sent.kind === 'retry') {
    return new RetryError(failureText(sent), { code: sent.cause })
  }
  if (sent.kind === 'fault') return new ResourceError(sent.message, { code: sent.code })
  if (sent.kind === 'unauthorized') return unauthorized(client.access, sent.message)
  if (sent.serverTime !== undefined) context.server.observe(sent.serverTime, sent.durationMs)
  const reply = {
    ticket,
    sentAt: isoInstant(sent.startedAt),
    // Not by this machine's clock, which may have jumped since then.
    serverSentAt: isoInstant(context.server.now() - sent.durationMs),
  }
  try {
    await context.store.transaction(() => {
      endless?.applying(job, lane)
      context.urgent.inLane(lane, () => {
        if (sent.kind === 'answer') job.answer(sent.value, reply)
        else job.refused(sent.status, sent.message)
      })
      noteLearned?.()
    })
    return undefined
  } catch (error) {
    const fault = faultOf(error, job)
    if (fault !== error) context.log.error('An answer could not be stored', { resource: job.resource, error })
    return fault
  }
}

function isDeclaredRefusal(job: Job, sent: Sent): boolean {
  return sent.kind === 'refused' && job.expected?.[sent.status] !== undefined
}

function isRefusedAccess(sent: Sent): boolean {
  return sent.kind === 'refused' && (sent.status === 403 || sent.status === 404)
}
