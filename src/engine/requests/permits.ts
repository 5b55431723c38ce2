import type { Governor } from '../../api/governor/governor.ts'
import type { Permit } from '../../api/governor/in-flight.ts'
import type { Clock } from '../../base/clock.ts'
import type { Reachability } from './reachability.ts'

/** The scheduler's permits. A permit that no job could use is kept for the next job. */
export interface Permits {
  /** Undefined when the run is over. */
  next(): Promise<Permit | undefined>
  keep(permit: Permit): void
  /** Returns a kept permit to the governor. */
  drop(): void
}

export interface PermitsDeps {
  governor: Governor
  reachability: Pick<Reachability, 'excludeWait' | 'notePause'>
  clock: Pick<Clock, 'elapsed'>
  /** Ends all waits. */
  noMore: AbortSignal
}

export function createPermits({ governor, reachability, clock, noMore }: PermitsDeps): Permits {
  let kept: Permit | undefined
  const drop = () => {
    kept?.cancel()
    kept = undefined
  }
  return {
    async next() {
      const askedAt = clock.elapsed()
      const pause = governor.state()
      const isPaused = pause.pausedUntil !== undefined
      if (isPaused) drop()
      // The pause after a 429 is noted with that 429. No answer precedes the pause at the daily limit, so it is noted
      // here.
      if (pause.pauseReason === 'requests-per-day') reachability.notePause(pause)
      const permit = kept ?? (await governor.permit(noMore))
      kept = undefined
      if (isPaused) reachability.excludeWait(clock.elapsed() - askedAt)
      return permit
    },
    keep(permit) {
      kept = permit
    },
    drop,
  }
}
