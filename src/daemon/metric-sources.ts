import { dirname } from 'node:path'
import type { Clock } from '../base/clock.ts'
import type { MetricSources } from '../server/metrics.ts'
import { databaseSizes, freeOnDisk } from '../store/disk/disk-space.ts'
import type { SnapshotReport, StatusReport } from '../store/status/report.ts'
import { META, readNote } from '../store/sync/meta.ts'
import { isApiReachable, readinessProblem } from './readiness.ts'
import type { CurrentState } from './state.ts'

/** Where the gauges of `/metrics` get their values. */
export function createMetricSources(
  current: CurrentState,
  { clock, status }: { clock: Clock; status(): Promise<StatusReport> },
): MetricSources {
  const path = () => current.settings.database.path
  return {
    workspace: () => ({ id: current.settings.api.workspaceId, baseUrl: current.settings.api.baseUrl }),
    serverNow: () => current.session?.serverNow() ?? clock.now(),
    rate: () => current.app?.governor.state(),
    isReady: () => readinessProblem(current) === undefined,
    hasInvalidSettings: () => current.invalidSettings !== undefined,
    isApiReachable: () => isApiReachable(current),
    database: () => ({ ...databaseSizes(path()), freeBytes: freeOnDisk(dirname(path())) }),
    snapshot: () => current.app && readNote<SnapshotReport>(current.app.store.state.meta, META.snapshots),
    publication: async () => (await status()).publication ?? undefined,
    // A resource that the settings leave out would look stale indefinitely, and an alert would fire.
    async resources() {
      const { resources, chosen_resources: chosen } = await status()
      return resources.filter(({ resource }) => chosen.includes(resource))
    },
    backlog: () => current.session?.backlog(),
  }
}
