import { existsSync } from 'node:fs'
import { accessGone } from '../api/access.ts'
import { createAsker } from '../api/ask.ts'
import { createGovernor } from '../api/governor.ts'
import { createApiClient } from '../app.ts'
import { isoInstant, systemClock } from '../clock.ts'
import type { ApiSettings } from '../config.ts'
import { type Amount, sum } from '../engine/estimate.ts'
import { type Holdings, readHoldings } from '../engine/holdings.ts'
import { type DayLimit, type PlanLine, planLines, type Rate, ratesOf, secondsFor } from '../engine/plan.ts'
import { type Survey, survey } from '../engine/survey.ts'
import { EXIT_STATUS, type ExitStatus } from '../errors.ts'
import { jsonLine } from '../harmless.ts'
import type { ResourceName } from '../resource.ts'
import { refuseOtherWorkspaceAt } from '../store/database/workspace-check.ts'
import { openDatabase } from '../store/open.ts'
import { requestsNoted } from '../store/requests-today.ts'
import { createState, META } from '../store/state.ts'
import { statementCache } from '../store/statements.ts'
import type { CommandContext } from './command.ts'
import { type TableColumn, table } from './table.ts'
import { counted, duration, perSecond, wholeNumber } from './wording.ts'

/** `parley backfill --plan`: what a backfill would cost, before anything is read. */

export interface PlanRequest {
  settings: ApiSettings
  resources: readonly ResourceName[]
  json: boolean
}

/** Requests that the plan itself makes at most, repeated ones not counted. */
const MOST_REQUESTS = 60

export async function showPlan(
  context: CommandContext,
  { settings, resources, json }: PlanRequest,
): Promise<ExitStatus> {
  const clock = systemClock()
  const { api, sync } = settings
  const since = sync.since ?? null
  const { workspaceId: id, baseUrl } = api
  refuseOtherWorkspaceAt(settings.database.path, { id, baseUrl })
  const held = lookInto(settings, resources, isoInstant(clock.now()))
  const governor = createGovernor({
    clock,
    random: Math.random,
    ceilings: {
      requestsPerSecond: api.maxRequestsPerSecond,
      concurrency: api.maxConcurrency,
      requestsPerDay: api.maxRequestsPerDay,
    },
    initial: held?.learned,
    usedToday: held?.usedToday ?? 0,
  })
  const client = createApiClient(settings, clock)
  const asker = createAsker({
    client,
    governor,
    clock,
    random: Math.random,
    giveUpMs: api.giveUpSeconds * 1000,
    signal: context.signal,
    onPause: until => context.stderr.write(`parley: the API asks to wait until ${isoInstant(until)}\n`),
  })
  try {
    const found = await survey(asker, {
      chosen: resources,
      held: held?.holdings,
      since,
      accessLogEndParameter: settings.accessLog.endParameter,
      budget: MOST_REQUESTS,
    })
    if (asker.answerMs() === undefined && isTurnedAway(found.refusals)) throw accessGone(client.access, false)
    const state = governor.state()
    const rates = ratesOf({
      learned: held?.learned,
      ceilings: { requestsPerSecond: api.maxRequestsPerSecond, concurrency: api.maxConcurrency },
      answerMs: asker.answerMs(),
      throttledTo: state.throttled > 0 ? governor.learned().ratePerSecond : undefined,
    })
    const plan = summarize(planLines(resources, { found, held: held?.holdings }), rates, {
      since,
      asked: asker.used(),
      warehouse: held ? settings.database.path : null,
      day:
        api.maxRequestsPerDay === undefined
          ? undefined
          : { perDay: api.maxRequestsPerDay, usedToday: state.usedToday },
    })
    context.stdout.write(json ? jsonLine(plan) : forPeople(plan))
    return EXIT_STATUS.done
  } finally {
    await client.close()
    governor.close()
  }
}

/** Refused, other than as the API does where a workspace does not offer something. */
function isTurnedAway(refusals: Survey['refusals']): boolean {
  return [...refusals.values()].some(
    ({ status, expected }) => !expected && (status === 403 || status === 404),
  )
}

interface Held {
  holdings: Holdings
  learned: { ratePerSecond: number; concurrency: number; limited: boolean } | undefined
  usedToday: number
}

