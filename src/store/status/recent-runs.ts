import { RESOURCE_NAMES, type ResourceName } from '../../declare/resource-names.ts'
import type { Sqlite } from '../database/sqlite-types.ts'
import type { RunOutcome } from '../sync/runs.ts'

/** A row of `sync_runs`, in short. */
export interface RecentRun {
  started_at: string
  /** Null while the run is in progress, as is `outcome`. */
  ended_at: string | null
  outcome: RunOutcome | null
  requests: number
  rows_changed: number
  rows_deleted: number
}

const RUNS_SHOWN = 24

/** The last runs of each resource, oldest first. Only resources with runs. */
export function readRecentRuns(db: Sqlite): ReadonlyMap<ResourceName, readonly RecentRun[]> {
  const last = db.prepare<[ResourceName, number], RecentRun>(
    `SELECT started_at, ended_at, outcome, requests, rows_changed, rows_deleted FROM sync_runs
     WHERE resource = ? ORDER BY started_at DESC, id DESC LIMIT ?`,
  )
  const runs = RESOURCE_NAMES.map(resource => [resource, last.all(resource, RUNS_SHOWN).reverse()] as const)
  return new Map(runs.filter(([, rows]) => rows.length > 0))
}
