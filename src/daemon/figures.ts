import { resolve } from 'node:path'
import type { App } from '../app.ts'
import type { Clock } from '../clock.ts'
import type { ApiSettings } from '../config.ts'
import type { Shift } from '../engine/shift.ts'
import type { MetricSources } from '../server/metrics.ts'
import type { StatusRow } from '../store/status.ts'
import { type DaemonState, readStatusReport, type StatusReport } from '../store/status-report.ts'

/** What the status server tells of the present shift and of the warehouse. */
export interface FiguresOf {
  settings: ApiSettings
  state: DaemonState
  /** Not there between two shifts. */
  app?: App
  shift?: Shift
}

export function figuresOf(
  present: FiguresOf,
  { clock, version }: { clock: Clock; version: string },
): MetricSources {
  const report = () => statusOf(present, clock)
  return {
    version,
    serverNow: () => present.shift?.serverNow() ?? clock.now(),
    rate: () => present.app?.governor.state(),
    database() {
      const { database_bytes: bytes, wal_bytes: walBytes } = report()
      return { bytes, walBytes }
    },
    resources: () => report().resources,
    backlog: () => backlogOf(report().resources, present.shift),
  }
}

/** What `parley status --json` prints. */
export function statusOf({ settings, state, app }: FiguresOf, clock: Clock): StatusReport {
  return readStatusReport({
    path: resolve(settings.database.path),
    now: clock.now(),
    daemon: state,
    ...(app ? { db: app.store.db } : {}),
  })
}

function backlogOf(
  resources: readonly StatusRow[],
  shift: Shift | undefined,
): Readonly<Record<string, number>> {
  const items = resources.reduce((sum, { pending_tasks: pending }) => sum + pending, 0)
  return { items, ...shift?.backlog() }
}
