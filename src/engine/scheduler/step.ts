import type { Permit } from '../../api/governor/in-flight.ts'
import type { EngineContext } from '../context/context.ts'
import type { EndlessWork, Source } from '../context/job.ts'
import { nextTryMs } from '../due/retries.ts'
import type { RequestAttempts } from '../requests/attempts.ts'
import type { Permits } from '../requests/permits.ts'
import type { Reachability } from '../requests/reachability.ts'
import type { SchedulerProgress } from '../requests/request-counts.ts'
import type { Dispatch } from './dispatch.ts'
import type { Lanes } from './lanes.ts'
import { type Decision, decide, decideWithoutJob } from './next-step.ts'
import type { SchedulerWaits } from './waiting.ts'

export interface StepDeps {
  context: Pick<EngineContext, 'store' | 'backoffs'>
  sources: readonly Source[]
  endless: EndlessWork | undefined
  progress: SchedulerProgress
  reachability: Reachability
  attempts: Pick<RequestAttempts, 'unanswered' | 'acceptRefusals'>
  permits: Permits
  lanes: Lanes
  dispatch: Dispatch
  waits: SchedulerWaits
  /** Time until a request on this route may be sent, in ms, but for those in flight. */
  restMs(route: string): number
  /** Ends the run with this error. */
  stop(error: unknown): void
}

/**
 * The longest wait while there is work. Something may have fallen due after the lanes had been asked and before the wait
 * was computed. With a permit that no job could use, a long pass may commit for seconds, while other sources get work.
 */
const LONGEST_WAIT_MS = 1000

/**
 * Returns the function that the scheduler calls repeatedly. Each call sends one request, or waits until one may be
 * sent. It returns false when no work is left or the run is over.
 */
export function createStep(deps: StepDeps): () => Promise<boolean> {
  const { context, sources, endless, progress, reachability, attempts, permits, lanes, dispatch, stop } = deps
  const { store } = context
  const { wake, wait } = deps.waits

  /**
   * Time until the first source whose route rests may go on, in ms, and in a backfill until the first failed request is
   * made again. The daemon's `idleMs` covers these.
   */
  const laterMs = (): number =>
    Math.min(
      ...sources.map(source => {
        const restMs = deps.restMs(source.route)
        const tryMs = endless
          ? Number.POSITIVE_INFINITY
          : Math.min(nextTryMs(context, source), source.waitMs?.() ?? Number.POSITIVE_INFINITY)
        if ((restMs <= 0 && !Number.isFinite(tryMs)) || source.finished()) return Number.POSITIVE_INFINITY
        return Number.isFinite(tryMs) ? Math.max(restMs, tryMs) : restMs
      }),
    )

  /** Resolves when a job is over, something falls due, or `mostMs` have passed. Returns whether a job or a commit ended it. */
  const waitForChange = (mostMs: number): Promise<boolean> =>
    wait(Math.min(laterMs(), reachability.patienceLeftMs(), mostMs, lanes.waitMs()))

  /** Waits while no source has a job. A commit may give one to any of them. */
  const waitForWork = async () => {
    const endListening = store.transaction.onCommit(wake)
    const isWoken = await waitForChange(endless ? endless.idleMs() : LONGEST_WAIT_MS)
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
      hasRetries: laterMs() !== Number.POSITIVE_INFINITY,
      isEndless: endless !== undefined,
    })
    if (next === 'keep') {
      permits.keep(permit)
      await waitForChange(LONGEST_WAIT_MS)
      return true
    }
    permit.cancel()
    if (next === 'finish') return lanes.askAllAgain() || attempts.acceptRefusals()
    if (next === 'rest') attempts.acceptRefusals()
    await waitForWork()
    return true
  }

  return async () => {
    const next = decision()
    if (next.step === 'send') return send()
    // Nothing may be sent now, so a retry that falls due must not end this wait.
    if (next.step === 'wait')
      await wait(Math.min(next.ms ?? Number.POSITIVE_INFINITY, reachability.patienceLeftMs()))
    else if (next.step === 'health-check') await dispatch.sendHealthCheck(next.check)
    else stop(next.because === 'silence' ? reachability.silenceError() : reachability.accessError())
    return true
  }
}
