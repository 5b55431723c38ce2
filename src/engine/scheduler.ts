import PQueue from 'p-queue'
import type { Client } from '../api/client.ts'
import type { Governor, Permit } from '../api/governor.ts'
import { databaseError } from '../store/open.ts'
import { accessGone } from './access.ts'
import { createAttempts } from './attempts.ts'
import type { EngineContext } from './context.ts'
import type { EndlessWork, Source } from './job.ts'
import { type Attempt, createLanes } from './lanes.ts'
import { createOutage } from './outage.ts'
import { noProgress, type SchedulerProgress } from './progress.ts'
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

/** Without a reason every abort makes an exception. */
const WOKEN = new Error('The wait is over')

export function createScheduler(deps: SchedulerDeps): Scheduler {
  const { context, governor, sources, endless, soft } = deps
  const { clock, store } = context
  const queue = new PQueue({ concurrency: Number.POSITIVE_INFINITY })
  const progress = noProgress()
  const outage = createOutage(clock, deps.random)
  const silence = createSilence({ clock, giveUpMs: deps.giveUpMs })
  const lanes = createLanes(sources, { commits: store.transaction.commits, elapsed: clock.elapsed })
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
    outage,
    silence,
    progress,
    random: deps.random,
    endless,
    atOnce: AbortSignal.any([deps.hard, ending.signal]),
    stop,
  })

  /** Resolves when a job is over or a retry falls due. */
  const change = async () => {
    const outageMs = outage.isOn() ? outage.waitMs() : Number.POSITIVE_INFINITY
    const tickMs = endless?.tickMs ?? Number.POSITIVE_INFINITY
    const nearest = Math.min(attempts.waitMs(), silence.patienceLeft(), outageMs, tickMs, lanes.waitMs())
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
    if (isPaused) silence.excuse(clock.elapsed() - asked)
    return permit
  }

  const begin = (chosen: Attempt, permit: Permit) => {
    progress.inFlight += 1
    void queue
      .add(() => attempts.perform(chosen, permit))
      .finally(() => {
        progress.inFlight -= 1
        lanes.askAgain(chosen.job.feed)
        endless?.over(chosen.job)
        wake()
      })
  }

  /** A key that may be refused is tried once, and an API that is away with one request at a time. */
  const mustWait = (): boolean => {
    if (outage.isOn()) return progress.inFlight > 0 || outage.waitMs() > 0
    return endless !== undefined && progress.requests === 0 && progress.inFlight > 0
  }

  /** False when nothing is left to do, or the run is over. */
  const step = async (): Promise<boolean> => {
    if (mustWait()) {
      await change()
      return true
    }
    const permit = await nextPermit()
    if (!permit) return false
    const error = silence.tooLong()
    if (error) {
      permit.cancel()
      stop(error)
      return false
    }
    const chosen = lanes.choose(lane => (lane === 'retry' ? attempts.takeDue() : undefined))
    if (chosen) {
      begin(chosen, permit)
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
      attempts.giveUp()
      if (stopped !== undefined) throw stopped
      if (progress.accepted === 0 && progress.turnedAway > 0 && !soft.aborted) throw accessGone()
    },
  }
}
