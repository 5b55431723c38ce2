import { problemsOf } from '../../src/health/problems.ts'
import { verdictOf } from '../../src/health/verdict.ts'
import { type PageView, statusPageHtml } from '../../src/server/page/status-page.ts'
import { readOverview } from '../../src/store/status/overview.ts'
import { readStatusReport } from '../../src/store/status/report.ts'
import { temporaryStore } from '../store/temporary-store.ts'

const NOW = Date.parse('2026-03-04T12:00:00.000Z')

/** The page of a new warehouse, with changes. */
export function pageOf(change: (view: PageView) => Partial<PageView> = () => ({})): string {
  const store = temporaryStore()
  const report = readStatusReport({ path: store.path, now: NOW, db: store.db })
  const problems = problemsOf(report, NOW)
  const view: PageView = {
    workspaceId: 'acme',
    hasReport: false,
    report,
    overview: readOverview(store.db, NOW),
    problems,
    verdict: verdictOf(report, problems, { now: NOW }),
    at: '2026-03-04T12:00:00.000Z',
    version: '1.2.3',
    uptimeMs: 90_000,
  }
  return statusPageHtml({ ...view, ...change(view) })
}

/** The page with this name in every place that shows a name or a reason. */
export function hostilePage(name: string): string {
  return pageOf(({ report, overview }) => ({
    workspaceId: name,
    report: {
      ...report,
      workspace: { id: name, base_url: 'https://example.com' },
      resources: report.resources.map(row => ({ ...row, state: 'waiting', reason: name })),
    },
    overview: { ...overview, drift: [{ table: 'meetings', field: name, reason: 'unknown field' }] },
    verdict: { kind: 'act', text: name, detail: name, todo: name },
  }))
}
