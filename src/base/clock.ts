export const SECOND_MS = 1000
export const MINUTE_MS = 60 * SECOND_MS
export const HOUR_MS = 60 * MINUTE_MS
export const DAY_MS = 24 * HOUR_MS

/** All time and waiting goes through this interface, so that tests can use a virtual clock. */
export interface Clock {
  /** Milliseconds since the epoch by this machine's clock. It may be wrong or jump: use it for display and ages. */
  now(): number
  /** Monotonic milliseconds, for measuring durations. */
  elapsed(): number
  /** Resolves after `ms`, or as soon as the signal is aborted. Never rejects. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
}

/** The longest delay of a Node timer, in ms. A timer with a longer delay fires at once. */
const LONGEST_TIMER = 2 ** 31 - 1

export function systemClock(): Clock {
  return {
    now: () => Date.now(),
    elapsed: () => performance.now(),
    sleep: (ms, signal) => sleep(ms, signal),
  }
}

/** Uses a plain timer: `timers/promises` creates an error for each aborted sleep, and most sleeps here are aborted. */
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

/**
 * The result of the work, or the error once `ms` have passed: work that hangs does not hold the caller up.
 * @param work its signal is aborted with the error
 */
export async function inTime<Result>(
  { sleep: wait }: Pick<Clock, 'sleep'>,
  { ms, error }: { ms: number; error: Error },
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const [over, limit] = [new AbortController(), new AbortController()]
  const late = wait(ms, over.signal).then(() => {
    limit.abort(error)
    throw error
  })
  late.catch(() => undefined)
  try {
    return await Promise.race([work(limit.signal), late])
  } finally {
    over.abort()
  }
}

/**
 * Milliseconds until the clock shows a multiple of `everyMs`. Writes of all loops that wake at that multiple share one
 * commit.
 */
export function untilNext(everyMs: number, now: number): number {
  return everyMs - (now % everyMs)
}

/** An instant in the warehouse's format: UTC, milliseconds, 24 characters. */
export function isoInstant(ms: number): string {
  return new Date(ms).toISOString()
}

/** The UTC day of an instant as `YYYY-MM-DD`. */
export function utcDay(ms: number): string {
  return isoInstant(ms).slice(0, 10)
}
