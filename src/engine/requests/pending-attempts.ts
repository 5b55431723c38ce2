import type { Clock } from '../../base/clock.ts'
import type { Attempt } from '../context/job.ts'

/**
 * The attempts that wait. A delayed attempt waits until its retry is due. An unconfirmed attempt was refused while it was
 * not clear whether there is access.
 */
export interface PendingAttempts {
  /** `ms`: 0 when the attempt may be sent as soon as its route does not rest. */
  delay(attempt: Attempt, ms: number): void
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
  /** Time until a request on this route may be sent, in ms; infinite while others have to end before. */
  untilMs(route: string): number
}

interface Delayed extends Attempt {
  /** By `clock.elapsed`. */
  notBefore: number
}

export function createPendingAttempts({ clock, untilMs }: PendingAttemptsDeps): PendingAttempts {
  const delayed: Delayed[] = []
  const unconfirmed: Attempt[] = []

  const delay = (tried: Attempt, ms: number) => {
    delayed.push({ ...tried, notBefore: clock.elapsed() + ms })
  }

  return {
    delay,
    addUnconfirmed: tried => {
      unconfirmed.push(tried)
    },
    retryUnconfirmed() {
      const retried = unconfirmed.splice(0)
      for (const tried of retried) delay(tried, 0)
      return retried.length
    },
    takeDue() {
      const due = delayed.findIndex(
        ({ notBefore, job }) => notBefore <= clock.elapsed() && untilMs(job.request.route) <= 0,
      )
      return due < 0 ? undefined : delayed.splice(due, 1)[0]
    },
    waitMs: () =>
      Math.min(
        ...delayed.map(({ notBefore, job }) =>
          Math.max(notBefore - clock.elapsed(), untilMs(job.request.route)),
        ),
      ),
    end() {
      for (const { job } of [...delayed, ...unconfirmed]) job.over()
    },
  }
}
