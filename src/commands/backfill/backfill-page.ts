import type { App } from '../../app/app.ts'
import { createReportSources } from '../../app/report-sources.ts'
import type { Log } from '../../base/log.ts'
import type { ApiSettings } from '../../config/load-settings.ts'
import { type StatusServer, startStatusServer } from '../../server/server.ts'

/** The status page while a backfill runs: `parley backfill --page`. */

export interface BackfillPageDeps {
  app: Pick<App, 'clock' | 'store'>
  settings: Pick<ApiSettings, 'api' | 'database' | 'http'>
  log: Log
  version: string
}

export function startBackfillPage({ app, settings, log, version }: BackfillPageDeps): Promise<StatusServer> {
  const { clock, store } = app
  const { listen, token } = settings.http
  const { status, page } = createReportSources({
    version,
    clock,
    workspaceId: () => settings.api.workspaceId,
    databasePath: () => settings.database.path,
    hasReport: false,
    db: () => store.db,
    daemon: () => undefined,
  })
  return startStatusServer({
    listen,
    token,
    nudgeSecret: undefined,
    catalogue: undefined,
    log,
    clock,
    metrics: undefined,
    stuck: () => undefined,
    ready: () => 'a backfill is running',
    status,
    page,
    report: undefined,
    nudge: () => undefined,
  })
}
