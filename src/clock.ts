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
    sleep: (ms, signal) => sleep(ms, signal),
  }
}

/** On a bare timer: a promised one that is aborted makes an error each time, and most sleeps here are. */
async function sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
  for (let left = Math.max(0, ms); !signal?.aborted; left -= LONGEST_TIMER) {
    await new Promise<void>(resolve => {
      const end = () => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', end)
        resolve()
      }
      const timer = setTimeout(end, Math.min(left, LONGEST_TIMER))
      signal?.addEventListener('abort', end, { once: true })
    })
    if (left <= LONGEST_TIMER) return
  }
}

/** An instant as the warehouse writes it: UTC, milliseconds, 24 characters. */
export function isoInstant(ms: number): string {
  return new Date(ms).toISOString()
}
