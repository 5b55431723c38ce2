import { type CompanySettings, SETTINGS } from './settings.ts'

/** Local days, weeks, fiscal quarters and working hours of the company. A day is `YYYY-MM-DD`. */

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

const offsetMs = ({ utcOffsetHours }: CompanySettings): number => utcOffsetHours * HOUR_MS

/** The local day of an instant. */
export const dayOf = (instant: string, settings: CompanySettings = SETTINGS): string =>
  new Date(Date.parse(instant) + offsetMs(settings)).toISOString().slice(0, 10)

/** Days since 1970-01-01. */
const dayNumber = (day: string): number => Math.round(Date.parse(day) / DAY_MS)

const dayWithNumber = (number: number): string => new Date(number * DAY_MS).toISOString().slice(0, 10)

export const addDays = (day: string, days: number): string => dayWithNumber(dayNumber(day) + days)

export const daysBetween = (from: string, to: string): number => dayNumber(to) - dayNumber(from)

/** 1 is Monday, 7 is Sunday. */
const weekday = (day: string): number => ((dayNumber(day) + 3) % 7) + 1

/** The Monday of the week of a day. */
export const mondayOf = (day: string): string => addDays(day, 1 - weekday(day))

/** The months before that of a day, as `YYYY-MM`, the earliest first. */
export function lastMonths(day: string, count: number): string[] {
  const [year = 0, month = 0] = day.split('-').map(Number)
  return Array.from({ length: count }, (_, number) =>
    new Date(Date.UTC(year, month - 1 - count + number, 1)).toISOString().slice(0, 7),
  )
}

/** The first day of the calendar quarter of a day, or of one that is `ahead` quarters later. */
export function quarterBegin(day: string, ahead = 0): string {
  const [year = 0, month = 0] = day.split('-').map(Number)
  return new Date(Date.UTC(year, 3 * (Math.floor((month - 1) / 3) + ahead), 1)).toISOString().slice(0, 10)
}

export interface FiscalQuarter {
  /** `FY2026-Q1`. */
  name: string
  fromDay: string
  toDay: string
}

/** The fiscal quarter of a day, or one that is `ahead` quarters later. */
export function fiscalQuarterOf(
  day: string,
  ahead = 0,
  { fiscalYearStartMonth }: CompanySettings = SETTINGS,
): FiscalQuarter {
  const [year = 0, month = 0] = day.split('-').map(Number)
  const monthsSinceStart = year * 12 + (month - fiscalYearStartMonth)
  const quarter = Math.floor(monthsSinceStart / 3) + ahead
  const firstDay = (of: number): string =>
    new Date(Date.UTC(Math.floor(of / 4), (of % 4) * 3 + fiscalYearStartMonth - 1, 1))
      .toISOString()
      .slice(0, 10)
  return {
    name: `FY${Math.floor(quarter / 4)}-Q${(quarter % 4) + 1}`,
    fromDay: firstDay(quarter),
    toDay: addDays(firstDay(quarter + 1), -1),
  }
}

export const hoursBetween = (from: string, to: string): number =>
  (Date.parse(to) - Date.parse(from)) / HOUR_MS

/** Hours of working time between two instants. */
export function workingHoursBetween(from: string, to: string, settings: CompanySettings = SETTINGS): number {
  const start = Date.parse(from) + offsetMs(settings)
  const end = Date.parse(to) + offsetMs(settings)
  let worked = 0
  for (let day = Math.floor(start / DAY_MS); day * DAY_MS < end; day++) {
    if (!settings.workdays.includes(weekday(dayWithNumber(day)))) continue
    const opens = Math.max(start, day * DAY_MS + settings.workFromHour * HOUR_MS)
    const closes = Math.min(end, day * DAY_MS + settings.workToHour * HOUR_MS)
    worked += Math.max(0, closes - opens)
  }
  return worked / HOUR_MS
}