/** What the warehouse holds, if there is one. Opened for reading only. */
function lookInto(
  { database, sync }: ApiSettings,
  chosen: readonly ResourceName[],
  now: string,
): Held | undefined {
  if (!existsSync(database.path)) return undefined
  const db = openDatabase({ path: database.path, readonly: true })
  try {
    const tables = db
      .prepare("SELECT count(*) FROM sqlite_master WHERE name = 'sync_resources'")
      .pluck()
      .get()
    if (tables === 0) return undefined
    const { meta } = createState(statementCache(db))
    return {
      holdings: readHoldings(db, { chosen, since: sync.since ?? null, now }),
      learned: JSON.parse(meta(META.learnedRate) ?? 'null') ?? undefined,
      usedToday: requestsNoted(meta, now.slice(0, 10)),
    }
  } finally {
    db.close()
  }
}

interface Cost {
  requests: number
  certainty: Amount['certainty']
  /** At the fastest of the rates; null when there is none. */
  seconds: number | null
  /** One where the limit of the API is known. The slowest rate first. */
  estimates: readonly { per_second: number; seconds: number }[]
}

interface PlanSummary extends Cost {
  since: string | null
  /** The database that was taken into account. */
  warehouse: string | null
  /** Requests that the plan itself made. */
  asked: number
  rate: { per_second: number; from: string } | null
  lanes: readonly (Cost & { lane: string })[]
  resources: readonly (Cost & { resource: string; lane: string; because: string })[]
}

interface Circumstances {
  since: string | null
  asked: number
  warehouse: string | null
  day: DayLimit | undefined
}

function summarize(
  lines: readonly PlanLine[],
  rates: readonly Rate[],
  { day, ...rest }: Circumstances,
): PlanSummary {
  const cost = ({ value, certainty }: Amount): Cost => {
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

const SIGNS: Readonly<Record<Amount['certainty'], string>> = {
  exact: '',
  about: '~',
  'at least': '≥',
  unknown: '',
}

type Row = Cost & { resource: string; lane: string; because: string }

const columnsFor = ({ estimates }: PlanSummary): readonly TableColumn<Row>[] => [
  { title: 'RESOURCE', cell: ({ resource }) => resource },
  { title: 'LANE', cell: ({ lane }) => lane },
  {
    title: 'REQUESTS',
    align: 'right',
    cell: ({ requests, certainty }) =>
      certainty === 'unknown' ? 'unknown' : `${SIGNS[certainty]}${wholeNumber(requests)}`,
  },
  ...estimates.map(
    ({ per_second: rate }, index): TableColumn<Row> => ({
      title: timeTitle(rate, { isOnly: estimates.length === 1, isLast: index === estimates.length - 1 }),
      align: 'right',
      cell: row => (row.certainty === 'unknown' ? '' : timeText(row.estimates[index]?.seconds ?? 0)),
    }),
  ),
  { title: 'BASIS', cell: ({ because }) => because },
]

function timeTitle(rate: number, { isOnly, isLast }: { isOnly: boolean; isLast: boolean }): string {
  if (isOnly) return 'TIME'
  return isLast ? 'NO LIMIT' : `AT ${perSecond(rate)}/S`
}

const timeText = (seconds: number): string => duration(Math.max(1, Math.round(seconds)) * 1000)

function rateText({ rate, estimates }: PlanSummary): string {
  if (rate === null) return 'Rate: not known yet.'
  const fastest = `${perSecond(rate.per_second)} requests a second (${rate.from})`
  if (estimates.length === 1) return `Rate: ${fastest}.`
  const limits = estimates.slice(0, -1).map(each => perSecond(each.per_second))
  return `Rate: what the API allows is not known yet. The times are for a limit of ${limits.join(' or ')} requests a second, and for none: ${fastest}.`
}

function forPeople(plan: PlanSummary): string {
  const [titles = '', ...rows] = table(columnsFor(plan), [
    ...plan.resources,
    ...plan.lanes.map(each => ({ ...each, resource: 'all', because: '' })),
    { ...plan, resource: 'all', lane: 'all', because: '' },
  ])
  const remarks = [
    rateText(plan),
    plan.warehouse
      ? `What ${plan.warehouse} holds already is taken into account.`
      : 'There is no warehouse yet: everything is read.',
    ...(plan.since ? [`Only what happened since ${plan.since} is counted where the API can tell.`] : []),
    '~ about; ≥ at least: not countable before reading.',
    `This plan took ${counted(plan.asked, 'request')} and stored nothing.`,
  ]
  const each = rows.slice(0, plan.resources.length)
  return `${[titles, ...each, '', ...rows.slice(each.length), '', ...remarks].join('\n')}\n`
}
