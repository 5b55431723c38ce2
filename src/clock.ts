import { setTimeout as delay } from 'node:timers/promises'

/** The only source of time and of waiting, so that tests can put a virtual one in its place. */
export interface Clock {
  /** Milliseconds since the epoch by this machine's clock. It may be wrong and may jump: for display and ages. */
  now(): number
  /** Milliseconds that only ever grow: for measuring. */
  elapsed(): number
  /** Resolves after `ms`, or at once when the signal is or becomes aborted; it never rejects. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
}

/** The longest wait that a Node timer keeps; beyond it the timer would fire at once. */
const LONGEST_TIMER = 2 ** 31 - 1

export function systemClock(): Clock {
  return {
    now: () => Date.now(),
    elapsed: () => performance.now(),
    sleep: async (ms, signal) => {
      let left = Math.max(0, ms)
      do {
        const step = Math.min(left, LONGEST_TIMER)
        // An abort is an ordinary end of waiting here, so its rejection is not news.
        await delay(step, undefined, signal ? { signal } : {}).catch(() => undefined)
        left -= step
      } while (left > 0 && !signal?.aborted)
    },
  }
}

/** An instant as the warehouse writes it: UTC, milliseconds, 24 characters. */
export function isoInstant(ms: number): string {
  return new Date(ms).toISOString()
}
