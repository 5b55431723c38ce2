import type { Clock } from './clock.ts'

interface CachedReading<T> {
  of: string
  value: Promise<T>
  /** In ms of `elapsed`; infinite while the reading is under way. */
  usableUntil: number
}

const REUSE_MS = 1000

/**
 * Calls with the latest argument share one reading while it is under way and for some time after its start, so that
 * repeated calls never run a slow reading twice at once. Failed readings are not reused.
 * @param reuseMs that time, by the time that the reading took. Default: a second
 */
export function createCachedReading<T>(
  read: (of: string) => Promise<T>,
  { elapsed }: Pick<Clock, 'elapsed'>,
  reuseMs: (tookMs: number) => number = () => REUSE_MS,
) {
  let last: CachedReading<T> | undefined
  return (of: string): Promise<T> => {
    const startedAt = elapsed()
    if (last?.of === of && startedAt < last.usableUntil) return last.value
    const reading: CachedReading<T> = { of, value: read(of), usableUntil: Number.POSITIVE_INFINITY }
    last = reading
    reading.value.then(
      () => {
        reading.usableUntil = startedAt + reuseMs(elapsed() - startedAt)
      },
      () => {
        if (last === reading) last = undefined
      },
    )
    return reading.value
  }
}
