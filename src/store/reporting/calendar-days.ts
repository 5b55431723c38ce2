import { DAY_MS, HOUR_MS, isoInstant, MINUTE_MS } from '../../base/clock.ts'
import { createDayBegin, createLocalMinute } from '../../base/time-zone.ts'

/** The local days of a time zone, with the weeks, quarters and years that a company counts in. Pure. */

export interface CalendarRules {
  /** An IANA name, such as `Asia/Tokyo`. */
  timeZone: string
  /** ISO weekday on which a week begins; 1 is Monday. */
  weekStart: number
  /** The month in which the fiscal year begins, from 1 to 12. */
  fiscalYearStart: number
  fiscalYearNamedBy: 'start' | 'end'
  /** ISO weekdays, 1 for Monday. */
  workdays: readonly number[]
  /** Days such as `2026-12-25`. */
  holidays: readonly string[]
  /** When work begins and ends on a workday, in minutes after midnight. */
  workFrom: number
  workTo: number
}

export interface CalendarDay {
  day: string
  /** Days since 1970-01-01. */
  day_number: number
  utc_from: string
  /** The first instant after the day. */
  utc_to: string
  week: string
  month: string
  quarter: string
  year: number
  fiscal_quarter: string
  fiscal_year: number
  weekday: number
  is_workday: 0 | 1
  /** When work begins; null on a day without work. */
  work_from: string | null
  work_to: string | null
  /** Working hours from the first day of the calendar to this day. */
  work_hours_before: number
}

/** @returns the days of the years from `first` to `last`, both included */
export function calendarDays(
  rules: CalendarRules,
  { first, last }: { first: number; last: number },
): CalendarDay[] {
  const begin = Date.UTC(first, 0, 1) / DAY_MS
  const end = Date.UTC(last + 1, 0, 1) / DAY_MS
  const beginOf = createDayBegin(rules.timeZone)
  const minuteOf = createLocalMinute(rules.timeZone)
  const days: CalendarDay[] = []
  let from = beginOf(begin)
  let worked = 0
  for (let number = begin; number < end; number += 1) {
    const to = beginOf(number + 1)
    const day = dayOf(number, rules)
    const bounds = { from, to }
    // Where clocks that are set back show a minute twice, work begins at the first and ends at the last of them.
    const workFrom = Math.min(...instantsOf(rules.workFrom, bounds, minuteOf))
    const workTo = Math.max(...instantsOf(rules.workTo, bounds, minuteOf))
    days.push(
      Object.assign(day, {
        utc_from: days.at(-1)?.utc_to ?? isoInstant(from),
        utc_to: isoInstant(to),
        work_from: day.is_workday === 1 ? isoInstant(workFrom) : null,
        work_to: day.is_workday === 1 ? isoInstant(workTo) : null,
        work_hours_before: worked / HOUR_MS,
      }),
    )
    worked += day.is_workday * (workTo - workFrom)
    from = to
  }
  return days
}

/**
 * When the clocks show a minute of a day, counted from its begin and back from its end: clocks are set forward or back
 * once, near one of the two. A minute that they skip comes as long after the begin as on other days. A day that the
 * zone skipped has no minutes.
 */
function instantsOf(
  minute: number,
  { from, to }: { from: number; to: number },
  minuteOf: (ms: number) => number,
): number[] {
  if (to === from) return [from]
  const fromBegin = from + minute * MINUTE_MS
  if (to - from === DAY_MS) return [fromBegin]
  const fromEnd = to - DAY_MS + minute * MINUTE_MS
  const shown = [fromBegin, fromEnd].filter(at => minuteOf(at) === minute % DAY_MINUTES)
  return shown.length === 0 ? [fromBegin] : shown
}

const DAY_MINUTES = DAY_MS / MINUTE_MS

const textOf = (number: number) => new Date(number * DAY_MS).toISOString().slice(0, 10)

type Named = Omit<CalendarDay, 'utc_from' | 'utc_to' | 'work_from' | 'work_to' | 'work_hours_before'>

function dayOf(number: number, rules: CalendarRules): Named {
  const { weekStart, fiscalYearStart, fiscalYearNamedBy, workdays, holidays } = rules
  const day = textOf(number)
  const date = new Date(number * DAY_MS)
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth() + 1]
  const weekday = date.getUTCDay() || 7
  const monthsIn = (month - fiscalYearStart + 12) % 12
  const begun = month >= fiscalYearStart ? year : year - 1
  const fiscalYear = fiscalYearNamedBy === 'end' && fiscalYearStart > 1 ? begun + 1 : begun
  return {
    day,
    day_number: number,
    week: textOf(number - ((weekday - weekStart + 7) % 7)),
    month: day.slice(0, 7),
    quarter: `${year}-Q${Math.ceil(month / 3)}`,
    year,
    fiscal_quarter: `FY${fiscalYear}-Q${Math.floor(monthsIn / 3) + 1}`,
    fiscal_year: fiscalYear,
    weekday,
    is_workday: workdays.includes(weekday) && !holidays.includes(day) ? 1 : 0,
  }
}

export type LocalTime = ReturnType<typeof createLocalTime>

/** Converts instants to days and working hours of the calendar. @param days in their order, without a gap */
export function createLocalTime(days: readonly CalendarDay[]) {
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
    /** When the first day begins, and when the last one has ended, in ms since the epoch. */
    from: begins[0] ?? 0,
    to: end,
    /** Undefined for an instant outside of the calendar. */
    dayOf,
    /** Working hours from the first day of the calendar to the instant. The difference of two results is working time. */
    workHoursTo(ms: number) {
      const day = dayOf(ms)
      if (!day) return null
      const { work_from: from, work_to: to, work_hours_before: before } = day
      if (from === null || to === null) return before
      const worked = Math.min(ms, Date.parse(to)) - Date.parse(from)
      return before + Math.max(0, worked) / HOUR_MS
    },
  }
}
