import type { TrafficSpan } from '../store/status/overview.ts'
import type { ResourceFacts, StatusReport } from '../store/status/report.ts'
import { clockText, countText } from '../terminal/wording.ts'
import { completenessText } from './completeness.ts'
import { type LoadingProgress, loadingProgress, loadingText } from './loading.ts'
import type { HealthProblem, ProblemKind } from './problems.ts'
import { PROBLEM_LABELS } from './wording.ts'

/** One sentence for a person who has five seconds. Pure. */
export interface HealthVerdict {
  kind: 'ok' | 'loading' | ProblemKind
  /** Without a full stop. */
  text: string
  /** Explains the text, without a full stop; null when there is nothing to add. */
  detail: string | null
  /** What to do about the worst problem, as sentences; null when there is none. */
  todo: string | null
  /** How far the first read is; absent once everything is complete. */
  loading?: LoadingProgress
}

export interface VerdictContext {
  /** In ms since the epoch. */
  now: number
  /** The traffic of the last minutes, for the estimate of the time left. */
  minutes?: readonly TrafficSpan[]
}

/** @param problems the most serious first, as `problemsOf` returns them */
export function verdictOf(
  report: StatusReport<ResourceFacts>,
  problems: readonly HealthProblem[],
  { now, minutes = [] }: VerdictContext,
): HealthVerdict {
  const resources = chosenResources(report)
  const loading = loadingProgress(resources, minutes)
  const [worst, ...others] = problems
  if (worst) return { ...problemVerdict(worst, others.length, now), ...(loading && { loading }) }
  if (loading) {
    if (report.writer?.running === false) return { ...NOT_LOADING, text: loadingText(loading), loading }
    const detail = loading.hasBegun ? 'Nothing to do. What is here can be queried meanwhile' : 'Nothing to do'
    return { kind: 'loading', text: loadingText(loading), detail, todo: null, loading }
  }
  const isReading = report.writer?.running === true && report.writer.command === 'backfill'
  return {
    kind: isReading ? 'loading' : 'ok',
    ...completenessText(resources, { writer: report.writer, now }),
    todo: null,
  }
}

/** The history is not loaded further, for example after `parley resync`. */
const NOT_LOADING = {
  kind: 'warn',
  detail: 'No process reads at the moment',
  todo: 'Run parley backfill, or start parley daemon.',
} as const

/** The verdict for one problem, and how many more there are. */
export function problemVerdict(
  { kind, what, detail, todo, since }: HealthProblem,
  more: number,
  now: number,
): HealthVerdict {
  const from = since === null ? '' : ` since ${clockText(since, now)}`
  const others = more === 0 ? '' : ` (and ${countText(more, 'more problem')})`
  return { kind, text: `${PROBLEM_LABELS[kind]}${from}: ${what}${others}`, detail, todo }
}

function chosenResources({
  resources,
  chosen_resources: chosen,
}: StatusReport<ResourceFacts>): readonly ResourceFacts[] {
  return resources.filter(({ resource }) => chosen.includes(resource))
}
