import type { CheckStatus } from '../base/errors.ts'
import { resourceNamed } from '../catalog/catalog.ts'
import { listsOf } from '../catalog/feeds.ts'
import type { ResourceName } from '../declare/resource-names.ts'
import type { ResourceFacts, StatusReport } from '../store/status/report.ts'
import { durationText } from '../terminal/wording.ts'
import { TIMELINES } from './completeness.ts'
import { type HealthProblem, problemsOf } from './problems.ts'
import { type HealthVerdict, verdictOf } from './verdict.ts'

/** The answer of `parley status --check`, for cron, timers and monitoring such as Nagios. Pure. */
export interface CheckResult {
  /**
   * Exit status, as of monitoring plug-ins: 0 fine, 1 for a warning or a wait, 2 when a person has to act or data is
   * too old.
   */
  status: CheckStatus
  /** One line, without a line break. */
  line: string
}

export interface CheckQuestion {
  /** In ms since the epoch. */
  now: number
  /**
   * Resources whose `fresh_as_of` is older than this are too old; `complete_as_of` decides for those without a list.
   * Undefined: age is not checked.
   */
  maxAgeMs: number | undefined
  /**
   * Checks only this resource, and problems of the whole warehouse. Undefined: checks the problems of all resources,
   * and the age of the chosen ones that are read in time order.
   */
  resource: ResourceName | undefined
}

/** @param causes as of `checkVerdict` */
export function checkStatus(
  report: StatusReport<ResourceFacts>,
  question: CheckQuestion,
  causes: readonly HealthProblem[] = [],
): CheckResult {
  const verdict = checkVerdict(report, question, causes)
  const status = checkStatusOf(verdict)
  return { status, line: `${CHECK_LABELS[status]}: ${verdictSentences(verdict)}` }
}

/**
 * @param causes problems that are not in the report. They come first, since they may be the cause of a problem in the
 * report
 */
export function checkVerdict(
  report: StatusReport<ResourceFacts>,
  { now, maxAgeMs, resource }: CheckQuestion,
  causes: readonly HealthProblem[] = [],
): HealthVerdict {
  const isChosen = (name: ResourceName) => resource === undefined || name === resource
  const chosen = { ...report, resources: report.resources.filter(row => isChosen(row.resource)) }
  const timelines = TIMELINES.filter(name => report.chosen_resources.includes(name))
  const aged = resource === undefined ? timelines : [resource]
  const problems = [...causes, ...problemsOf(chosen, now), ...notChosen(report, resource)]
  const old = maxAgeMs === undefined ? [] : tooOld(chosen, { now, maxAgeMs, aged })
  const all = [...problems.filter(isToAct), ...old, ...problems.filter(one => !isToAct(one))]
  return verdictOf(chosen, all, { now })
}

/** What a verdict says, on one line. */
export function verdictSentences({ text, detail, todo }: HealthVerdict): string {
  const sentences = [text, detail, todo].filter(sentence => sentence !== null)
  return sentences.reduce((before, next) => `${before}${before.endsWith('?') ? '' : '.'} ${next}`)
}

export const checkStatusOf = ({ kind }: Pick<HealthVerdict, 'kind'>): CheckStatus => STATUS[kind]

const STATUS = { ok: 0, loading: 0, wait: 1, warn: 1, act: 2 } as const
export const CHECK_LABELS = ['OK', 'WARNING', 'CRITICAL'] as const

const isToAct = ({ kind }: HealthProblem) => kind === 'act'

/** A resource that is asked for and not read is no success, even where nothing is wrong. */
function notChosen(
  { chosen_resources: chosen }: StatusReport<ResourceFacts>,
  resource: ResourceName | undefined,
): HealthProblem[] {
  if (resource === undefined || chosen.includes(resource)) return []
  return [
    {
      id: `left-out:${resource}`,
      kind: 'warn',
      what: `${resource} is not read, since sync.resources, --only or --skip leave it out`,
      detail: null,
      todo: 'Choose it there to read it.',
      since: null,
    },
  ]
}

function tooOld(
  { resources }: StatusReport<ResourceFacts>,
  { now, maxAgeMs, aged }: { now: number; maxAgeMs: number; aged: readonly ResourceName[] },
): HealthProblem[] {
  return resources.flatMap((row): HealthProblem[] => {
    const { resource, state } = row
    if (!aged.includes(resource) || state === 'unavailable') return []
    const hasLists = listsOf(resourceNamed(resource)).length > 0
    const at = hasLists ? row.fresh_as_of : row.complete_as_of
    const ageMs = at === null ? Number.POSITIVE_INFINITY : now - Date.parse(at)
    if (ageMs <= maxAgeMs) return []
    const age = at === null ? 'has never been read' : `is ${durationText(ageMs)} old`
    return [
      {
        id: `old:${resource}`,
        kind: 'act',
        what: `${resource} ${age} (allowed: ${durationText(maxAgeMs)})`,
        detail: null,
        todo: 'Check that parley daemon is running and reaches the API: parley status, parley doctor.',
        since: null,
      },
    ]
  })
}
