import PQueue from 'p-queue'
import type { Permit } from '../../api/governor/in-flight.ts'
import type { HealthCheck } from '../../api/reach.ts'
import { HOUR_MS } from '../../base/clock.ts'
import type { EngineContext } from '../context/context.ts'
import type { ChosenJob, EndlessWork, Source } from '../context/job.ts'
import type { RequestAttempts } from '../requests/attempts.ts'
import type { Permits } from '../requests/permits.ts'
import type { Reachability } from '../requests/reachability.ts'
import type { SchedulerProgress } from '../requests/request-counts.ts'
import type { Lanes } from './lanes.ts'
import { type Decision, decide, decideWithoutJob } from './next-step.ts'
import type { SchedulerWaits } from './waiting.ts'

export interface StepDeps {
  context: Pick<EngineContext, 'store'>
  sources: readonly Source[]
  endless: EndlessWork | undefined
  progress: SchedulerProgress
  reachability: Reachability
  attempts: RequestAttempts
  permits: Permits
  lanes: Lanes
  waits: SchedulerWaits
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

export interface Steps {
  /** Sends one request, or waits until one may be sent. False when no work is left or the run is over. */
  next(): Promise<boolean>
  /** Resolves when no request is in flight. */
  onIdle(): Promise<void>
}

/** The steps of the scheduler, and the requests in flight. */
export function createSteps(deps: StepDeps): Steps {
  const { context, sources, endless, progress, reachability, attempts, permits, lanes, stop } = deps
  const { store } = context
  const { wake, wait } = deps.waits
  const queue = new PQueue({ concurrency: Number.POSITIVE_INFINITY })

  /** Performs a request while others are in flight. */
  const run = (work: () => Promise<void>, after?: () => void) => {
    progress.inFlight += 1
    void queue.add(work).finally(() => {
      progress.inFlight -= 1
      after?.()
      wake()
    })
  }

  /** Sends the job's request. If a backfill has abandoned the route, the job fails instead, and the permit is kept. */
  const start = async (chosen: ChosenJob, permit: Permit): Promise<void> => {
    const { job } = chosen
    const reason = endless ? undefined : reachability.abandonedReason(job.request.route)
    if (reason !== undefined) {
      permits.keep(permit)
      await attempts.refuse(chosen, reason)
      lanes.askAgain(job.feed)
      return
    }
    run(
      () => attempts.perform(chosen, permit),
      () => {
        lanes.askAgain(job.feed)
        endless?.onEnd(job)
      },
    )
  }

  const sendHealthCheck = async (check: HealthCheck): Promise<void> => {
    const permit = await permits.next()
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
    const chosen = lanes.choose()
    if (chosen) {
      await start(chosen, permit)
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
      permits.keep(permit)
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
    async next() {
      const next = decision()
      if (next.step === 'send') return send()
      // Nothing may be sent now, so a retry that falls due must not end this wait.
      if (next.step === 'wait')
        await wait(Math.min(next.ms ?? Number.POSITIVE_INFINITY, reachability.patienceLeftMs()))
      else if (next.step === 'health-check') await sendHealthCheck(next.check)
      else stop(next.because === 'silence' ? reachability.silenceError() : reachability.accessError())
      return true
    },
    onIdle: () => queue.onIdle(),
  }
}
