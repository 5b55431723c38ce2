import { expect, test } from 'vitest'
import { type CalendarRules, calendarDays } from '../../src/store/reporting/calendar-days.ts'

const RULES: CalendarRules = {
  timeZone: 'UTC',
  weekStart: 1,
  fiscalYearStart: 1,
  fiscalYearNamedBy: 'start',
  workdays: [1, 2, 3, 4, 5],
  holidays: [],
  workFrom: 540,
  workTo: 1080,
}

const dayIn = (day: string, rules: Partial<CalendarRules> = {}) => {
  const year = Number(day.slice(0, 4))
  const found = calendarDays({ ...RULES, ...rules }, { first: year, last: year }).find(
    each => each.day === day,
  )
  if (!found) throw new Error(`the calendar lacks ${day}`)
  return found
}

test.each([
  [
    '2026-03-04',
    {},
    { week: '2026-03-02', month: '2026-03', quarter: '2026-Q1', weekday: 3, day_number: 20_516 },
  ],
  ['2026-03-01', {}, { week: '2026-02-23', weekday: 7, is_workday: 0 }],
  ['2026-03-01', { weekStart: 7 }, { week: '2026-03-01', weekday: 7 }],
  ['2026-01-01', {}, { week: '2025-12-29', year: 2026, is_workday: 1 }],
  ['2026-01-01', { holidays: ['2026-01-01'] }, { is_workday: 0 }],
  ['2026-03-31', { fiscalYearStart: 4 }, { fiscal_year: 2025, fiscal_quarter: 'FY2025-Q4' }],
  ['2026-04-01', { fiscalYearStart: 4 }, { fiscal_year: 2026, fiscal_quarter: 'FY2026-Q1' }],
  [
    '2026-04-01',
    { fiscalYearStart: 4, fiscalYearNamedBy: 'end' },
    { fiscal_year: 2027, fiscal_quarter: 'FY2027-Q1' },
  ],
  ['2026-04-01', { fiscalYearNamedBy: 'end' }, { fiscal_year: 2026, fiscal_quarter: 'FY2026-Q2' }],
] as const)('%s with %j is %j', (day, rules, expected) => {
  expect(dayIn(day, rules)).toMatchObject(expected)
})

test.each([
  ['Asia/Tokyo', '2026-03-04', '2026-03-03T15:00:00.000Z', 24],
  ['America/New_York', '2026-03-08', '2026-03-08T05:00:00.000Z', 23],
  ['America/New_York', '2026-11-01', '2026-11-01T04:00:00.000Z', 25],
  // Clocks went from 24:00 to 01:00 there, so the day began at 01:00.
  ['America/Sao_Paulo', '2018-11-04', '2018-11-04T03:00:00.000Z', 23],
  // The zone changed sides of the date line and left the day out.
  ['Pacific/Apia', '2011-12-30', '2011-12-30T10:00:00.000Z', 0],
])('in %s the day %s begins at %s and has %d hours', (timeZone, day, from, hours) => {
  const { utc_from, utc_to } = dayIn(day, { timeZone })
  expect([utc_from, (Date.parse(utc_to) - Date.parse(utc_from)) / 3_600_000]).toEqual([from, hours])
})

const EVERY_DAY = [1, 2, 3, 4, 5, 6, 7]
const minutes = (time: string) => Number(time.slice(0, 2)) * 60 + Number(time.slice(3))

test.each<[zone: string, day: string, from: string, to: string, localFrom?: string, localTo?: string]>([
  ['Asia/Tokyo', '2026-03-04', '00:00', '09:00'],
  // Clocks are set back at the end of the day.
  ['Africa/Cairo', '2026-10-29', '06:00', '15:00'],
  ['Africa/Cairo', '2026-04-24', '06:00', '15:00'],
  ['America/Santiago', '2026-04-04', '12:00', '21:00'],
  ['America/Santiago', '2026-09-06', '12:00', '21:00'],
  ['Europe/Berlin', '2026-03-29', '07:00', '16:00'],
  ['Europe/Berlin', '2026-10-25', '08:00', '17:00'],
  ['Australia/Lord_Howe', '2026-04-05', '22:30', '07:30'],
  // Clocks are changed within the hours of work.
  ['Europe/Berlin', '2026-03-29', '23:00', '22:00', '00:00', '24:00'],
  ['Europe/Berlin', '2026-10-25', '22:00', '23:00', '00:00', '24:00'],
  ['America/Santiago', '2026-04-04', '17:30', '03:15', '14:30', '23:15'],
  // They are set back from 01:00 to the begin of the same day, and forward from its begin.
  ['America/Havana', '2026-11-01', '04:00', '05:00', '00:00', '24:00'],
  ['America/Havana', '2026-11-01', '04:30', '05:45', '00:30', '00:45'],
  ['America/Havana', '2026-11-01', '14:00', '23:00'],
  ['America/Havana', '2026-03-08', '05:00', '04:00', '00:00', '24:00'],
  // They are set back by half an hour.
  ['Australia/Lord_Howe', '2026-04-05', '13:00', '07:30', '00:00', '18:00'],
  // The zone left the day out.
  ['Pacific/Apia', '2011-12-30', '10:00', '10:00'],
])(
  'in %s, work on %s lasts from %s to %s UTC',
  (timeZone, day, from, to, localFrom = '09:00', localTo = '18:00') => {
    const rules = { timeZone, workFrom: minutes(localFrom), workTo: minutes(localTo) }
    const { work_from, work_to, work_hours_before } = dayIn(day, { ...rules, workdays: EVERY_DAY })
    expect([work_from?.slice(11, 16), work_to?.slice(11, 16)]).toEqual([from, to])
    const next = dayIn(new Date(Date.parse(day) + 86_400_000).toISOString().slice(0, 10), {
      ...rules,
      workdays: EVERY_DAY,
    })
    const worked = Date.parse(work_to ?? '') - Date.parse(work_from ?? '')
    expect(next.work_hours_before - work_hours_before).toBe(worked / 3_600_000)
  },
)

test.each(['Europe/Berlin', 'Australia/Lord_Howe', 'Asia/Kolkata', 'Africa/Casablanca', 'Pacific/Apia'])(
  'days of %s follow each other without a gap',
  timeZone => {
    const days = calendarDays({ ...RULES, timeZone }, { first: 2010, last: 2027 })
    const gaps = days.filter((day, index) => index > 0 && days[index - 1]?.utc_to !== day.utc_from)
    expect([days.length, gaps]).toEqual([6574, []])
  },
)
