import { resolve } from 'node:path'
import type { App } from '../app.ts'
import type { Clock } from '../clock.ts'
import type { ApiSettings } from '../config.ts'
import type { Shift } from '../engine/shift.ts'
import type { MetricSources } from '../server/metrics.ts'
import { META } from '../store/state.ts'
import { databaseSizes } from '../store/status.ts'
import {
  type DaemonState,
  readStatusReport,
  type SnapshotReport,
  type StatusReport,
} from '../store/status-report.ts'
import { createStatusRows } from '../store/status-thread.ts'
import { createKeptReading } from './kept-reading.ts'

/** What the status server tells of the present shift and of the warehouse. */
export interface FiguresOf {
  settings: ApiSettings
  state: DaemonState
  /** Not there between two shifts. */
  app?: App
  shift?: Shift
}

export interface Told {
  metrics: MetricSources
  /** What `parley status --json` prints; its rows may be a few seconds old. */
  status(): Promise<StatusReport>
}

export function createTold(present: FiguresOf, { clock, version }: { clock: Clock; version: string }): Told {
  const statusRows = createStatusRows({ clock })
  const path = () => resolve(present.settings.database.path)
  const report = createKeptReading(async (of: string) => {
    const rows = await statusRows.of(of)
    const { app } = present
    return readStatusReport({
      path: of,
      now: clock.now(),
      daemon: present.state,
      ...(app && { db: app.store.db }),
      ...(rows && { rows }),
    })
  }, clock)
  const status = async (): Promise<StatusReport> => ({ ...(await report(path())), daemon: present.state })
  return {
    status,
    metrics: {
      version,
      workspace: () => ({ id: present.settings.api.workspaceId, baseUrl: present.settings.api.baseUrl }),
      serverNow: () => present.shift?.serverNow() ?? clock.now(),
      rate: () => present.app?.governor.state(),
      database: () => databaseSizes(path()),
      snapshot: () => {
        const noted = present.app?.store.state.meta(META.snapshots)
        return noted === undefined ? undefined : ((JSON.parse(noted) as SnapshotReport | null) ?? undefined)
      },
      resources: async () => (await status()).resources,
      backlog: () => present.shift?.backlog(),
    },
  }
}
