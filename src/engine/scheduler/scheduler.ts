import PQueue from 'p-queue'
import type { Client } from '../../api/client.ts'
import type { Governor, Permit } from '../../api/governor/governor.ts'
import type { NextStep } from '../../api/reach.ts'
import type { Resource } from '../../catalog/resource.ts'
import { databaseError } from '../../store/database/faults.ts'
import type { EngineContext } from '../context.ts'
import { createAttempts } from './attempts.ts'
import type { EndlessWork, Source } from './job.ts'
import { type Attempt, createLanes } from './lanes.ts'
import { noProgress, type SchedulerProgress } from './progress.ts'
import { createReachability } from './reachability.ts'
import { witnessesOf } from './witnesses.ts'

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
  /** Between two runs nothing was asked for so long, in ms, which is no silence of the API. */
  excuse(ms: number): void
  readonly progress: SchedulerProgress
}

export interface SchedulerDeps {
  context: EngineContext
  client: Client
  governor: Governor
  sources: readonly Source[]
  random: () => number
  giveUpMs: number
  /** In catalogue order. */
  resources: readonly Resource[]
  access: AccessBefore
  /** Present in the daemon, which goes on when nothing is left to do. */
  endless?: EndlessWork
  /** Notes what was learned of the API's limits: called inside the transactions of answers, however often. */
  noteLearned?: () => void
  /** Ends the taking of new jobs. */
  soft: AbortSignal
  /** Ends the requests under way. */
  hard: AbortSignal
}

/**
 * The most answers that may wait to be stored. A usual checkpoint lets some 200 gather; where the disk is busy for
 * seconds it would be thousands, each of which is held in memory.
 */
const MOST_UNSTORED = 256

/** Without a reason every abort makes an exception. */
const WOKEN = new Error('The wait is over')

/** What is known of the API's access before the first request. */
export interface AccessBefore {
  /** How long after the first refusals of all lists they must be refused again, in ms, before access counts as lost. */
  againAfterMs: number
  /** The API has answered an earlier run. */
  wasAnswered: boolean
  /** The last session ended because access was lost. */
  wasLost: boolean
}

