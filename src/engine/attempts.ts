import type { RetryCause } from '../api/classify.ts'
import type { Client, Sent } from '../api/client.ts'
import type { Permit } from '../api/governor.ts'
import { retryDecision } from '../api/retry.ts'
import { permitResult, unauthorized } from '../api/verdict.ts'
import { isoInstant } from '../clock.ts'
import { ParleyError, ResourceError, RetryError, StopError } from '../errors.ts'
import { createAccess } from './access.ts'
import type { EngineContext } from './context.ts'
import type { EndlessWork, Job } from './job.ts'
import type { Attempt } from './lanes.ts'
import type { Outage } from './outage.ts'
import { count, type SchedulerProgress } from './progress.ts'
import type { Silence } from './silence.ts'

/** What becomes of a request that was chosen: it is sent, and its outcome applied, or it is made again later. */
export interface Attempts {
  /** Sends it and applies what comes. Never rejects: what ends the run goes to `stop`. */
  perform(attempt: Attempt, permit: Permit): Promise<void>
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
  outage: Outage
  silence: Silence
  progress: SchedulerProgress
  random: () => number
  /** Present in the daemon. */
  endless: EndlessWork | undefined
  /** Ends the requests under way. */
  atOnce: AbortSignal
  stop(error: unknown): void
}

interface Delayed extends Attempt {
  /** By `clock.elapsed`. */
  notBefore: number
}

export function createAttempts(deps: AttemptsDeps): Attempts {
  const { context, outage, silence, progress, endless, atOnce } = deps
  const { clock, store, log } = context
  const access = createAccess({ progress, isEndless: endless !== undefined })
  const delayed: Delayed[] = []
  const doubtful: Attempt[] = []
  let believing = false
  let unanswered = 0

  const perform = async (tried: Attempt, permit: Permit) => {
    const { job, lane } = tried
    const ticket = store.freshness.begin()
    unanswered += 1
    try {
      const sent = await deps.client.send(job.request, atOnce).finally(() => {
        unanswered -= 1
      })
      count(context, progress, job, sent)
      endless?.sent(job, lane, sent)
      permit.settle(permitResult(sent))
      silence.heard(sent)
      if (endless) hearOutage(sent)
      const silent = silence.tooLong()
      if (silent) throw silent
      await settle(tried, sent, ticket)
    } catch (error) {
      permit.cancel()
      job.over()
      if (!atOnce.aborted) deps.stop(error)
    } finally {
      store.freshness.end(ticket)
    }
  }

  const settle = async (tried: Attempt, sent: Sent, ticket: number) => {
    const { job, lane } = tried
    if (sent.kind === 'answer') access.answered()
    if (progress.accepted > 0) askDoubtfulAgain()
    // As long as the API has answered nothing, a 403 or 404 says nothing about the one thing that was asked for.
    else if (!believing && isDeclaredRefusal(job, sent)) {
      doubtful.push(tried)
      return
    }
    const error = await applied(context, tried, sent, ticket, endless)
    if (error === undefined) {
      if (sent.kind === 'answer') context.holds.release(job.feed, job.scope)
      job.over()
      return
    }
    if (error instanceof StopError) throw error
    if (error instanceof RetryError) {
      const cause = sent.kind === 'retry' ? sent.cause : 'garbled'
      if (retryLater(tried, cause, sent.kind === 'retry' ? sent.waitMs : undefined)) return
    }
    if (sent.kind === 'refused' && (sent.status === 403 || sent.status === 404)) access.turnedAway(job)
    await store.transaction(() => {
      endless?.applying(job, lane)
      job.failed(error)
    })
    job.over()
  }

  const retryLater = (tried: Attempt, cause: RetryCause, waitMs: number | undefined) => {
    const { job, attempt } = tried
    if (outage.isOn()) {
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

  const hearOutage = (sent: Sent) => {
    const before = outage.isOn()
    outage.heard(sent)
    progress.away = outage.since()
    if (outage.isOn() && !before) log.warn('The API does not answer', { reason: outage.since()?.reason })
    if (before && !outage.isOn()) log.info('The API answers again')
  }

  const askDoubtfulAgain = () => {
    delayed.push(...doubtful.splice(0).map(tried => ({ ...tried, notBefore: clock.elapsed() })))
  }

  return {
    perform,
    takeDue() {
      const due = delayed.findIndex(({ notBefore }) => notBefore <= clock.elapsed())
      return due < 0 ? undefined : delayed.splice(due, 1)[0]
    },
    waitMs: () => Math.min(...delayed.map(({ notBefore }) => notBefore - clock.elapsed())),
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

/** Applies an outcome to its job inside a transaction. Returns what went wrong, if anything did. */
async function applied(
  context: EngineContext,
  { job, lane }: Attempt,
  sent: Sent,
  ticket: number,
  endless: EndlessWork | undefined,
): Promise<ParleyError | undefined> {
  if (sent.kind === 'retry') {
    const answer = sent.status === undefined ? '' : `The API answers ${sent.status}: `
    return new RetryError(`${answer}${sent.message}`, { code: sent.cause })
  }
  if (sent.kind === 'fault') return new ResourceError(sent.message, { code: sent.code })
  if (sent.kind === 'unauthorized') return unauthorized(sent.message)
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
      context.inLane(lane, () => {
        if (sent.kind === 'answer') job.answer(sent.value, reply)
        else job.refused(sent.status, sent.message)
      })
    })
    return undefined
  } catch (error) {
    if (error instanceof ParleyError) return error
    throw error
  }
}

function isDeclaredRefusal(job: Job, sent: Sent): boolean {
  return sent.kind === 'refused' && job.expected?.[sent.status] !== undefined
}
