import PQueue from 'p-queue'
import type { Governor } from '../../api/governor/governor.ts'
import type { Permit } from '../../api/governor/in-flight.ts'
import type { HealthCheck, NextStep } from '../../api/reach-events.ts'
import { HOUR_MS } from '../../base/clock.ts'
import type { EngineContext } from '../context/context.ts'
import type { ChosenJob, EndlessWork, Source } from '../context/job.ts'
import type { RequestAttempts } from '../requests/attempts.ts'
import type { Reachability } from '../requests/reachability.ts'
import type { SchedulerProgress } from '../requests/request-counts.ts'
import type { Lanes } from './lanes.ts'
import { type Decision, decide, decideWithoutJob } from './next-step.ts'
import type { SchedulerWaits } from './waiting.ts'

export interface StepDeps {
  context: Pick<EngineContext, 'store' | 'clock'>
  governor: Governor
  sources: readonly Source[]
  endless: EndlessWork | undefined
  progress: SchedulerProgress
  reachability: Reachability
  attempts: RequestAttempts
  lanes: Lanes
  waits: SchedulerWaits
  /** Ends all waits. */
  noMore: AbortSignal
  /** Time until a request on this route may be sent, in ms, regardless of requests in flight. */
  restMs(route: string): number
  /** Ends the run with this error. */
  stop(error: unknown): void
}

/**
 * The longest wait while there is work. Something may have fallen due after the lanes had been asked and before the
 * wait was computed. With a permit that no job could use, a long pass may commit for seconds, while other sources get
 * work.
 */
const LONGEST_WAIT_MS = 1000

/** The longest wait of a daemon while nothing is due. */
const LONGEST_REST_MS = HOUR_MS

/** The steps of the scheduler, and the requests in flight. */
export function createSteps(deps: StepDeps) {
  const { context, governor, sources, endless, progress, reachability, attempts, lanes, stop } = deps
  const { store, clock } = context
  const { wake, wait } = deps.waits
  const queue = new PQueue({ concurrency: Number.POSITIVE_INFINITY })
  /** A permit that no job could use, for the next job. */
  let kept: Permit | undefined

  const drop = () => {
    kept?.cancel()
    kept = undefined
  }

  /** The permit for the next request. Undefined when the run is over. */
  const nextPermit = async (): Promise<Permit | undefined> => {
    const askedAt = clock.elapsed()
    const pause = governor.state()
    const isPaused = pause.pausedUntil !== undefined
    if (isPaused) drop()
    // The pause after a 429 is noted with that 429. No answer precedes the pause at the daily limit, so it is noted
    // here.
    if (pause.pauseReason === 'requests-per-day') reachability.notePause(pause)
    const permit = kept ?? (await governor.permit(deps.noMore))
    kept = undefined
    if (isPaused) reachability.excludeWait(clock.elapsed() - askedAt)
    return permit
  }

  /** Performs a request while others are in flight. */
  const run = (work: () => Promise<void>, after?: () => void) => {
    progress.inFlight += 1
    void queue.add(work).finally(() => {
      progress.inFlight -= 1
      after?.()
      wake()
    })
  }

  const start = (chosen: ChosenJob, permit: Permit): void => {
    const { job } = chosen
    run(
      () => attempts.perform(chosen, permit),
      () => {
        lanes.askAgain(job.feed)
        endless?.onEnd(job)
      },
    )
  }

  const sendHealthCheck = async (check: HealthCheck): Promise<void> => {
    const permit = await nextPermit()
    if (permit) run(() => attempts.sendHealthCheck(check, permit))
  }

  /**
   * How long until a source may have something to send, in ms. A source that is due now, but has no job, waits for
   * another source and does not count. In a backfill, infinite when nothing waits for a time.
   */
  const untilDueMs = (): number => {
    const waits = sources.map(source => Math.max(deps.restMs(source.route), source.waitMs()))
    const later = Math.min(...waits.filter(ms => ms > 0))
    if (!endless) return later
    return Math.min(later, waits.some(ms => ms <= 0) ? LONGEST_WAIT_MS : LONGEST_REST_MS)
  }

  /** Resolves when a job is over, after a commit, or when `ms` have passed: a commit may give any source a job. */
  const waitForWork = async (ms: number) => {
    const endListening = store.transaction.onCommit(wake)
    // Timers cut fractions off, and waking early would cost another sleep.
    const isWoken = await wait(Math.min(Math.ceil(ms) + 1, reachability.patienceLeftMs(), lanes.waitMs()))
    endListening()
    // After a commit, the lanes ask the sources again by themselves.
    if (!isWoken) lanes.askAll()
  }

  const nextReach = (): NextStep => {
    const check = attempts.keyCheck()
    return check ? { kind: 'health-check', check } : reachability.next()
  }

  const decision = (): Decision =>
    decide({
      reach: nextReach(),
      isSilentForGood: reachability.silenceError() !== undefined,
      isFirst: endless !== undefined && progress.requests === 0,
      inFlight: progress.inFlight,
      unanswered: attempts.unanswered(),
    })

  /** Sends the most urgent job. False when no work is left or the run is over. */
  const send = async (): Promise<boolean> => {
    const permit = await nextPermit()
    if (!permit) return false
    // Much may have changed during a long wait for the permit.
    if (decision().step !== 'send') {
      kept = permit
      return true
    }
    const chosen = lanes.choose()
    if (chosen) {
      start(chosen, permit)
      return true
    }
    if (await store.waitUntilFree()) {
      permit.cancel()
      lanes.askAll()
      return true
    }
    return withoutJob(permit)
  }

  /** Handles a permit that no job could use. Returns false when no work is left. */
  const withoutJob = async (permit: Permit): Promise<boolean> => {
    if (attempts.unanswered() > 0) for (const source of sources) source.share?.()
    const inFlight = progress.inFlight
    const dueMs = inFlight > 0 ? LONGEST_WAIT_MS : untilDueMs()
    const next = decideWithoutJob({
      inFlight,
      unanswered: attempts.unanswered(),
      // A daemon always has something due later, so only a wait for a route counts.
      isDueLater: endless ? sources.some(({ route }) => deps.restMs(route) > 0) : Number.isFinite(dueMs),
      isEndless: endless !== undefined,
    })
    if (next === 'keep') {
      kept = permit
      await wait(Math.min(LONGEST_WAIT_MS, reachability.patienceLeftMs(), lanes.waitMs()))
      return true
    }
    permit.cancel()
    if (next === 'finish') return lanes.askAllAgain() || attempts.acceptRefusals()
    if (next === 'rest') attempts.acceptRefusals()
    await waitForWork(dueMs)
    return true
  }

  return {
    /** Sends one request, or waits until one may be sent. False when no work is left or the run is over. */
    async next(): Promise<boolean> {
      const next = decision()
      if (next.step === 'send') return send()
      // Nothing may be sent now, so a retry that falls due must not end this wait.
      if (next.step === 'wait')
        await wait(Math.min(next.ms ?? Number.POSITIVE_INFINITY, reachability.patienceLeftMs()))
      else if (next.step === 'health-check') await sendHealthCheck(next.check)
      else stop(next.because === 'silence' ? reachability.silenceError() : reachability.accessError())
      return true
    },
    /** Returns a kept permit to the governor. Resolves when no request is in flight. */
    async end(): Promise<void> {
      drop()
      await queue.onIdle()
    },
  }
}
