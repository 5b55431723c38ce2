import { HOUR_MS, isoInstant, MINUTE_MS, utcDay } from '../../base/clock.ts'
import { RESOURCE_NAMES, type ResourceName } from '../../declare/resource-names.ts'
import type { Sqlite } from '../database/sqlite-types.ts'
import { readGuesses } from '../reporting/guessed-settings.ts'
import { META, readMeta, readNote } from '../sync/meta.ts'
import type { ResourceDay, RunOutcome } from '../sync/runs.ts'
import { readCoverage } from './coverage.ts'
import type { StatusRow } from './status.ts'

export type Overview = ReturnType<typeof readOverview>

export interface DriftedField {
  table: string
  field: string
  reason: string
}

/** Everything whose reading counts rows, which takes seconds in a large warehouse. */
export interface CountedStatus {
  rows: readonly StatusRow[]
  overview: Overview
}

/**
 * Reads what people look at besides the status report: names, counts and times, never content. Plain data, so that a
 * thread can read it and post it. Call it in a transaction.
 * @param now ms since the epoch
 */
export function readOverview(db: Sqlite, now: number) {
  return {
    runs: readRecentRuns(db),
    coverage: readCoverage(db, now),
    traffic: readTrafficHistory(db, now),
    /** The resources of which rows were written on this day (UTC). */
    today: db
      .prepare<[string], ResourceDay>('SELECT * FROM sync_days WHERE day = ? ORDER BY resource')
      .all(utcDay(now)),
    /** Where payloads differ from the declarations. */
    drift: readDrift(db),
    /** How many facts about the CRM and the workspace are guessed, because the settings do not state them. */
    guesses: readGuesses(db).length,
  }
}

export function readDrift(db: Sqlite): DriftedField[] {
  const stored = readNote<readonly [string, string, string][]>(key => readMeta(db, key), META.drift) ?? []
  return stored.map(([table, field, reason]) => ({ table, field, reason }))
}

/** A row of `sync_runs`, in short. */
export interface RecentRun {
  started_at: string
  /** Null while the run is in progress. */
  outcome: RunOutcome | null
  rows_changed: number
}

const RUNS_SHOWN = 24

/** Reads the last runs of each resource, oldest first. Resources without runs are left out. */
function readRecentRuns(db: Sqlite): ReadonlyMap<ResourceName, readonly RecentRun[]> {
  const last = db.prepare<[ResourceName, number], RecentRun>(
    `SELECT started_at, outcome, rows_changed FROM sync_runs
     WHERE resource = ? ORDER BY started_at DESC, id DESC LIMIT ?`,
  )
  const runs = RESOURCE_NAMES.map(resource => [resource, last.all(resource, RUNS_SHOWN).reverse()] as const)
  return new Map(runs.filter(([, rows]) => rows.length > 0))
}

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

export type TrafficHistory = ReturnType<typeof readTrafficHistory>

const SPANS = {
  hour: { spanMs: MINUTE_MS, number: 60 },
  day: { spanMs: 15 * MINUTE_MS, number: 96 },
  week: { spanMs: 2 * HOUR_MS, number: 84 },
} as const

/**
 * Each list has consecutive spans, oldest first; the last one contains the present.
 * @param now ms since the epoch
 */
function readTrafficHistory(db: Sqlite, now: number) {
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
