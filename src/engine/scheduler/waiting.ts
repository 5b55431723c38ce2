import { type Clock, MINUTE_MS } from '../../base/clock.ts'

/** How often a wait compares both clocks: timers stand still while a machine is suspended, but its clock does not. */
const LOOK_MS = MINUTE_MS

/** Ends when `ms` have passed by either clock: this machine's clock may be set back meanwhile. */
async function sleepAtMost(ms: number, clock: Clock, signal: AbortSignal): Promise<void> {
  const [at, elapsedAt] = [clock.now() + ms, clock.elapsed() + ms]
  for (;;) {
    const left = Math.min(at - clock.now(), elapsedAt - clock.elapsed())
    if (left <= 0 || signal.aborted) return
    await clock.sleep(Math.min(left, LOOK_MS), signal)
  }
}

/** Shared, since an abort without a reason creates a new exception each time. */
const WOKEN = new Error('The wait is over')

export type SchedulerWaits = ReturnType<typeof createWaiting>

/** The scheduler's waits, one at a time. @param noMore ends the wait in progress and all later ones */
export function createWaiting(clock: Clock, noMore: AbortSignal) {
  let wake: () => void = () => undefined
  noMore.addEventListener('abort', () => wake(), { once: true })
  return {
    /** Ends the wait in progress. */
    wake: () => wake(),
    /** Resolves after `ms`, or earlier when it is woken. Returns whether it was woken. */
    async wait(ms: number): Promise<boolean> {
      const timer = new AbortController()
      let isWoken = false
      await new Promise<void>(resolve => {
        wake = () => {
          isWoken = true
          resolve()
        }
        if (noMore.aborted) wake()
        void sleepAtMost(Math.max(ms, 1), clock, timer.signal).then(resolve)
      })
      timer.abort(WOKEN)
      return isWoken
    },
  }
}
