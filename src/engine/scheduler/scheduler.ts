import PQueue from 'p-queue'
import type { Client } from '../../api/client.ts'
import type { Governor, Permit } from '../../api/governor/governor.ts'
import type { NextStep } from '../../api/reach.ts'
import type { Resource } from '../../catalog/resource.ts'
import { databaseError } from '../../store/database/faults.ts'
import type { EngineContext } from '../context.ts'
import { createRequestAttempts } from './attempts.ts'
import { healthChecksOf } from './health-checks.ts'
import type { EndlessWork, Source } from './job.ts'
import { type Attempt, createLanes } from './lanes.ts'
import { noProgress, type SchedulerProgress } from './progress.ts'
import { createReachability } from './reachability.ts'

/**
 * Chooses which job's request is sent next. It waits for a permit first and chooses the job then, so no job waits in a
 * queue ahead of a more urgent one. Lanes share the requests; other lanes take what one does not use.
 */
export interface Scheduler {
  /**
   * Runs until no source has work left or the scheduler is stopped. May be called again when there is more work.
   * @throws the StopError that ended it
   */
  run(): Promise<void>
  /** Ends the run with this error. */
  stop(error: unknown): void
  /** Excludes a wait between two calls of `run` from the silence of the API. */
  excludeWait(ms: number): void
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
  /** Set in the daemon, which continues when no work is left. */
  endless?: EndlessWork
  /** Saves the learned limits of the API. Called inside the transaction of every answer. */
  saveLearned?: () => void
  /** Stops the start of new jobs. */
  stopNew: AbortSignal
  /** Cancels the requests in flight. */
  cancel: AbortSignal
}

/**
 * The most answers that may wait in memory to be stored. During a usual checkpoint some 200 gather; while the disk is
 * busy for seconds there would be thousands.
 */
const MOST_UNSTORED = 256

/** Shared, since an abort without a reason creates a new exception each time. */
const WOKEN = new Error('The wait is over')

/** The access to the API before the first request. */
export interface AccessBefore {
  /** Access counts as lost when all lists are refused again this long after the first refusals. In ms. */
  againAfterMs: number
  /** Whether the API answered an earlier run. */
  wasAnswered: boolean
  /** Whether the last session ended because access was lost. */
  wasLost: boolean
}

