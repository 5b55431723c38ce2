import { resolve } from 'node:path'
import type { App } from '../app.ts'
import type { Clock } from '../clock.ts'
import type { ApiSettings } from '../config.ts'
import type { Shift } from '../engine/shift.ts'
import type { MetricSources } from '../server/metrics.ts'
import { databaseSizes } from '../store/status.ts'
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
  return {
    version,
    serverNow: () => present.shift?.serverNow() ?? clock.now(),
    rate: () => present.app?.governor.state(),
    database: () => databaseSizes(resolve(present.settings.database.path)),
    resources: () => statusOf(present, clock).resources,
    backlog: () => present.shift?.backlog(),
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
