import { accessGone } from '../../api/access-errors.ts'
import type { LearnedRate } from '../../api/governor/pace.ts'
import { requestCeilings, withApiReader } from '../../app/api-client.ts'
import { isoInstant, systemClock } from '../../base/clock.ts'
import { EXIT_STATUS, type ExitStatus, errorCode } from '../../base/errors.ts'
import { jsonLine } from '../../base/safe-text.ts'
import { wholeNumber } from '../../base/whole-number.ts'
import { createStored } from '../../engine/estimate/already-stored.ts'
import { type DayLimit, type Rate, ratesOf, secondsFor } from '../../engine/estimate/duration.ts'
import { estimateRequests, type PlanLine } from '../../engine/estimate/estimate.ts'
import { type Amount, sum } from '../../engine/estimate/row-counts.ts'
import { databaseError } from '../../store/database/sqlite-errors.ts'
import { refuseOtherWorkspaceAt } from '../../store/file/open.ts'
import { openStoredProgress, type StoredProgress } from '../../store/stored-progress.ts'
import { META, readNote } from '../../store/sync/meta.ts'
import { readRequestsToday } from '../../store/sync/requests-today.ts'
import { type TableColumn, table } from '../../terminal/table.ts'
import { countText, rateText, wholeSecondsText } from '../../terminal/wording.ts'
import type { CommandContext } from '../base/command.ts'
import type { BackfillRequest } from './run-backfill.ts'

/** `parley backfill --plan`: estimates the requests and time of a backfill. */

/**
 * The plan itself sends at most this many requests. Only further attempts of the last request may exceed this limit.
 */
const MAX_REQUESTS = 60

export async function showPlan(context: CommandContext, request: BackfillRequest): Promise<ExitStatus> {
  const { path } = request.settings.database
  const { workspaceId: id, baseUrl } = request.settings.api
  refuseOtherWorkspaceAt(path, { id, baseUrl, isRenamed: request.isRenamed })
  let warehouse: StoredProgress | undefined
  try {
    warehouse = openStoredProgress(path)
    const plan = await makePlan(context, request, warehouse)
    context.stdout.write(request.json ? jsonLine(plan) : planText(plan, request.leftOut))
    return EXIT_STATUS.done
  } catch (error) {
    // An error of the network may have the code of a file error, such as EACCES.
    throw errorCode(error)?.startsWith('SQLITE_') ? databaseError(error, path) : error
  } finally {
    warehouse?.close()
  }
}

async function makePlan(
  { signal, stderr }: CommandContext,
  { settings, resources }: BackfillRequest,
  warehouse: StoredProgress | undefined,
) {
  const clock = systemClock()
  const now = isoInstant(clock.now())
  const since = settings.sync.since ?? null
  const meta = (key: string) => warehouse?.state.meta(key)
  const learned = readNote<LearnedRate>(meta, META.learnedRate)
  const limits = { initial: learned, usedToday: readRequestsToday(meta, now.slice(0, 10)) }
  return withApiReader({ settings, clock, limits, signal, stderr }, async ({ reader, client, governor }) => {
    const { lines, isAccessRefused } = await estimateRequests(reader, {
      chosen: resources,
      stored: createStored(warehouse, { chosen: resources, since, now }),
      since,
      budget: MAX_REQUESTS,
    })
    if (reader.answerMs() === undefined && isAccessRefused) throw accessGone(client.access, false)
    const { throttled, usedToday } = governor.state()
    const throttledTo = throttled > 0 ? governor.learned().ratePerSecond : undefined
    const ceilings = requestCeilings(settings)
    const perDay = ceilings.requestsPerDay
    return planSummary(lines, ratesOf({ learned, ceilings, answerMs: reader.answerMs(), throttledTo }), {
      since,
      asked: reader.used(),
      warehouse: warehouse ? settings.database.path : null,
      day: perDay === undefined ? undefined : { perDay, usedToday },
    })
  })
}

type PlanSummary = ReturnType<typeof planSummary>

interface PlanContext {
  since: string | null
  /** The database whose rows reduce the estimate; null when there is none. */
  warehouse: string | null
  /** Requests that the plan itself sent. */
  asked: number
  day: DayLimit | undefined
}

