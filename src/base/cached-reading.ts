import type { Clock } from './clock.ts'

/** How long a reading is reused. */
const CACHE_MS = 1000

interface CachedReading<T> {
  of: string
  value: Promise<T>
  /** In ms, by `elapsed`. */
  startedAt: number
  isUnderWay: boolean
}

/**
 * Reuses one reading for all calls with the same argument while it is being made and until a second after it began, so
 * that a slow reading never runs twice at once. Failed readings are not reused.
 */
export function createCachedReading<T>(
  read: (of: string) => Promise<T>,
  { elapsed }: Pick<Clock, 'elapsed'>,
) {
  let last: CachedReading<T> | undefined
  return (of: string): Promise<T> => {
    const isUsable = last?.of === of && (last.isUnderWay || elapsed() - last.startedAt < CACHE_MS)
    if (last && isUsable) return last.value
    const reading: CachedReading<T> = { of, value: read(of), startedAt: elapsed(), isUnderWay: true }
    last = reading
    reading.value.then(
      () => {
        reading.isUnderWay = false
      },
      () => {
        if (last === reading) last = undefined
      },
    )
    return reading.value
  }
}
