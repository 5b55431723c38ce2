import type { StopError } from '../errors.ts'
import type { DaemonState, ResourceReport, StatusReport } from '../store/status/report.ts'
import type { HealthProblem } from './problems.ts'

/** One sentence for a person who has five seconds. Pure. */
export interface HealthVerdict {
  kind: 'ok' | 'loading' | 'wait' | 'act'
  /** Without a full stop. */
  text: string
  /** What to do about the worst problem, as a sentence; null when there is none. */
  todo: string | null
}

/** @param problems the most serious first, as `problemsOf` returns them */
export function verdictOf({ resources }: StatusReport, problems: readonly HealthProblem[]): HealthVerdict {
  const [worst] = problems
  if (worst !== undefined) {
    const more = problems.length === 1 ? '' : ` (and ${problems.length - 1} more)`
    const since = worst.since === null ? '' : ` since ${worst.since}`
    const label = worst.kind === 'act' ? 'Needs you' : 'Waiting'
    return { kind: worst.kind, text: `${label}${since}: ${worst.what}${more}`, todo: worst.todo }
  }
  const offered = resources.filter(({ state }) => state !== 'unavailable')
  const complete = offered.filter(({ complete_as_of: at }) => at !== null)
  if (complete.length < offered.length)
    return {
      kind: 'loading',
      text: `Loading history: ${complete.length} of ${offered.length} resources are complete`,
      todo: null,
    }
  return {
    kind: 'ok',
    text: `Up to date: everything published before ${oldest(complete)} is here`,
    todo: null,
  }
}

/** The verdict while the database cannot be read, so that there is no report. */
export function verdictWithout({ message, hint }: StopError, { since }: DaemonState): HealthVerdict {
  return { kind: 'act', text: `Needs you since ${since}: ${message}`, todo: hint ?? null }
}

function oldest(resources: readonly ResourceReport[]): string {
  return resources.map(({ complete_as_of: at }) => at ?? '').sort()[0] ?? '-'
}
