import type { RowOf } from '../../catalog/bookkeeping/table-declaration.ts'
import type { ARRIVAL_TABLE } from '../../catalog/bookkeeping/tables.ts'
import type { ResourceName } from '../../declare/resource-names.ts'
import { hasTable } from '../database/existing-tables.ts'
import type { Prepare, Sqlite } from '../database/sqlite-types.ts'

/**
 * Counts how late rows appear. A lag is the time from an event until its row was first seen. Lags are counted in
 * buckets whose bounds grow by 9 % each, so lags of up to 30 years need only a few hundred buckets.
 */

/** One row of `sync_arrivals`, without its resource. */
export type LagBucket = Omit<RowOf<typeof ARRIVAL_TABLE>, 'resource'>

/**
 * A quantile is never shorter than the exact one, and at most 10 % longer (below a second: at most one second longer).
 */
export interface LagReport {
  rows: number
  median_seconds: number
  p99_seconds: number
  longest_seconds: number
}

const GROWTH = 1.09
const SECOND = 1000
/** All lags beyond 30 years share one bucket. */
const LAST_BUCKET = Math.ceil(Math.log(30 * 365 * 86_400) / Math.log(GROWTH))

export function createLagHistogram(prepare: Prepare) {
  const count = prepare(
    `INSERT INTO sync_arrivals (resource, bucket, rows, longest_ms) VALUES (?, ?, 1, ?)
     ON CONFLICT DO UPDATE SET rows = rows + 1, longest_ms = max(longest_ms, excluded.longest_ms)`,
  )
  return {
    /** Counts a row that appeared in a span of event time that had been listed before. A negative lag counts as 0. */
    note(resource: ResourceName, lagMs: number) {
      const lag = Math.max(0, Math.round(lagMs))
      count.run(resource, bucketOf(lag), lag)
    },
  }
}

/** Number of the bucket of a lag: bucket 0 for a lag below a second. Pure. */
export function bucketOf(lagMs: number): number {
  if (lagMs < SECOND) return 0
  return Math.min(1 + Math.floor(Math.log(lagMs / SECOND) / Math.log(GROWTH)), LAST_BUCKET)
}

/** Summarizes the buckets of one resource; undefined when it has none. Pure. */
export function lagReport(buckets: readonly LagBucket[]): LagReport | undefined {
  const ordered = [...buckets].sort((a, b) => a.bucket - b.bucket)
  const last = ordered.at(-1)
  if (last === undefined) return undefined
  const rows = ordered.reduce((sum, bucket) => sum + bucket.rows, 0)
  const quantile = (share: number) => {
    const rank = Math.ceil(share * rows)
    let reached = 0
    const holder = ordered.find(bucket => {
      reached += bucket.rows
      return reached >= rank
    })
    return (holder ?? last).longest_ms / SECOND
  }
  return {
    rows,
    median_seconds: quantile(0.5),
    p99_seconds: quantile(0.99),
    longest_seconds: last.longest_ms / SECOND,
  }
}

/** The summary of every resource with counted lags. Empty for a database of an older version, which counts none. */
export function readArrivals(db: Sqlite): ReadonlyMap<ResourceName, LagReport> {
  if (!hasTable(db, 'sync_arrivals')) return new Map()
  const rows = db
    .prepare<unknown[], LagBucket & { resource: ResourceName }>('SELECT * FROM sync_arrivals')
    .all()
  const resources = [...new Set(rows.map(({ resource }) => resource))]
  return new Map(
    resources.flatMap(resource => {
      const lag = lagReport(rows.filter(row => row.resource === resource))
      return lag === undefined ? [] : [[resource, lag]]
    }),
  )
}
