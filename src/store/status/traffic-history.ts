import { HOUR_MS, isoInstant, MINUTE_MS } from '../../base/clock.ts'
import type { Sqlite } from '../database/sqlite-types.ts'

/** The traffic of one span of time, from `sync_minutes`. */
export interface TrafficSpan {
  /** Start of the span. */
  at: string
  /** How many minutes have a row. 0: parley did not run, and every other figure is 0 or null. */
  minutes: number
  requests: number
  throttled: number
  errors: number
  rows: number
  /** Lowest learned rate limit of the API, in requests per second; null when none was known. */
  rate: number | null
  in_flight: number
  paused_seconds: number
}

/** Each list has consecutive spans, oldest first; the last one contains the present. */
export interface TrafficHistory {
  /** 60 spans of a minute. */
  hour: readonly TrafficSpan[]
  /** 96 spans of 15 minutes. */
  day: readonly TrafficSpan[]
  /** 84 spans of 2 hours. */
  week: readonly TrafficSpan[]
}

const SPANS = {
  hour: { spanMs: MINUTE_MS, number: 60 },
  day: { spanMs: 15 * MINUTE_MS, number: 96 },
  week: { spanMs: 2 * HOUR_MS, number: 84 },
} as const

/** @param now ms since the epoch */
export function readTrafficHistory(db: Sqlite, now: number): TrafficHistory {
  const spans = (of: keyof typeof SPANS) => readSpans(db, now, SPANS[of])
  return { hour: spans('hour'), day: spans('day'), week: spans('week') }
}

function readSpans(
  db: Sqlite,
  now: number,
  { spanMs, number }: { spanMs: number; number: number },
): TrafficSpan[] {
  const start = Math.floor(now / spanMs) * spanMs - (number - 1) * spanMs
  const read = db.prepare<[number, number, string], Omit<TrafficSpan, 'at'> & { place: number }>(
    `SELECT CAST((strftime('%s', at) - ?) / ? AS INTEGER) AS place, count(*) AS minutes, sum(requests) AS requests,
       sum(throttled) AS throttled, sum(errors) AS errors, sum(rows) AS rows, min(rate) AS rate,
       max(in_flight) AS in_flight, sum(paused_seconds) AS paused_seconds
     FROM sync_minutes WHERE at >= ? GROUP BY 1`,
  )
  const found = new Map(
    read.all(start / 1000, spanMs / 1000, isoInstant(start)).map(({ place, ...span }) => [place, span]),
  )
  return Array.from({ length: number }, (_, place) => ({
    at: isoInstant(start + place * spanMs),
    ...(found.get(place) ?? NO_TRAFFIC),
  }))
}

const NO_TRAFFIC = {
  minutes: 0,
  requests: 0,
  throttled: 0,
  errors: 0,
  rows: 0,
  rate: null,
  in_flight: 0,
  paused_seconds: 0,
}
