import type { HealthProblem } from '../../health/problems.ts'
import type { HealthVerdict } from '../../health/verdict.ts'
import type { Overview } from '../../store/status/overview.ts'
import type { StatusReport } from '../../store/status/report.ts'

/** What the page shows. */
export interface PageView {
  /** As in the settings. */
  workspaceId: string
  report: StatusReport
  overview: Overview
  verdict: HealthVerdict
  /** The most serious first. */
  problems: readonly HealthProblem[]
  /** Whether the report is at `/report`. */
  hasReport: boolean
  /** When the view was read. */
  at: string
  version: string
  /** Of the process that serves the page, in ms. */
  uptimeMs: number
}
