import { describe, expect, test } from 'vitest'
import type { Recurrence } from '../../src/config/kinds.ts'
import { lateAfter, latestLateAfter, nextPublication } from '../../src/publish/publication-times.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const NOW = Date.parse('2026-03-04T10:30:00.000Z')
const every = (ms: number): Recurrence => ({ by: 'interval', ms })
const HOURLY: Recurrence = { by: 'calendar', pattern: '0 * * * *' }

const succeeded = (completeFrom: number | undefined) => ({ completeFrom, failures: 0, failedAt: 0 })
const failed = (failures: number, failedAt = NOW) => ({ completeFrom: NOW - 20 * MINUTE, failures, failedAt })

describe('the next publication', () => {
  test('the first publication is due at once', () => {
    for (const recurrence of [every(5 * MINUTE), HOURLY])
      expect(nextPublication(recurrence, succeeded(undefined), NOW)).toBe(NOW)
  })

  test('an interval counts from the start of the last publication, and a missed one is due since then', () => {
    expect(nextPublication(every(5 * MINUTE), succeeded(NOW - MINUTE), NOW)).toBe(NOW + 4 * MINUTE)
    expect(nextPublication(every(5 * MINUTE), succeeded(NOW - HOUR), NOW)).toBeLessThan(NOW)
  })

  test('the calendar says when the next one is due, and one that was missed is due since then', () => {
    expect(nextPublication(HOURLY, succeeded(NOW - MINUTE), NOW)).toBe(Date.parse('2026-03-04T11:00:00.000Z'))
    expect(nextPublication(HOURLY, succeeded(NOW - HOUR), NOW)).toBe(Date.parse('2026-03-04T10:00:00.000Z'))
  })

  test('the wait after a failure doubles up to the interval, and to an hour', () => {
    const waits = (recurrence: Recurrence, ...failures: number[]) =>
      failures.map(times => (nextPublication(recurrence, failed(times), NOW) - NOW) / MINUTE)
    expect(waits(every(5 * MINUTE), 1, 2, 3, 4, 5, 100)).toEqual([0.5, 1, 2, 4, 5, 5])
    expect(waits(every(24 * HOUR), 1, 7, 8, 100)).toEqual([0.5, 32, 60, 60])
    expect(waits(every(10_000), 1, 2).map(minutes => minutes * 60)).toEqual([10, 10])
    expect(waits(HOURLY, 1, 6, 7)).toEqual([0.5, 16, 30])
  })

  test.each([MINUTE, 20 * MINUTE, 365 * 24 * HOUR])(
    'a publication is due at once, and stays due, when the clock was set back by %s ms after the last one',
    ms => {
      for (const recurrence of [every(15_000), every(7 * 24 * HOUR), HOURLY])
        for (const last of [succeeded(NOW + ms), failed(9, NOW + ms)])
          for (const now of [NOW, NOW + ms - 1]) expect(nextPublication(recurrence, last, now)).toBe(now)
    },
  )
})

test('a publication is late some time after it is due: as long as the interval, but 15 minutes to an hour', () => {
  const minutes = (recurrence: Recurrence) => (lateAfter(recurrence, NOW) - NOW) / MINUTE
  expect(minutes(every(5 * MINUTE))).toBe(20)
  expect(minutes(every(40 * MINUTE))).toBe(80)
  expect(minutes(every(24 * HOUR))).toBe(25 * 60)
  expect(minutes(HOURLY)).toBe(60)
})

test('no publication that started up to now is late after the latest instant for now', () => {
  for (const recurrence of [every(15_000), every(40 * MINUTE), every(24 * HOUR), HOURLY])
    for (let ago = 0; ago <= 24 * HOUR; ago += 7 * MINUTE)
      expect(lateAfter(recurrence, NOW - ago)).toBeLessThanOrEqual(latestLateAfter(recurrence, NOW))
})
