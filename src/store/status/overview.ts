import { utcDay } from '../../base/clock.ts'
import type { ResourceName } from '../../declare/resource-names.ts'
import type { Sqlite } from '../database/sqlite-types.ts'
import { readDatabase } from '../file/open.ts'
import type { ResourceDay } from '../sync/days.ts'
import { META, readMeta, readNote } from '../sync/meta.ts'
import { readCoverage } from './coverage.ts'
import type { CoverageGrid } from './coverage-grid.ts'
import { type RecentRun, readRecentRuns } from './recent-runs.ts'
import { inOneRead, readStatus, requireWarehouse, type StatusRow } from './status.ts'
import { readTrafficHistory, type TrafficHistory } from './traffic-history.ts'

/**
 * What people look at besides the status report: names, counts and times, never content. Plain data, so that a thread
 * can read it and post it.
 */
export interface Overview {
  runs: ReadonlyMap<ResourceName, readonly RecentRun[]>
  coverage: CoverageGrid
  traffic: TrafficHistory
  /** The resources of which rows were written on this day (UTC). */
  today: readonly ResourceDay[]
  /** Where payloads differ from the declarations. */
  drift: readonly DriftedField[]
}

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

/** @param now ms since the epoch */
export function readCounted(db: Sqlite, now: number): CountedStatus {
  return inOneRead(db, () => ({ rows: readStatus(db), overview: readOverview(db, now) }))
}

/**
 * @param now ms since the epoch
 * @throws StopError (73) when there is no warehouse at this path, or it cannot be read
 */
export function readOverviewAt(path: string, now: number): Overview {
  requireWarehouse(path)
  return readDatabase({ path }, db => readOverview(db, now))
}

/** @param now ms since the epoch */
export function readOverview(db: Sqlite, now: number): Overview {
  return inOneRead(db, () => ({
    runs: readRecentRuns(db),
    coverage: readCoverage(db, now),
    traffic: readTrafficHistory(db, now),
    today: db
      .prepare<[string], ResourceDay>('SELECT * FROM sync_days WHERE day = ? ORDER BY resource')
      .all(utcDay(now)),
    drift: readDrift(db),
  }))
}

/** @throws StopError (73) when there is no warehouse at this path, or it cannot be read */
export function readDriftAt(path: string): DriftedField[] {
  requireWarehouse(path)
  return readDatabase({ path }, readDrift)
}

function readDrift(db: Sqlite): DriftedField[] {
  const stored = readNote<readonly [string, string, string][]>(key => readMeta(db, key), META.drift) ?? []
  return stored.map(([table, field, reason]) => ({ table, field, reason }))
}