function planSummary(lines: readonly PlanLine[], rates: readonly Rate[], { day, ...rest }: PlanContext) {
  /**
   * `estimates`: one for each assumed rate, the slowest first; a single one when the API's limit is known. `seconds`: the
   * time at the fastest rate; null when no rate is known.
   */
  const cost = ({ value, certainty }: Amount) => {
    const estimates = rates.map(rate => ({
      per_second: round(rate.perSecond),
      seconds: round(secondsFor(value, rate, day)),
    }))
    return { requests: value, certainty, seconds: estimates.at(-1)?.seconds ?? null, estimates }
  }
  const fastest = rates.at(-1)
  const lanes = [...new Set(lines.map(({ lane }) => lane))].sort()
  return {
    ...cost(sum(...lines.map(({ requests }) => requests))),
    ...rest,
    rate: fastest ? { per_second: round(fastest.perSecond), from: fastest.from } : null,
    lanes: lanes.map(lane => ({
      lane,
      ...cost(sum(...lines.filter(line => line.lane === lane).map(({ requests }) => requests))),
    })),
    resources: lines.map(({ resource, lane, requests, because }) => ({
      resource,
      lane,
      ...cost(requests),
      because,
    })),
  }
}

const round = (value: number): number => Math.round(value * 10) / 10

const CERTAINTY_PREFIX: Readonly<Record<Amount['certainty'], string>> = {
  exact: '',
  about: '~',
  'at least': '≥',
  unknown: '',
}

type PlanRow = Omit<PlanSummary['lanes'][number], 'lane'> & {
  resource: string
  lane: string
  because: string
}

const planColumns = ({ estimates }: PlanSummary): readonly TableColumn<PlanRow>[] => [
  { title: 'RESOURCE', cell: ({ resource }) => resource },
  { title: 'LANE', cell: ({ lane }) => lane },
  {
    title: 'REQUESTS',
    align: 'right',
    cell: ({ requests, certainty }) =>
      certainty === 'unknown' ? 'unknown' : `${CERTAINTY_PREFIX[certainty]}${wholeNumber(requests)}`,
  },
  ...estimates.map(
    ({ per_second: rate }, index): TableColumn<PlanRow> => ({
      title: timeTitle(rate, { isOnly: estimates.length === 1, isLast: index === estimates.length - 1 }),
      align: 'right',
      cell: row => (row.certainty === 'unknown' ? '' : timeText(row.estimates[index]?.seconds ?? 0)),
    }),
  ),
  { title: 'BASIS', cell: ({ because }) => because },
]

function timeTitle(rate: number, { isOnly, isLast }: { isOnly: boolean; isLast: boolean }): string {
  if (isOnly) return 'TIME'
  return isLast ? 'NO LIMIT' : `AT ${rateText(rate)}/S`
}

const timeText = (seconds: number): string => wholeSecondsText(Math.round(seconds) * 1000)

function rateSentence({ rate, estimates }: PlanSummary): string {
  if (rate === null) return 'Rate: not known yet.'
  const fastest = `${rateText(rate.per_second)} requests a second (${rate.from})`
  if (estimates.length === 1) return `Rate: ${fastest}.`
  const limits = estimates.slice(0, -1).map(each => rateText(each.per_second))
  return `Rate: the limit of the API is not known yet. The times assume a limit of ${limits.join(' or ')} requests a second, and no limit: ${fastest}.`
}

function planText(plan: PlanSummary, leftOut: readonly string[]): string {
  const [titles = '', ...rows] = table(planColumns(plan), [
    ...plan.resources,
    ...plan.lanes.map(each => ({ ...each, resource: 'all', because: '' })),
    { ...plan, resource: 'all', lane: 'all', because: '' },
  ])
  const remarks = [
    rateSentence(plan),
    plan.warehouse
      ? `The plan leaves out what ${plan.warehouse} already contains.`
      : 'There is no warehouse yet: the plan covers everything.',
    ...leftOut,
    ...(plan.since ? [`Where the API can filter by time, only data since ${plan.since} is counted.`] : []),
    '~ estimated; ≥ at least (the exact number is known only after reading).',
    `This plan sent ${countText(plan.asked, 'request')} and stored nothing.`,
  ]
  const each = rows.slice(0, plan.resources.length)
  return `${[titles, ...each, '', ...rows.slice(each.length), '', ...remarks].join('\n')}\n`
}
