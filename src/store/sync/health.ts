import { safeText } from '../../base/safe-text.ts'
import type { ResourceName } from '../../declare/resource-names.ts'
import type { Prepare } from '../database/sqlite-types.ts'

/** Records whether each resource is healthy, failing or unavailable, for `sync_status`. */
export interface ResourceHealth {
  /** Records a run without a failure. */
  succeeded(resource: ResourceName, now: string): void
  fresh(resource: ResourceName, asOf: string): void
  failing(resource: ResourceName, reason: string, now: string): void
  unavailable(resource: ResourceName, reason: string, now: string): void
  /** Records that the resource is neither failing nor unavailable. `reason` is a remark that `sync_status` shows. */
  healthy(resource: ResourceName, reason?: string | null): void
}

export function createResourceHealth(prepare: Prepare): ResourceHealth {
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
    succeeded: (resource, now) => void succeeded.run(now, resource),
    fresh: (resource, asOf) => void fresh.run(asOf, resource),
    failing: (resource, reason, now) => void failing.run(now, safeText(reason), resource),
    unavailable: (resource, reason, now) => void unavailable.run(now, safeText(reason), resource),
    healthy: (resource, reason = null) =>
      void healthy.run(reason === null ? null : safeText(reason), resource),
  }
}
