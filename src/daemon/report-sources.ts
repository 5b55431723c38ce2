import { dirname, resolve } from 'node:path'
import type { Clock } from '../clock.ts'
import type { MetricSources } from '../server/metrics.ts'
import { databaseSizes, freeOnDisk } from '../store/file/size.ts'
import { readStatusReport, type SnapshotReport, type StatusReport } from '../store/status/report.ts'
import { createCountedStatusReader } from '../store/status/thread.ts'
import { META, readNote } from '../store/sync/meta.ts'
import type { CurrentState } from './current-state.ts'
import { createCachedReading } from './memo.ts'
import { isApiReachable, readinessProblem } from './readiness.ts'

export interface ReportSources {
  metrics: MetricSources
  /** What `parley status --json` prints. The rows of the resources may be a few seconds old. */
  status(): Promise<StatusReport>
}

export function createReportSources(
  current: CurrentState,
  { clock, version }: { clock: Clock; version: string },
): ReportSources {
  const counted = createCountedStatusReader({ clock })
  const path = () => resolve(current.settings.database.path)
  const report = createCachedReading(async (of: string) => {
    const { rows } = (await counted.read(of)) ?? {}
    const { app } = current
    return readStatusReport({
      path: of,
      now: clock.now(),
      daemon: current.state,
      ...(app && { db: app.store.db }),
      ...(rows && { rows }),
    })
  }, clock)
  const status = async (): Promise<StatusReport> => ({ ...(await report(path())), daemon: current.state })
  return {
    status,
    metrics: {
      version,
      workspace: () => ({ id: current.settings.api.workspaceId, baseUrl: current.settings.api.baseUrl }),
      serverNow: () => current.session?.serverNow() ?? clock.now(),
      rate: () => current.app?.governor.state(),
      isReady: () => readinessProblem(current) === undefined,
      isApiReachable: () => isApiReachable(current),
      database: () => ({ ...databaseSizes(path()), freeBytes: freeOnDisk(dirname(path())) }),
      snapshot: () => current.app && readNote<SnapshotReport>(current.app.store.state.meta, META.snapshots),
      resources: async () => (await status()).resources,
      backlog: () => current.session?.backlog(),
    },
  }
}
