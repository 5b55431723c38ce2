import { safeText } from '../../base/safe-text.ts'
import { type PropertiesOf, propertiesOf } from '../../catalog/bookkeeping/table-declaration.ts'
import { RESOURCE_TABLE } from '../../catalog/bookkeeping/tables.ts'
import { RESOURCE_NAMES, type ResourceName } from '../../declare/resource-names.ts'
import type { Prepare } from '../database/sqlite-types.ts'
import { onlyRow } from '../database/statements.ts'
import { createMeta } from './meta.ts'

/** The state of a resource: a row of `sync_resources`. */
export interface ResourceState extends Omit<PropertiesOf<typeof RESOURCE_TABLE>, 'resource' | 'roundOpen'> {
  resource: ResourceName
  roundOpen: boolean
}

export type State = ReturnType<typeof createState>

export function createState(prepare: Prepare) {
  const find = prepare<Omit<ResourceState, 'roundOpen'> & { roundOpen: 0 | 1 }>(
    `SELECT ${propertiesOf(RESOURCE_TABLE)} FROM sync_resources WHERE resource = ?`,
  )
  const hold = prepare('UPDATE sync_resources SET held_since = ? WHERE resource = ?')
  const deleted = prepare(
    `UPDATE sync_resources SET deleted_in_round = deleted_in_round + @rows, deleted_since = coalesce(deleted_since, @now)
     WHERE resource = @resource AND @rows > 0`,
  )
  const forgetDeleted = prepare(
    'UPDATE sync_resources SET deleted_in_round = 0, deleted_since = NULL WHERE resource = ?',
  )
  const nextRun = prepare('UPDATE sync_resources SET next_run_at = ? WHERE resource = ?')
  const answered = prepare(
    `SELECT EXISTS (SELECT 1 FROM sync_segments WHERE listed_at IS NOT NULL OR cursor IS NOT NULL)
       OR EXISTS (SELECT 1 FROM sync_resources WHERE coalesce(last_success_at, first_complete_at, fresh_as_of) IS NOT NULL)`,
  ).pluck()
  const meta = createMeta(prepare)

  return {
    get(resource: ResourceName): ResourceState {
      const row = onlyRow(find, resource)
      return { ...row, roundOpen: row.roundOpen === 1 }
    },
    ...createResourceHealth(prepare),
    hold: (resource: ResourceName, since: string | null) => void hold.run(since, resource),
    /** Counts deleted rows for the mass-deletion guard. */
    deleted: (resource: ResourceName, rows: number, now: string) => void deleted.run({ resource, rows, now }),
    forgetDeleted: (resource: ResourceName) => void forgetDeleted.run(resource),
    nextRun: (resource: ResourceName, at: string | null) => void nextRun.run(at, resource),
    /** Whether the API has ever answered a request for this warehouse. */
    wasEverAnswered: () => answered.get() === 1,
    meta: meta.get,
    setMeta: meta.set,
    forgetMeta: meta.remove,
  }
}

/** Adds a row for every resource, so that `sync_status` always shows all of them. */
export function seedResources(prepare: Prepare): void {
  const insert = prepare('INSERT OR IGNORE INTO sync_resources (resource) VALUES (?)')
  for (const resource of RESOURCE_NAMES) insert.run(resource)
}

/** Records whether each resource is healthy, failing or unavailable, for `sync_status`. */
function createResourceHealth(prepare: Prepare) {
  const succeeded = prepare('UPDATE sync_resources SET last_success_at = ? WHERE resource = ?')
  const fresh = prepare('UPDATE sync_resources SET fresh_as_of = ? WHERE resource = ?')
  const failing = prepare(
    'UPDATE sync_resources SET failing_since = coalesce(failing_since, ?), reason = ? WHERE resource = ?',
  )
  const unavailable = prepare(
    `UPDATE sync_resources SET unavailable_since = coalesce(unavailable_since, ?), failing_since = NULL, reason = ?
     WHERE resource = ?`,
  )
  const healthy = prepare(
    'UPDATE sync_resources SET unavailable_since = NULL, failing_since = NULL, reason = ? WHERE resource = ?',
  )
  return {
    /** Records a run without a failure. */
    succeeded: (resource: ResourceName, now: string) => void succeeded.run(now, resource),
    fresh: (resource: ResourceName, asOf: string) => void fresh.run(asOf, resource),
    failing: (resource: ResourceName, reason: string, now: string) =>
      void failing.run(now, safeText(reason), resource),
    unavailable: (resource: ResourceName, reason: string, now: string) =>
      void unavailable.run(now, safeText(reason), resource),
    /** Records that the resource is neither failing nor unavailable. `reason` is a remark that `sync_status` shows. */
    healthy: (resource: ResourceName, reason: string | null = null) =>
      void healthy.run(reason === null ? null : safeText(reason), resource),
  }
}
