import type { Clock } from './clock.ts'

/** How long a reading is reused. */
const CACHE_MS = 1000

interface CachedReading<T> {
  of: string
  value: Promise<T>
  /** In ms, by `elapsed`. */
  startedAt: number
}

/** Reuses one reading for all calls with the same argument within a second. Failed readings are not reused. */
export function createCachedReading<T>(
  read: (of: string) => Promise<T>,
  { elapsed }: Pick<Clock, 'elapsed'>,
) {
  let last: CachedReading<T> | undefined
  return (of: string): Promise<T> => {
    if (last?.of === of && elapsed() - last.startedAt < CACHE_MS) return last.value
    const reading: CachedReading<T> = { of, value: read(of), startedAt: elapsed() }
    last = reading
    reading.value.catch(() => {
      if (last === reading) last = undefined
    })
    return reading.value
  }
}
