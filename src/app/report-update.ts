import type { Log } from '../base/log.ts'
import { foreignReportObjects } from '../store/reporting/derived-tables.ts'
import type { ReportConfig } from '../store/reporting/report-settings.ts'
import type { OpenStore } from '../store/store.ts'

/**
 * Returns a function that brings the tables and views for reports up to date. When they are computed, it logs that there
 * are none since somebody else has their names, and that settings about them match nothing in the CRM. The function
 * throws a StopError (exit status 73 or 75).
 */
export function createReportUpdate(
  { store, log }: { store: Pick<OpenStore, 'reports' | 'db'>; log: Log },
  settings: ReportConfig,
): () => Promise<void> {
  return async () => {
    const problems = await store.reports.update(settings)
    if (problems === undefined) return
    if (foreignReportObjects(store.db).length > 0)
      log.warn(
        'Tables and views for reports are missing, since somebody else has made some with these names; parley doctor names them',
      )
    if (problems.length > 0)
      log.warn('Settings of the tables for reports fit nothing in the CRM; parley doctor names them', {
        pending: problems.length,
      })
  }
}
