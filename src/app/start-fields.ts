import type { LogFields } from '../base/log.ts'
import type { ApiSettings } from '../config/loaded-settings.ts'
import { RESOURCE_NAMES, type ResourceName } from '../declare/resource-names.ts'

/** The fields of the first log line of a backfill or daemon. */
export function startFields({
  version,
  pid,
  settings: { api, database },
  resources,
}: {
  version: string
  pid: number
  settings: ApiSettings
  resources: readonly ResourceName[]
}): LogFields {
  return {
    version,
    pid,
    path: database.path,
    workspace: api.workspaceId,
    base_url: api.baseUrl,
    resources: resources.length === RESOURCE_NAMES.length ? 'all' : resources.join(', '),
  }
}
