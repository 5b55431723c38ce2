import { type Clock, SECOND_MS } from './clock.ts'

interface CachedReading<T> {
  of: string
  value: Promise<T>
  /** When the reading started, in ms of `elapsed`. */
  startedAt: number
  isUnderWay: boolean
}

/**
 * Calls with the latest argument share one reading while it is under way and until `cacheMs` after its start, so that
 * repeated calls never run a slow reading twice at once. Failed readings are not reused.
 */
export function createCachedReading<T>(
  read: (of: string) => Promise<T>,
  { elapsed }: Pick<Clock, 'elapsed'>,
  cacheMs = SECOND_MS,
) {
  let last: CachedReading<T> | undefined
  return (of: string): Promise<T> => {
    const isUsable = last?.of === of && (last.isUnderWay || elapsed() - last.startedAt < cacheMs)
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
