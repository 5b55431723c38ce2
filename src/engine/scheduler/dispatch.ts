import PQueue from 'p-queue'
import type { Permit } from '../../api/governor/in-flight.ts'
import type { HealthCheck } from '../../api/reach.ts'
import type { ChosenJob, EndlessWork } from '../context/job.ts'
import type { RequestAttempts } from '../requests/attempts.ts'
import type { Permits } from '../requests/permits.ts'
import type { Reachability } from '../requests/reachability.ts'
import type { SchedulerProgress } from '../requests/request-counts.ts'
import type { Lanes } from './lanes.ts'

/** Sends the chosen requests concurrently. */
export interface Dispatch {
  /**
   * Sends the job's request. If a backfill has abandoned the route, the job fails instead, and the permit is kept.
   */
  start(chosen: ChosenJob, permit: Permit): Promise<void>
  /** Sends the health check as soon as there is a permit. */
  sendHealthCheck(check: HealthCheck): Promise<void>
  /** Resolves when no request is in flight. */
  onIdle(): Promise<void>
}

export interface DispatchDeps {
  attempts: Pick<RequestAttempts, 'perform' | 'sendHealthCheck' | 'refuse'>
  reachability: Pick<Reachability, 'abandonedReason'>
  permits: Permits
  lanes: Pick<Lanes, 'askAgain'>
  progress: SchedulerProgress
  endless: EndlessWork | undefined
  /** Called when a request has ended. */
  wake(): void
}

export function createDispatch(deps: DispatchDeps): Dispatch {
  const { attempts, reachability, permits, lanes, progress, endless } = deps
  const queue = new PQueue({ concurrency: Number.POSITIVE_INFINITY })

  const run = (work: () => Promise<void>, after: () => void = () => undefined) => {
    progress.inFlight += 1
    void queue.add(work).finally(() => {
      progress.inFlight -= 1
      after()
      deps.wake()
    })
  }

  return {
    async start(chosen, permit) {
      const { job } = chosen
      const { route } = job.request
      const reason = endless ? undefined : reachability.abandonedReason(route)
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
    },
    async sendHealthCheck(check) {
      const permit = await permits.next()
      if (permit) run(() => attempts.sendHealthCheck(check, permit))
    },
    onIdle: () => queue.onIdle(),
  }
}
