import type { Permit } from '../../api/governor/governor.ts'
import type { Resource } from '../../catalog/resource.ts'
import { databaseError } from '../../store/database/sqlite-errors.ts'
import type { EngineContext } from '../context.ts'
import type { EngineDeps } from '../engine-options.ts'
import { createRequestAttempts } from './attempts.ts'
import { createDispatch } from './dispatch.ts'
import { healthChecksOf } from './health-checks.ts'
import type { EndlessWork, Source } from './job.ts'
import { createLanes } from './lanes.ts'
import { type Decision, decide, decideWithoutJob } from './next-step.ts'
import { createPermits } from './permits.ts'
import { createReachability } from './reachability.ts'
import { noProgress, type SchedulerProgress } from './request-counts.ts'
import { createWaiting } from './waiting.ts'

/**
 * Chooses which job's request is sent next. It waits for a permit first and chooses the job then, so no job waits in a
 * queue ahead of a more urgent one. Lanes share the requests; what a lane does not use goes to the others.
 *
 * When no request is sent, it waits for one of four things, in this order: the API, or answers that wait to be stored
 * (next-step.ts); a permit of the governor (`permits.next`); the end of another program's transaction
 * (`store.waitUntilFree`); work (`waitForWork`, due/due.ts).
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

export interface SchedulerDeps
  extends Pick<EngineDeps, 'client' | 'governor' | 'random' | 'saveLearned' | 'stopNew' | 'cancel'> {
  context: EngineContext
  sources: readonly Source[]
  giveUpMs: number
  /** In catalogue order. */
  resources: readonly Resource[]
  access: AccessBefore
  /** Set in the daemon, which continues when no work is left. */
  endless?: EndlessWork
}

/** The longest wait with a permit that no job could use. */
const KEPT_MS = 1000

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
  let stopped: unknown
  const ending = new AbortController()
  const noMore = AbortSignal.any([stopNew, ending.signal])
  const { wake, wait } = createWaiting(clock, noMore)
  const permits = createPermits({ governor, reachability, clock, noMore })

  const stop = (reason: unknown) => {
    stopped ??= reason
    ending.abort()
  }

  const attempts = createRequestAttempts({
    context,
    client: deps.client,
    reachability,
    progress,
    random: deps.random,
    endless,
    cancel: AbortSignal.any([deps.cancel, ending.signal]),
    pause: governor.state,
    ...(deps.saveLearned && { saveLearned: deps.saveLearned }),
    stop,
  })
  const lanes = createLanes(sources, {
    commits: store.transaction.commits,
    elapsed: clock.elapsed,
    isParked: attempts.isParked,
  })

  const dispatch = createDispatch({
    attempts,
    healthChecks,
    reachability,
    permits,
    lanes,
    progress,
    endless,
    wake,
  })

  /** Resolves when a job is over, a retry falls due, or `mostMs` have passed. In the last case it returns true. */
  const waitForChange = async (mostMs = Number.POSITIVE_INFINITY): Promise<boolean> => {
    const nearest = Math.min(attempts.waitMs(), reachability.patienceLeftMs(), mostMs, lanes.waitMs())
    const isWoken = await wait(nearest)
    return !isWoken && nearest === mostMs
  }

  /** Waits while no source has a job. A commit may give one to any of them. */
  const waitForWork = async () => {
    const endListening = store.transaction.onCommit(wake)
    const isDue = await waitForChange(endless?.idleMs())
    endListening()
    // After a commit, the lanes ask the sources again by themselves.
    if (isDue) lanes.askAll()
  }

  const decision = (): Decision =>
    decide({
      reach: reachability.next(),
      isSilentForGood: reachability.silenceError() !== undefined,
      isFirst: endless !== undefined && progress.requests === 0,
      inFlight: progress.inFlight,
      unanswered: attempts.unanswered(),
    })

  /** Sends the most urgent job. False when no work is left or the run is over. */
  const send = async (): Promise<boolean> => {
    const permit = await permits.next()
    if (!permit) return false
    // Much may have changed during a long wait for the permit.
    if (decision().step !== 'send') {
      permits.keep(permit)
      return true
    }
    const chosen = lanes.choose(lane => (lane === 'retry' ? attempts.takeDue() : undefined))
    if (chosen) {
      await dispatch.start(chosen, permit)
      return true
    }
    if (await store.waitUntilFree()) {
      permit.cancel()
      lanes.askAll()
      return true
    }
    return withoutJob(permit)
  }

  /** False when no work is left. */
  const withoutJob = async (permit: Permit): Promise<boolean> => {
    if (attempts.unanswered() > 0) for (const source of sources) source.share?.()
    const next = decideWithoutJob({
      inFlight: progress.inFlight,
      unanswered: attempts.unanswered(),
      hasRetries: attempts.waitMs() !== Number.POSITIVE_INFINITY,
      isEndless: endless !== undefined,
    })
    if (next === 'keep') {
      permits.keep(permit)
      // In the daemon the wait is short: a long pass may commit for seconds, while other sources get work.
      await waitForChange(endless && KEPT_MS)
      return true
    }
    permit.cancel()
    if (next === 'finish') return lanes.askAllAgain() || attempts.acceptRefusals()
    if (next === 'rest') attempts.acceptRefusals()
    await waitForWork()
    return true
  }

  /** False when no work is left or the run is over. */
  const step = async (): Promise<boolean> => {
    const next = decision()
    if (next.step === 'send') return send()
    // Nothing may be sent now, so a retry that falls due must not end this wait.
    if (next.step === 'wait')
      await wait(Math.min(next.ms ?? Number.POSITIVE_INFINITY, reachability.patienceLeftMs()))
    else if (next.step === 'health-check') await dispatch.sendHealthCheck(next.feed)
    else stop(next.because === 'silence' ? reachability.silenceError() : reachability.accessError())
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
      permits.drop()
      await dispatch.onIdle()
      attempts.endPending()
      reachability.end()
      if (stopped !== undefined) throw stopped
      if (progress.accepted === 0 && progress.turnedAway > 0 && !stopNew.aborted)
        throw reachability.accessError()
    },
  }
}
