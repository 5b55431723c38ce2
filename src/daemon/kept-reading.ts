import type { Clock } from '../clock.ts'

/** How long a reading serves whoever asks next. */
const KEPT_MS = 1000

interface Reading<T> {
  of: string
  value: Promise<T>
  /** By `elapsed`. */
  begunAt: number
}

/** One reading for all who ask within a second, so that many requests cost the event loop no more than one. */
export function createKeptReading<T>(read: (of: string) => Promise<T>, { elapsed }: Pick<Clock, 'elapsed'>) {
  let last: Reading<T> | undefined
  return (of: string): Promise<T> => {
    if (last?.of === of && elapsed() - last.begunAt < KEPT_MS) return last.value
    const reading: Reading<T> = { of, value: read(of), begunAt: elapsed() }
    last = reading
    reading.value.catch(() => {
      if (last === reading) last = undefined
    })
    return reading.value
  }
}
