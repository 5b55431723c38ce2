import type { Clock } from '../../src/base/clock.ts'

export interface VirtualClock extends Clock {
  /** Advances the time and ends every sleep that is due by then, the earliest first. */
  advance(ms: number): Promise<void>
  /** Changes what the clock shows, as a suspension of the machine does, or a person who sets it. Timers stand still. */
  set(ms: number): void
}

/** A clock that stands still until a test advances it. */
export function virtualClock(start: number): VirtualClock {
  let elapsed = 0
  let moved = 0
  const sleepers = new Set<{ until: number; wake: () => void }>()
  return {
    now: () => start + elapsed + moved,
    elapsed: () => elapsed,
    sleep: (ms, signal) =>
      new Promise(resolve => {
        if (signal?.aborted) return resolve()
        const wake = () => {
          sleepers.delete(sleeper)
          signal?.removeEventListener('abort', wake)
          resolve()
        }
        const sleeper = { until: elapsed + ms, wake }
        sleepers.add(sleeper)
        signal?.addEventListener('abort', wake)
      }),
    set: ms => {
      moved += ms
    },
    advance: async ms => {
      const target = elapsed + ms
      const due = () =>
        [...sleepers].filter(({ until }) => until <= target).sort((a, b) => a.until - b.until)[0]
      for (let sleeper = due(); sleeper !== undefined; sleeper = due()) {
        elapsed = Math.max(elapsed, sleeper.until)
        sleeper.wake()
        // The sleeper may start another sleep that is due too.
        await new Promise(setImmediate)
      }
      elapsed = target
    },
  }
}
