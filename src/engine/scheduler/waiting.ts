import type { Clock } from '../../clock.ts'

/** The scheduler's waits, one at a time. */
export interface SchedulerWaits {
  /** Ends the wait in progress. */
  wake(): void
  /** Resolves after `ms`, or earlier when it is woken. Returns whether it was woken. */
  wait(ms: number): Promise<boolean>
}

/** Shared, since an abort without a reason creates a new exception each time. */
const WOKEN = new Error('The wait is over')

/** @param noMore ends the wait in progress and all later ones */
export function createWaiting(clock: Pick<Clock, 'sleep'>, noMore: AbortSignal): SchedulerWaits {
  let wake: () => void = () => undefined
  noMore.addEventListener('abort', () => wake(), { once: true })
  return {
    wake: () => wake(),
    async wait(ms) {
      const timer = new AbortController()
      let isWoken = false
      await new Promise<void>(resolve => {
        wake = () => {
          isWoken = true
          resolve()
        }
        if (noMore.aborted) wake()
        void clock.sleep(Math.max(ms, 1), timer.signal).then(resolve)
      })
      timer.abort(WOKEN)
      return isWoken
    },
  }
}
