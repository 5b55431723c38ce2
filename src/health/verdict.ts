import type { ResourceReport, StatusReport } from '../store/status/report.ts'
import type { TrafficSpan } from '../store/status/traffic-history.ts'
import { type LoadingProgress, loadingProgress, loadingText } from './loading.ts'
import type { HealthProblem } from './problems.ts'

/** One sentence for a person who has five seconds. Pure. */
export interface HealthVerdict {
  kind: 'ok' | 'loading' | 'wait' | 'act'
  /** Without a full stop. */
  text: string
  /** What to do about the worst problem, as a sentence; null when there is none. */
  todo: string | null
  /** How far the first read is; absent once everything is complete. */
  loading?: LoadingProgress
}

/**
 * @param problems the most serious first, as `problemsOf` returns them
 * @param minutes the traffic of the last minutes, from which the time that is left follows
 */
export function verdictOf(
  { resources }: StatusReport,
  problems: readonly HealthProblem[],
  minutes: readonly TrafficSpan[] = [],
): HealthVerdict {
  const loading = loadingProgress(resources, minutes)
  return { ...verdictWith(resources, problems, loading), ...(loading && { loading }) }
}

function verdictWith(
  resources: readonly ResourceReport[],
  [worst, ...others]: readonly HealthProblem[],
  loading: LoadingProgress | undefined,
): HealthVerdict {
  if (worst !== undefined) return verdictOfProblem(worst, others.length)
  if (loading) return { kind: 'loading', text: loadingText(loading), todo: null }
  const text = `Up to date: everything published before ${oldest(resources)} is here`
  return { kind: 'ok', text, todo: null }
}

/** Also the verdict while the database cannot be read, so that there is no report. */
export function verdictOfProblem({ kind, what, todo, since }: HealthProblem, others = 0): HealthVerdict {
  const more = others === 0 ? '' : ` (and ${others} more)`
  const sinceText = since === null ? '' : ` since ${since}`
  const label = kind === 'act' ? 'Needs you' : 'Waiting'
  return { kind, text: `${label}${sinceText}: ${what}${more}`, todo }
}

function oldest(resources: readonly ResourceReport[]): string {
  const complete = resources.filter(({ state }) => state !== 'unavailable')
  return complete.map(({ complete_as_of: at }) => at ?? '').sort()[0] ?? '-'
}