export function createScheduler(deps: SchedulerDeps): Scheduler {
  const { context, governor, sources, endless, stopNew } = deps
  const { clock, store } = context
  const queue = new PQueue({ concurrency: Number.POSITIVE_INFINITY })
  const progress = noProgress()
  const { againAfterMs, wasAnswered, wasLost: accessWasLost } = deps.access
  const healthChecks = healthChecksOf(deps.resources)
  const reachability = createReachability({
    context,
    access: deps.client.access,
    resources: deps.resources.map(({ name }) => name),
    options: { healthChecks, againAfterMs, wasAnswered, accessWasLost },
    giveUpMs: deps.giveUpMs,
    random: deps.random,
  })
  progress.trouble = reachability.trouble
  let kept: Permit | undefined
  let stopped: unknown
  let wake: () => void = () => undefined
  const ending = new AbortController()
  const noMore = AbortSignal.any([stopNew, ending.signal])
  noMore.addEventListener('abort', () => wake(), { once: true })

  const stop = (reason: unknown) => {
    stopped ??= reason
    ending.abort()
    wake()
  }

  const attempts = createRequestAttempts({
    context,
    client: deps.client,
    reachability,
    progress,
    random: deps.random,
    endless,
    cancel: AbortSignal.any([deps.cancel, ending.signal]),
    pausedUntil: () => governor.state().pausedUntil,
    ...(deps.saveLearned && { saveLearned: deps.saveLearned }),
    stop,
  })
  const lanes = createLanes(sources, {
    commits: store.transaction.commits,
    elapsed: clock.elapsed,
    isParked: attempts.isParked,
  })

  /** Resolves when a job is over, a retry falls due, or `mostMs` have passed. */
  const waitForChange = async (mostMs = Number.POSITIVE_INFINITY) => {
    const nearest = Math.min(attempts.waitMs(), reachability.patienceLeftMs(), mostMs, lanes.waitMs())
    const timer = new AbortController()
    await new Promise<void>(resolve => {
      wake = resolve
      if (noMore.aborted) resolve()
      void clock.sleep(Math.max(nearest, 1), timer.signal).then(resolve)
    })
    timer.abort(WOKEN)
  }

  /** Waits while no source has a job. A commit may give one to any of them. */
  const waitForWork = async () => {
    const endListening = store.transaction.onCommit(() => wake())
    await waitForChange(endless?.idleMs())
    endListening()
    if (endless) lanes.askAll()
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
    if (isPaused) reachability.excludeWait(clock.elapsed() - asked)
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

  const afterAttempt =
    ({ job }: Attempt) =>
    () => {
      lanes.askAgain(job.feed)
      endless?.onEnd(job)
    }

  const begin = async (chosen: Attempt, permit: Permit) => {
    const { route } = chosen.job.request
    const reason = endless ? undefined : reachability.abandonedReason(route)
    if (reason !== undefined) {
      kept = permit
      await attempts.refuse(chosen, reason)
      lanes.askAgain(chosen.job.feed)
    } else if (reachability.restMs(route) > 0) {
      kept = permit
      attempts.park(chosen)
    } else run(() => attempts.perform(chosen, permit), afterAttempt(chosen))
  }

  const sendHealthCheck = async (next: NextStep) => {
    const check = healthChecks.find(({ feed }) => next.kind === 'health-check' && feed === next.check.feed)
    const permit = await nextPermit()
    if (permit && check)
      run(
        () => attempts.sendHealthCheck(check, permit),
        () => undefined,
      )
    else permit?.cancel()
  }

  /**
   * While the API is silent or refuses everything, sends one health check at a time. The daemon's first request is sent
   * alone too, since the key may be refused. False when any request may be sent.
   */
  const handleTrouble = async (): Promise<boolean> => {
    const next = reachability.next()
    const isFirst = endless !== undefined && progress.requests === 0
    if (next.kind === 'any' && !(isFirst && progress.inFlight > 0)) return false
    if (next.kind === 'lost') stop(reachability.accessError())
    else if (next.kind === 'wait') await waitForChange(next.ms)
    else if (progress.inFlight > 0) await waitForChange()
    else if (next.kind === 'trial') return false
    else await sendHealthCheck(next)
    return true
  }

  /** False when no work is left or the run is over. */
  const step = async (): Promise<boolean> => {
    const error = reachability.silenceError()
    if (error) {
      stop(error)
      return false
    }
    if (await handleTrouble()) return true
    if (progress.inFlight - attempts.unanswered() >= MOST_UNSTORED) {
      await waitForChange()
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
    if (await store.waitUntilFree()) {
      permit.cancel()
      lanes.askAll()
      return true
    }
    if (attempts.unanswered() > 0) for (const source of sources) source.share?.()
    if (attempts.unanswered() < progress.inFlight) {
      // An answer that is about to be stored may create the next request, which then uses this permit.
      kept = permit
      await waitForChange()
      return true
    }
    permit.cancel()
    const isIdle = progress.inFlight === 0 && attempts.waitMs() === Number.POSITIVE_INFINITY
    if (isIdle && !endless) return lanes.askAllAgain() || attempts.acceptRefusals()
    if (isIdle) attempts.acceptRefusals()
    await waitForWork()
    return true
  }

  return {
    progress,
    stop,
    excludeWait: reachability.excludeWait,
    async run() {
      lanes.askAll()
      reachability.begin()
      try {
        while (!stopNew.aborted && stopped === undefined && (await step()));
      } catch (error) {
        // The answers in flight are still stored before the warehouse is closed.
        stop(databaseError(error, store.path))
      }
      dropKept()
      await queue.onIdle()
      attempts.endPending()
      reachability.end()
      if (stopped !== undefined) throw stopped
      if (progress.accepted === 0 && progress.turnedAway > 0 && !stopNew.aborted)
        throw reachability.accessError()
    },
  }
}
