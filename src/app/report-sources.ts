import { createCachedReading } from '../base/cached-reading.ts'
import { type Clock, isoInstant } from '../base/clock.ts'
import { StopError } from '../base/errors.ts'
import { databaseProblem, problemsOf } from '../health/problems.ts'
import { problemVerdict, verdictOf } from '../health/verdict.ts'
import { readReport } from '../report/read-report.ts'
import { reportHtml } from '../report/report-html.ts'
import { errorPageHtml, statusPageHtml } from '../server/page/status-page.ts'
import type { PageAnswer } from '../server/routes.ts'
import type { Sqlite } from '../store/database/sqlite-types.ts'
import { type CountedStatus, readOverview } from '../store/status/overview.ts'
import type { DaemonState } from '../store/status/processes.ts'
import { readStatusReport, type StatusReport } from '../store/status/report.ts'
import { readWarehouse } from '../store/status/status.ts'
import { createThreadReader } from '../store/status/thread.ts'

/**
 * The process whose warehouse is reported. A process may close and reopen its database, so each value is read when it
 * is needed.
 */
export interface ReportedProcess {
  version: string
  clock: Clock
  /** The workspace id of the settings. `databasePath` is the path of the settings. */
  workspaceId(): string
  databasePath(): string
  /** Whether the process serves the report. */
  hasReport: boolean
  /** Undefined while the process has closed the database. */
  db(): Sqlite | undefined
  /** For how long its running commit has lasted. */
  blockedMs(): number
  /** Undefined for a process that is no daemon. */
  daemon(): DaemonState | undefined
}

export type ReportSources = ReturnType<typeof createReportSources>

/** The compiled programs. The files are missing when parley runs from its sources, as in tests. */
const REPORT_PROGRAM = new URL('../report/worker.js', import.meta.url)
const STATUS_PROGRAM = new URL('../store/status/worker.js', import.meta.url)

export function createReportSources(reported: ReportedProcess) {
  const { clock, version, hasReport, workspaceId, databasePath, db, blockedMs, daemon } = reported
  const counted = createThreadReader<CountedStatus>({ clock, program: STATUS_PROGRAM })
  const statusReport = createCachedReading(async (of: string) => {
    const { rows } = (await counted.read(of)) ?? {}
    return readStatusReport({
      ...{ path: of, now: clock.now(), db: db(), daemon: daemon(), blockedMs: blockedMs(), rows },
    })
  }, clock)
  /** What `parley status --json` prints. The rows of the resources may be a few seconds old. */
  const status = async (): Promise<StatusReport> => {
    const state = daemon()
    return { ...(await statusReport(databasePath())), ...(state && { daemon: state }) }
  }
  const overview = createCachedReading(async (of: string) => {
    const known = await counted.read(of)
    return known?.overview ?? readWarehouse(of, open => readOverview(open, clock.now()), db())
  }, clock)
  const readPage = async (): Promise<string> => {
    const now = clock.now()
    const [of, seen] = [await status(), await overview(databasePath())]
    const problems = problemsOf(of, now)
    return statusPageHtml({
      workspaceId: workspaceId(),
      report: of,
      overview: seen,
      problems,
      hasReport,
      verdict: verdictOf(of, problems, { now, minutes: seen.traffic.hour }),
      at: isoInstant(now),
      version,
      uptimeMs: process.uptime() * 1000,
    })
  }
  /** The page for people. The page says so when the database is not available. */
  const page = async (): Promise<PageAnswer> => {
    try {
      return { status: 200, html: await readPage() }
    } catch (error) {
      if (!(error instanceof StopError)) throw error
      const now = clock.now()
      const problem = databaseProblem(error, { daemon: daemon(), since: isoInstant(now) })
      return {
        status: 503,
        html: errorPageHtml({
          verdict: problemVerdict(problem, 0, now),
          workspaceId: workspaceId(),
        }),
      }
    }
  }
  // The report's queries take longer than those of the page, even for a small file.
  const inThread = createThreadReader<string>({ clock, largeBytes: 0, program: REPORT_PROGRAM })
  const report = createCachedReading(async (of: string) => {
    const made = await inThread.read(of)
    return made ?? readWarehouse(of, open => reportHtml(readReport(open, clock.now())))
  }, clock)
  return {
    status,
    page,
    /** The report as HTML, which may be some seconds old. @throws StopError when the database is not available */
    report: () => report(databasePath()),
  }
}
