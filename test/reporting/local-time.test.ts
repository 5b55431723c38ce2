import { describe, expect, test } from 'vitest'
import { createLocalHour } from '../../src/base/time-zone.ts'
import { type CalendarRules, calendarDays, createLocalTime } from '../../src/store/reporting/calendar-days.ts'

const timeIn = (timeZone: string, rules: Partial<CalendarRules> = {}) =>
  createLocalTime(
    calendarDays(
      {
        ...{ timeZone, weekStart: 1, fiscalYearStart: 1, fiscalYearNamedBy: 'start' },
        ...{ workdays: [1, 2, 3, 4, 5], holidays: ['2026-03-05'], workFrom: 540, workTo: 1080 },
        ...rules,
      },
      { first: 2025, last: 2026 },
    ),
  )

describe('the local day of an instant', () => {
  test.each([
    ['Asia/Tokyo', '2026-03-03T14:59:59.999Z', '2026-03-03'],
    ['Asia/Tokyo', '2026-03-03T15:00:00.000Z', '2026-03-04'],
    ['UTC', '2026-12-31T23:59:59.999Z', '2026-12-31'],
    ['UTC', '2027-01-01T00:00:00.000Z', undefined],
    ['UTC', '2024-12-31T23:59:59.999Z', undefined],
  ])('in %s %s is on %s', (zone, instant, day) => {
    expect(timeIn(zone).dayOf(Date.parse(instant))?.day).toBe(day)
  })
})

describe('working hours', () => {
  test.each([
    ['within a day', '2026-03-04T10:00:00Z', '2026-03-04T11:30:00Z', 1.5],
    ['over a night', '2026-03-03T17:00:00Z', '2026-03-04T10:00:00Z', 2],
    ['over a weekend', '2026-03-06T17:00:00Z', '2026-03-09T09:30:00Z', 1.5],
    ['over a holiday', '2026-03-04T17:00:00Z', '2026-03-06T10:00:00Z', 2],
    ['of a night are none', '2026-03-03T19:00:00Z', '2026-03-04T08:00:00Z', 0],
  ])('%s', (_, from, to, hours) => {
    const { workHoursTo } = timeIn('UTC')
    expect((workHoursTo(Date.parse(to)) ?? 0) - (workHoursTo(Date.parse(from)) ?? 0)).toBe(hours)
  })

  test('begin at the local hour on the day after clocks were changed, too', () => {
    const { workHoursTo } = timeIn('Europe/Berlin')
    const worked = (from: string, to: string) =>
      (workHoursTo(Date.parse(to)) ?? 0) - (workHoursTo(Date.parse(from)) ?? 0)
    expect(worked('2026-03-27T16:00:00Z', '2026-03-30T08:00:00Z')).toBe(2)
  })

  test('are the hours that have passed where people work day and night', () => {
    const always = { workdays: [1, 2, 3, 4, 5, 6, 7], holidays: [], workFrom: 0, workTo: 1440 }
    const { workHoursTo } = timeIn('Europe/Berlin', always)
    const [from, to] = ['2025-03-28T23:56:25Z', '2025-04-01T09:27:19Z'].map(Date.parse)
    const worked = (workHoursTo(to ?? 0) ?? 0) - (workHoursTo(from ?? 0) ?? 0)
    expect(worked).toBeCloseTo(((to ?? 0) - (from ?? 0)) / 3_600_000, 9)
  })
})

test.each([
  ['UTC', '2026-03-04T23:30:00Z', 23],
  ['Asia/Tokyo', '2026-03-04T23:30:00Z', 8],
  ['Asia/Kolkata', '2026-03-04T23:45:00Z', 5],
  ['Europe/Berlin', '2026-03-29T01:30:00Z', 3],
])('the local hour in %s of %s is %d', (zone, instant, hour) => {
  expect(createLocalHour(zone)(Date.parse(instant))).toBe(hour)
})
