import { HOUR_MS } from '../../base/clock.ts'
import type { CalendarDay } from './calendar-days.ts'

/** Instants as the calendar has them. Pure. */
export interface LocalTime {
  /** When the first day begins, and when the last one has ended, in ms since the epoch. */
  from: number
  to: number
  /** Undefined for an instant outside of the calendar. */
  dayOf(ms: number): CalendarDay | undefined
  /** Working hours from the first day of the calendar to the instant. Their difference is the working time between two. */
  workHoursTo(ms: number): number | null
}

/** @param days in their order, without a gap */
export function createLocalTime(days: readonly CalendarDay[]): LocalTime {
  const begins = days.map(({ utc_from }) => Date.parse(utc_from))
  const end = Date.parse(days.at(-1)?.utc_to ?? '')
  const dayOf = (ms: number) => {
    if (!(ms < end)) return undefined
    let [low, high] = [0, begins.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if ((begins[middle] ?? 0) <= ms) low = middle + 1
      else high = middle
    }
    return days[low - 1]
  }
  return {
    from: begins[0] ?? 0,
    to: end,
    dayOf,
    workHoursTo(ms) {
      const day = dayOf(ms)
      if (!day) return null
      const { work_from: from, work_to: to, work_hours_before: before } = day
      if (from === null || to === null) return before
      const worked = Math.min(ms, Date.parse(to)) - Date.parse(from)
      return before + Math.max(0, worked) / HOUR_MS
    },
  }
}
