import type { Clock } from '../../base/clock.ts'
import type { Attempt } from '../context/job.ts'
import type { Reachability } from './reachability.ts'

/**
 * The attempts that wait. A delayed attempt waits until its retry is due, a parked one while its route rests. An
 * unconfirmed attempt was refused while it was not clear whether there is access.
 */
export interface PendingAttempts {
  /** `ms`: 0 when the attempt may be sent as soon as its route does not rest. */
  delay(attempt: Attempt, ms: number): void
  park(attempt: Attempt): void
  /** Whether a request of this feed is parked. The feed then need not create another. */
  isParked(feed: string): boolean
  addUnconfirmed(attempt: Attempt): void
  /** Retries the unconfirmed attempts. Returns their number. */
  retryUnconfirmed(): number
  /** Takes an attempt that is due. */
  takeDue(): Attempt | undefined
  /** Time until the next attempt is due, in ms; infinite when none waits. */
  waitMs(): number
  /** Ends the jobs of all waiting attempts. */
  end(): void
}

export interface PendingAttemptsDeps {
  clock: Pick<Clock, 'elapsed'>
  reachability: Pick<Reachability, 'restMs' | 'abandonedReason'>
  /** True in a backfill: it fails requests on an abandoned route at once, so they do not wait. */
  abandonsRoutes: boolean
}

interface Delayed extends Attempt {
  /** By `clock.elapsed`. */
  notBefore: number
}

export function createPendingAttempts({
  clock,
  reachability,
  abandonsRoutes,
}: PendingAttemptsDeps): PendingAttempts {
  const delayed: Delayed[] = []
  const unconfirmed: Attempt[] = []
  /** By feed, the route that it waits for. */
  const parked = new Map<string, string>()

  const restMs = ({ job: { request } }: Attempt) =>
    abandonsRoutes && reachability.abandonedReason(request.route) !== undefined
      ? 0
      : reachability.restMs(request.route)

  const delay = (tried: Attempt, ms: number) => {
    delayed.push({ ...tried, notBefore: clock.elapsed() + ms })
  }

  return {
    delay,
    park(tried) {
      parked.set(tried.job.feed, tried.job.request.route)
      delay(tried, 0)
    },
    isParked(feed) {
      const route = parked.get(feed)
      if (route === undefined) return false
      if (reachability.restMs(route) > 0) return true
      parked.delete(feed)
      return false
    },
    addUnconfirmed: tried => {
      unconfirmed.push(tried)
    },
    retryUnconfirmed() {
      const retried = unconfirmed.splice(0)
      for (const tried of retried) delay(tried, 0)
      return retried.length
    },
    takeDue() {
      const due = delayed.findIndex(tried => tried.notBefore <= clock.elapsed() && restMs(tried) <= 0)
      return due < 0 ? undefined : delayed.splice(due, 1)[0]
    },
    waitMs: () =>
      Math.min(...delayed.map(tried => Math.max(tried.notBefore - clock.elapsed(), restMs(tried)))),
    end() {
      for (const { job } of [...delayed, ...unconfirmed]) job.over()
    },
  }
}
