import PQueue from 'p-queue'
import type { RetryCause } from '../api/classify.ts'
import type { Client, Sent } from '../api/client.ts'
import type { Governor, Permit } from '../api/governor.ts'
import { retryDecision } from '../api/retry.ts'
import { permitResult, unauthorized } from '../api/verdict.ts'
import { isoInstant } from '../clock.ts'
import { EXIT_STATUS, ParleyError, ResourceError, RetryError, StopError } from '../errors.ts'
import { databaseError } from '../store/open.ts'
import type { EngineContext } from './context.ts'
import type { Job, Lane, Source } from './job.ts'
import { type Attempt, createLanes } from './lanes.ts'
import { createOutage } from './outage.ts'
import { createSilence } from './silence.ts'

/**
 * Chooses which job's request goes next. A permit is waited for first and the job chosen then, so that nothing
 * stands in a queue before something more urgent. Lanes get shares of the requests, and what one leaves the others
 * have.
 */
export interface Scheduler {
  /**
   * Runs until no source has anything left, or until it is stopped; and again where there is more after all.
   * @throws the StopError that ended it
   */
  run(): Promise<void>
  /** Ends the run with this error. */
  stop(error: unknown): void
  readonly progress: SchedulerProgress
}

export interface SchedulerProgress {
  requests: number
  throttled: number
  accepted: number
  /** 403 and 404 where no declaration expects them. */
  turnedAway: number
  inFlight: number
  /** Unexpected 403 and 404 since the last answer. */
  turnedAwayInARow: number
  /** While the API does not answer at all: since when, and what the last try met. */
  away: { at: number; reason: string } | undefined
}

export function noProgress(): SchedulerProgress {
  return {
    requests: 0,
    throttled: 0,
    accepted: 0,
    turnedAway: 0,
    inFlight: 0,
    turnedAwayInARow: 0,
    away: undefined,
  }
}

export interface SchedulerDeps {
  context: EngineContext
  client: Client
  governor: Governor
  sources: readonly Source[]
  random: () => number
  giveUpMs: number
  /** Present in the daemon, which goes on when nothing is left to do. */
  endless?: EndlessWork
  /** Ends the taking of new jobs. */
  soft: AbortSignal
  /** Ends the requests under way. */
  hard: AbortSignal
}

export interface EndlessWork {
  /** How often it is looked whether something has fallen due. */
  tickMs: number
  /** An outcome is about to be applied, inside its transaction. */
  applying(job: Job, lane: Lane): void
  /** The job has ended, whatever came of it. */
  over(job: Job): void
  sent(job: Job, lane: Lane, sent: Sent): void
}

interface Delayed extends Attempt {
  /** By `clock.elapsed`. */
  notBefore: number
}

