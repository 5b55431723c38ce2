import { RESOURCE_NAMES } from '../../src/declare/resource-names.ts'
import type { ResourceReport, StatusReport } from '../../src/store/status/report.ts'

/** Status reports made by hand. */

export const NOW = Date.parse('2026-03-04T12:00:00.000Z')
export const SINCE = '2026-03-04T11:40:00.000Z'
export const FRESH = '2026-03-04T11:59:00.000Z'

export const WRITER = { command: 'daemon', pid: 7, since: SINCE, running: true, died: false }
export const RUNNING = { state: 'running', reason: null, since: SINCE, until: null } as const

const healthy = (resource: ResourceReport['resource']): ResourceReport => ({
  resource,
  state: 'ok',
  reason: null,
  rows_live: 10,
  rows_deleted: 0,
  newest_at: FRESH,
  fresh_as_of: FRESH,
  complete_as_of: FRESH,
  backfill_done: 10,
  backfill_total: 10,
  pending_tasks: 0,
  rejected: 0,
  last_success_at: FRESH,
  next_run_at: null,
  failing_since: null,
  failed_in_a_row: null,
  deletions_held_since: null,
  size_differs_since: null,
  rejected_since: null,
  by_state: null,
  arrival_lag: null,
  read_since: null,
})

/** A warehouse that is up to date, with these differences; `members` has those of `row`. */
export function report(changes: Partial<StatusReport> = {}, row: Partial<ResourceReport> = {}): StatusReport {
  return {
    database: '/data/parley.db',
    workspace: null,
    database_bytes: 1,
    wal_bytes: 0,
    wal_readers: [],
    lock_holders: [],
    writer: WRITER,
    chosen_resources: RESOURCE_NAMES,
    daemon: RUNNING,
    backfill: null,
    api: null,
    closed_routes: [],
    learned_rate: null,
    snapshot: null,
    publication: null,
    purge_remains: [],
    requests: [],
    resources: RESOURCE_NAMES.map(name => ({ ...healthy(name), ...(name === 'members' && row) })),
    ...changes,
  }
}
