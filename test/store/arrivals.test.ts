import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { openDatabase } from '../../src/store/file/open.ts'
import {
  bucketOf,
  createLagHistogram,
  type LagBucket,
  lagReport,
  readArrivals,
} from '../../src/store/sync/arrivals.ts'
import { temporaryStore } from './temporary-store.ts'

const SECOND = 1000
const DAY = 86_400 * SECOND
const YEARS = 365 * DAY

/** The smallest lag that at least this share of all lags does not exceed. */
function exactQuantile(lags: readonly number[], share: number): number {
  const ordered = [...lags].sort((a, b) => a - b)
  return ordered[Math.ceil(share * ordered.length) - 1] ?? 0
}

const lagOf = (rows: number, median: number, longest: number) => ({
  rows,
  median_seconds: median,
  p99_seconds: longest,
  longest_seconds: longest,
})

function bucketsOf(lags: readonly number[]): LagBucket[] {
  const buckets = new Map<number, LagBucket>()
  for (const lag of lags) {
    const { rows, longest_ms } = buckets.get(bucketOf(lag)) ?? { rows: 0, longest_ms: 0 }
    const longest = Math.max(longest_ms, lag)
    buckets.set(bucketOf(lag), { bucket: bucketOf(lag), rows: rows + 1, longest_ms: longest })
  }
  return [...buckets.values()]
}

/** From a second to 30 years; short and long lags are equally frequent. */
const lag = fc
  .double({ min: Math.log(SECOND), max: Math.log(30 * YEARS), noNaN: true })
  .map(exponent => Math.round(Math.exp(exponent)))

describe('the lags of rows that arrive late', () => {
  test('the quantiles of the lags are within 10 % of the exact ones, and never shorter', () => {
    fc.assert(
      fc.property(fc.array(lag, { minLength: 1, maxLength: 300 }), lags => {
        const lag = lagReport(bucketsOf(lags))
        expect(lag).toMatchObject({ rows: lags.length, longest_seconds: Math.max(...lags) / SECOND })
        for (const [told, exact] of [
          [lag?.median_seconds ?? 0, exactQuantile(lags, 0.5) / SECOND],
          [lag?.p99_seconds ?? 0, exactQuantile(lags, 0.99) / SECOND],
        ] as const) {
          expect(told).toBeGreaterThanOrEqual(exact)
          expect(told).toBeLessThanOrEqual(exact * 1.1)
        }
      }),
    )
  })

  test('longer lags are counted in the same bucket or a later one, in a few hundred buckets', () => {
    fc.assert(
      fc.property(lag, lag, (one, other) => {
        expect(Math.sign(bucketOf(one) - bucketOf(other)) * Math.sign(one - other)).toBeGreaterThanOrEqual(0)
      }),
    )
    expect(bucketOf(30 * YEARS)).toBeLessThan(300)
    expect(bucketOf(1000 * YEARS)).toBe(bucketOf(30 * YEARS))
  })

  test('lags without a row have no report', () => {
    expect(lagReport([])).toBeUndefined()
  })
})

describe('the stored lags', () => {
  test('lags are stored for each resource, and a read-only connection finds them', () => {
    const store = temporaryStore()
    const { note } = createLagHistogram(store.prepare)
    for (const seconds of [60, 61, 3600]) note('messages', seconds * SECOND)
    note('activities', 40 * YEARS)
    const reader = openDatabase({ path: store.path, readonly: true })
    expect(Object.fromEntries(readArrivals(reader))).toEqual({
      activities: lagOf(1, (40 * YEARS) / SECOND, (40 * YEARS) / SECOND),
      messages: lagOf(3, 61, 3600),
    })
    reader.close()
  })

  test('events in the future count as no lag, and lags below a second count as they are', () => {
    const store = temporaryStore()
    const { note } = createLagHistogram(store.prepare)
    note('messages', -5 * DAY)
    expect(readArrivals(store.db).get('messages')).toEqual(lagOf(1, 0, 0))
    note('messages', 400.6)
    expect(readArrivals(store.db).get('messages')).toMatchObject({ rows: 2, longest_seconds: 0.401 })
  })

  test('a database of an older version has no lags', () => {
    const store = temporaryStore()
    store.db.exec('DROP TABLE sync_arrivals')
    expect(readArrivals(store.db).size).toBe(0)
  })
})