export function createScheduler(deps: SchedulerDeps): Scheduler {
  const { context, governor, sources, endless, soft } = deps
  const { clock, store } = context
  const queue = new PQueue({ concurrency: Number.POSITIVE_INFINITY })
  const progress = noProgress()
  const { againAfterMs, wasAnswered, wasLost: accessWasLost } = deps.access
  const witnesses = witnessesOf(deps.resources)
  const reachability = createReachability({
    context,
    access: deps.client.access,
    resources: deps.resources.map(({ name }) => name),
    options: { witnesses, againAfterMs, wasAnswered, accessWasLost },
    giveUpMs: deps.giveUpMs,
    random: deps.random,
  })
  progress.trouble = reachability.trouble
  let kept: Permit | undefined
  let stopped: unknown
  let wake: () => void = () => undefined
  const ending = new AbortController()
  const noMore = AbortSignal.any([soft, ending.signal])
  noMore.addEventListener('abort', () => wake(), { once: true })

  const stop = (reason: unknown) => {
    stopped ??= reason
    ending.abort()
    wake()
  }

  const attempts = createAttempts({
    context,
    client: deps.client,
    reachability,
    progress,
    random: deps.random,
    endless,
    atOnce: AbortSignal.any([deps.hard, ending.signal]),
    pausedUntil: () => governor.state().pausedUntil,
    ...(deps.noteLearned && { noteLearned: deps.noteLearned }),
    stop,
  })
  const lanes = createLanes(sources, {
    commits: store.transaction.commits,
    elapsed: clock.elapsed,
    isParked: attempts.isParked,
  })

  /** Resolves when a job is over or a retry falls due, or after `mostMs`. */
  const change = async (mostMs = Number.POSITIVE_INFINITY) => {
    const tickMs = endless?.tickMs ?? Number.POSITIVE_INFINITY
    const nearest = Math.min(attempts.waitMs(), reachability.patienceLeftMs(), mostMs, tickMs, lanes.waitMs())
    const timer = new AbortController()
    await new Promise<void>(resolve => {
      wake = resolve
      if (noMore.aborted) resolve()
      void clock.sleep(Math.max(nearest, 1), timer.signal).then(resolve)
    })
    timer.abort(WOKEN)
  }

  const dropKept = () => {
    kept?.cancel()
    kept = undefined
  }

  const nextPermit = async (): Promise<Permit | undefined> => {
    const asked = clock.elapsed()
    const isPaused = governor.state().pausedUntil !== undefined
    if (isPaused) dropKept()
    const permit = kept ?? (await governor.permit(noMore))
    kept = undefined
    if (isPaused) reachability.excuse(clock.elapsed() - asked)
    return permit
  }

  const run = (work: () => Promise<void>, after: () => void) => {
    progress.inFlight += 1
    void queue.add(work).finally(() => {
      progress.inFlight -= 1
      after()
      wake()
    })
  }

  const overOf =
    ({ job }: Attempt) =>
    () => {
      lanes.askAgain(job.feed)
      endless?.over(job)
    }

  const begin = async (chosen: Attempt, permit: Permit) => {
    const { route } = chosen.job.request
    const reason = endless ? undefined : reachability.abandonReason(route)
    if (reason !== undefined) {
      kept = permit
      await attempts.refuse(chosen, reason)
      lanes.askAgain(chosen.job.feed)
    } else if (reachability.restMs(route) > 0) {
      kept = permit
      attempts.park(chosen)
    } else run(() => attempts.perform(chosen, permit), overOf(chosen))
  }

  const askWitness = async (next: NextStep) => {
    const witness = witnesses.find(({ feed }) => next.kind === 'witness' && feed === next.witness.feed)
    const permit = await nextPermit()
    if (permit && witness)
      run(
        () => attempts.ask(witness, permit),
        () => undefined,
      )
    else permit?.cancel()
  }

  /**
   * While the API may not be asked for everything: a key that may be refused is tried with one request, and an API
   * that is away or refuses all with one witness at a time. False when anything may be asked.
   */
  const isHeldBack = async (): Promise<boolean> => {
    const next = reachability.next()
    const isFirst = endless !== undefined && progress.requests === 0
    if (next.kind === 'any' && !(isFirst && progress.inFlight > 0)) return false
    if (next.kind === 'lost') stop(reachability.accessGone())
    else if (next.kind === 'wait') await change(next.ms)
    else if (progress.inFlight > 0) await change()
    else if (next.kind === 'trial') return false
    else await askWitness(next)
    return true
  }

  /** False when nothing is left to do, or the run is over. */
  const step = async (): Promise<boolean> => {
    const error = reachability.tooLong()
    if (error) {
      stop(error)
      return false
    }
    if (await isHeldBack()) return true
    if (progress.inFlight - attempts.unanswered() >= MOST_UNSTORED) {
      await change()
      return true
    }
    const permit = await nextPermit()
    if (!permit) return false
    if (reachability.next().kind !== 'any' && progress.inFlight > 0) {
      kept = permit
      return true
    }
    const chosen = lanes.choose(lane => (lane === 'retry' ? attempts.takeDue() : undefined))
    if (chosen) {
      await begin(chosen, permit)
      return true
    }
    if (await store.freed()) {
      permit.cancel()
      lanes.askAll()
      return true
    }
    if (attempts.unanswered() > 0) for (const source of sources) source.share?.()
    if (attempts.unanswered() < progress.inFlight) {
      // What has been answered is about to bring the next request, which had to wait for this permit.
      kept = permit
      await change()
      return true
    }
    permit.cancel()
    const isIdle = progress.inFlight === 0 && attempts.waitMs() === Number.POSITIVE_INFINITY
    if (isIdle && !endless) return lanes.askAllAgain() || attempts.believe()
    if (isIdle) attempts.believe()
    await change()
    if (endless) lanes.askAll()
    return true
  }

  return {
    progress,
    stop,
    excuse: reachability.excuse,
    async run() {
      lanes.askAll()
      reachability.begin()
      try {
        while (!soft.aborted && stopped === undefined && (await step()));
      } catch (error) {
        // What is under way is applied before the warehouse is closed.
        stop(databaseError(error, store.db.name))
      }
      dropKept()
      await queue.onIdle()
      attempts.giveUp()
      reachability.end()
      if (stopped !== undefined) throw stopped
      if (progress.accepted === 0 && progress.turnedAway > 0 && !soft.aborted) throw reachability.accessGone()
    },
  }
}
