import { resolve } from 'node:path'
import type { App } from '../app/app.ts'
import type { Clock } from '../clock.ts'
import type { ApiSettings } from '../config/load-settings.ts'
import type { Session } from '../engine/session/session.ts'
import type { MetricSources } from '../server/metrics.ts'
import { databaseSizes } from '../store/file/size.ts'
import {
  type DaemonState,
  readStatusReport,
  type SnapshotReport,
  type StatusReport,
} from '../store/status/report.ts'
import { createStatusRows } from '../store/status/thread.ts'
import { META, readNote } from '../store/sync/meta.ts'
import { createCachedReading } from './memo.ts'

/** The daemon's settings, state and session now, for the status server and the metrics, which outlive a session. */
export interface CurrentState {
  settings: ApiSettings
  state: DaemonState
  /** Undefined between two sessions, as is `session`. */
  app?: App
  session?: Session
}

export interface ReportSources {
  metrics: MetricSources
  /** What `parley status --json` prints. The rows of the resources may be a few seconds old. */
  status(): Promise<StatusReport>
}

export function createReportSources(
  current: CurrentState,
  { clock, version }: { clock: Clock; version: string },
): ReportSources {
  const statusRows = createStatusRows({ clock })
  const path = () => resolve(current.settings.database.path)
  const report = createCachedReading(async (of: string) => {
    const rows = await statusRows.read(of)
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
      database: () => databaseSizes(path()),
      snapshot: () => current.app && readNote<SnapshotReport>(current.app.store.state.meta, META.snapshots),
      resources: async () => (await status()).resources,
      backlog: () => current.session?.backlog(),
    },
  }
}