export function createScheduler(deps: SchedulerDeps): Scheduler {
  const { context, client, governor, sources, endless, soft, hard } = deps
  const { clock, store, log } = context
  const queue = new PQueue({ concurrency: Number.POSITIVE_INFINITY })
  const progress = noProgress()
  const outage = createOutage(clock, deps.random)
  const lanes = createLanes(sources, { commits: store.transaction.commits, elapsed: clock.elapsed })
  const silence = createSilence({ clock, giveUpMs: deps.giveUpMs })
  const delayed: Delayed[] = []
  const doubtful: Attempt[] = []
  const turnedAway = new Set<string>()
  let believing = false
  let unanswered = 0
  let kept: Permit | undefined
  let stopped: unknown
  let wake: () => void = () => undefined
  const ending = new AbortController()
  const noMore = AbortSignal.any([soft, ending.signal])
  const atOnce = AbortSignal.any([hard, ending.signal])

  const stop = (reason: unknown) => {
    stopped ??= reason
    ending.abort()
    wake()
  }

  const choose = (): Attempt | undefined => {
    const due = delayed.findIndex(({ notBefore }) => notBefore <= clock.elapsed())
    return lanes.choose(lane => {
      if (lane !== 'retry') return undefined
      return due < 0 ? undefined : delayed.splice(due, 1)[0]
    })
  }

  /** Resolves when a job is over or a retry falls due. */
  const change = async () => {
    const waits = delayed.map(({ notBefore }) => notBefore - clock.elapsed())
    const outageMs = outage.isOn() ? outage.waitMs() : Number.POSITIVE_INFINITY
    const tickMs = endless?.tickMs ?? Number.POSITIVE_INFINITY
    const nearest = Math.min(...waits, silence.patienceLeft(), outageMs, tickMs, lanes.waitMs())
    const timer = new AbortController()
    await new Promise<void>(resolve => {
      wake = resolve
      void clock.sleep(Math.max(nearest, 1), AbortSignal.any([timer.signal, noMore])).then(resolve)
    })
    timer.abort()
  }

  const perform = async (tried: Attempt, permit: Permit) => {
    const { job, lane } = tried
    const ticket = store.freshness.begin()
    try {
      const sent = await client.send(job.request, atOnce).finally(() => {
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
      if (!hard.aborted && !ending.signal.aborted) stop(error)
    } finally {
      store.freshness.end(ticket)
    }
  }

  const settle = async (tried: Attempt, sent: Sent, ticket: number) => {
    const { job, lane } = tried
    if (sent.kind === 'answer') {
      progress.turnedAwayInARow = 0
      turnedAway.clear()
    }
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
    if (sent.kind === 'refused' && (sent.status === 403 || sent.status === 404)) turnAway(job)
    await store.transaction(() => {
      endless?.applying(job, lane)
      job.failed(error)
    })
    job.over()
  }

  const turnAway = ({ resource }: Job) => {
    progress.turnedAway += 1
    progress.turnedAwayInARow += 1
    turnedAway.add(resource)
    if (progress.turnedAwayInARow < TURNED_AWAY_IN_A_ROW) return
    if (progress.accepted === 0 || (endless && turnedAway.size > 1)) throw accessGone()
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

  /** Nothing is left but refusals that were declared: then they are what they say. */
  const believe = (): boolean => {
    if (doubtful.length === 0 || progress.turnedAway > 0) return false
    believing = true
    askDoubtfulAgain()
    return true
  }

  const retryLater = (tried: Attempt, cause: RetryCause, waitMs: number | undefined) => {
    const { job, attempt } = tried
    if (outage.isOn()) {
      // What nothing answers to is no fault of this request, and the wait is kept for all of them together.
      delayed.push({ ...tried, notBefore: clock.elapsed() })
      return true
    }
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

  const dropKept = () => {
    kept?.cancel()
    kept = undefined
  }

  const step = async (): Promise<boolean> => {
    if (outage.isOn() && (progress.inFlight > 0 || outage.waitMs() > 0)) {
      await change()
      return true
    }
    if (endless && progress.requests === 0 && progress.inFlight > 0) {
      // A key that may be refused is tried once.
      await change()
      return true
    }
    const asked = clock.elapsed()
    const isPaused = governor.state().pausedUntil !== undefined
    if (isPaused) dropKept()
    const permit = kept ?? (await governor.permit(noMore))
    kept = undefined
    if (isPaused) silence.excuse(clock.elapsed() - asked)
    if (!permit) return false
    const error = silence.tooLong()
    if (error) {
      permit.cancel()
      stop(error)
      return false
    }
    const chosen = choose()
    if (chosen) {
      progress.inFlight += 1
      unanswered += 1
      void queue
        .add(() => perform(chosen, permit))
        .finally(() => {
          progress.inFlight -= 1
          lanes.askAgain(chosen.job.feed)
          endless?.over(chosen.job)
          wake()
        })
      return true
    }
    if (unanswered > 0) for (const source of sources) source.share?.()
    if (unanswered < progress.inFlight) {
      // What has been answered is about to bring the next request, which had to wait for this permit.
      kept = permit
      await change()
      return true
    }
    permit.cancel()
    const isIdle = progress.inFlight === 0 && delayed.length === 0
    if (isIdle && !endless) return lanes.askAllAgain() || believe()
    if (isIdle) believe()
    await change()
    if (endless) lanes.askAll()
    return true
  }

  return {
    progress,
    stop,
    async run() {
      lanes.askAll()
      try {
        while (!soft.aborted && stopped === undefined && (await step()));
      } catch (error) {
        // What is under way is applied before the warehouse is closed.
        stop(databaseError(error, store.db.name))
      }
      dropKept()
      await queue.onIdle()
      for (const { job } of [...delayed, ...doubtful]) job.over()
      if (stopped !== undefined) throw stopped
      if (progress.accepted === 0 && progress.turnedAway > 0 && !soft.aborted) throw accessGone()
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
  if (sent.kind === 'answer' && sent.serverTime !== undefined) {
    context.server.observe(sent.serverTime, sent.durationMs)
  }
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

/** So many unexpected 403 and 404 without an answer between them, and the rest need not be asked. */
const TURNED_AWAY_IN_A_ROW = 4

/** When everything answers 403 or 404, it is not the things that are gone. */
function accessGone(): StopError {
  return new StopError('The API answers 403 or 404 to everything', {
    code: 'access-gone',
    hint: 'Check api.workspace_id and api.base_url, and what the key may read. Nothing was marked as deleted.',
    exitStatus: EXIT_STATUS.refused,
  })
}

function isDeclaredRefusal(job: Job, sent: Sent): boolean {
  return sent.kind === 'refused' && job.expected?.[sent.status] !== undefined
}

function count(context: EngineContext, progress: SchedulerProgress, job: Job, sent: Sent): void {
  const counts = context.counts(job.resource)
  counts.requests += 1
  progress.requests += 1
  if (sent.kind === 'answer') progress.accepted += 1
  if (sent.kind === 'retry' && sent.cause === 'throttled') {
    counts.throttled += 1
    progress.throttled += 1
  }
}
