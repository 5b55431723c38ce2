import type { HealthProblem } from '../../health/problems.ts'
import type { HealthVerdict } from '../../health/verdict.ts'
import type { Overview } from '../../store/status/overview.ts'
import type { StatusReport } from '../../store/status/report.ts'

export interface PageView {
  /** The workspace id in the settings. */
  workspaceId: string
  report: StatusReport
  overview: Overview
  verdict: HealthVerdict
  /** All problems, the most serious first. */
  problems: readonly HealthProblem[]
  /** Whether the report is at `/report`. */
  hasReport: boolean
  /** When the view was read. */
  at: string
  version: string
  /** How long the process that serves the page has run, in ms. */
  uptimeMs: number
}
