import { dirname, resolve } from 'node:path'
import { type Clock, isoInstant } from '../clock.ts'
import { StopError } from '../errors.ts'
import { databaseProblem, problemsOf } from '../health/problems.ts'
import { verdictOf, verdictOfProblem } from '../health/verdict.ts'
import type { MetricSources } from '../server/metrics.ts'
import { errorPageHtml, statusPageHtml } from '../server/page/page.ts'
import type { PageAnswer } from '../server/routes.ts'
import { databaseSizes, freeOnDisk } from '../store/file/size.ts'
import { readOverview, readOverviewAt } from '../store/status/overview.ts'
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
  /** The page for people. It says so when the database is not available. */
  page(): Promise<PageAnswer>
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
  const overview = createCachedReading(async (of: string) => {
    const known = await counted.read(of)
    if (known) return known.overview
    const db = current.app?.store.db
    return db === undefined ? readOverviewAt(of, clock.now()) : readOverview(db, clock.now())
  }, clock)
  const readPage = async (): Promise<string> => {
    const now = clock.now()
    const [of, seen] = [await status(), await overview(path())]
    const problems = problemsOf(of, now)
    return statusPageHtml({
      report: of,
      overview: seen,
      problems,
      verdict: verdictOf(of, problems, seen.traffic.hour),
      at: isoInstant(now),
      version,
      uptimeMs: process.uptime() * 1000,
    })
  }
  const page = async (): Promise<PageAnswer> => {
    try {
      return { status: 200, html: await readPage() }
    } catch (error) {
      if (!(error instanceof StopError)) throw error
      return { status: 503, html: errorPageHtml(verdictOfProblem(databaseProblem(error, current.state))) }
    }
  }
  return {
    status,
    page,
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
