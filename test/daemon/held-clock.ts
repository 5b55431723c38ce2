import { type Clock, systemClock } from '../../src/base/clock.ts'
import { until } from '../support/until.ts'

export interface HeldClock extends Clock {
  /** Ends the waits of this length that have begun. */
  pass(ms: number): void
  /** Resolves when a wait of this length has begun. */
  waits(ms: number): Promise<void>
}

/** The system clock, except that the test decides when the waits of these lengths end. */
export function heldClock(...lengths: readonly number[]): HeldClock {
  const clock = systemClock()
  const held = new Map<number, Set<() => void>>(lengths.map(ms => [ms, new Set()]))
  return {
    ...clock,
    pass(ms) {
      for (const end of [...(held.get(ms) ?? [])]) end()
    },
    async waits(ms) {
      await until(
        () => held.get(ms)?.size ?? 0,
        count => count > 0,
      )
    },
    async sleep(ms, signal) {
      const sleepers = held.get(ms)
      if (sleepers === undefined) return clock.sleep(ms, signal)
      if (signal?.aborted) return
      await new Promise<void>(resolve => {
        const end = () => {
          sleepers.delete(end)
          signal?.removeEventListener('abort', end)
          resolve()
        }
        sleepers.add(end)
        signal?.addEventListener('abort', end)
      })
    },
  }
}
