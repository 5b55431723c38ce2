import { resolve } from 'node:path'
import type { App } from '../app.ts'
import type { Clock } from '../clock.ts'
import type { ApiSettings } from '../config.ts'
import type { MetricSources } from '../server/metrics.ts'
import { readWarehouse } from '../store/status.ts'

/** What the status server tells of the present shift and of the warehouse. */
export interface FiguresOf {
  settings: ApiSettings
  app?: App
}

export function figuresOf(
  present: FiguresOf,
  { clock, version }: { clock: Clock; version: string },
): MetricSources {
  const warehouse = () => readWarehouse(resolve(present.settings.database.path))
  return {
    version,
    serverNow: () => clock.now(),
    rate: () => present.app?.governor.state(),
    database: () => warehouse().database,
    resources: () => warehouse().resources,
    backlog: () => undefined,
  }
}

export function statusOf({ settings }: FiguresOf): unknown {
  return readWarehouse(resolve(settings.database.path))
}
