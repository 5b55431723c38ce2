import { groupedBy } from '../../support/grouped-by.ts'
import {
  cents,
  countOf,
  distinct,
  hundredths,
  latest,
  mean,
  median,
  share,
  sortedBy,
  sum,
} from './counting.ts'
import {
  changesOf,
  closedDayOf,
  inEuros,
  openDeals,
  outcomeOf,
  ownerOf,
  probabilityOf,
  stageOf,
  worthOf,
} from './deals.ts'
import { addDays, dayOf, daysBetween, fiscalQuarterOf, mondayOf } from './local-time.ts'
import type { AnswerRow, Question } from './question.ts'
import type { Deal, World } from './world-rows.ts'

/** Questions about the pipeline and what became of it. */

const worths = (world: World, deals: readonly Deal[]): number[] =>
  deals.flatMap(deal => worthOf(world, deal) ?? [])
const totalOf = (world: World, deals: readonly Deal[]): number | null => cents(sum(worths(world, deals)))
const unknownWorths = (world: World, deals: readonly Deal[]): number =>
  deals.length - worths(world, deals).length

/** A world in which amounts are numbers without a currency. */
const withoutCurrencies = (world: World): World => ({
  ...world,
  deals: world.deals.map(deal => ({ ...deal, currency: world.settings.reportingCurrency })),
})

// ------------------------------------------------------------------------------------------------ stages

const pipelineByStage: Question = {
  name: 'open-deals-by-stage',
  meaning: `Open deals by stage and by currency of the deal. A stage without open deals has no row. \`amount\` is in
the currency of the deal, \`weighted\` is \`amount\` times the probability of the stage from 0 to 1, where the
stage has one, and \`amount_reporting\` is converted. \`without_amount\` counts the deals that no
sum includes. Ordered by the name of the pipeline and the position of the stage, then by currency.`,
  key: ['pipeline', 'stage', 'currency'],
  columns: [
    'pipeline',
    'stage',
    'currency',
    'deals',
    'amount',
    'weighted',
    'amount_reporting',
    'without_amount',
  ],
  answer: stagesWith(probabilityOf),
  trap: {
    overlooks: 'that probabilities are per cent in one pipeline and fractions in the other',
    answer: stagesWith((_, stage) => stage?.probability ?? null),
  },
}

function stagesWith(probability: typeof probabilityOf) {
  return (world: World): AnswerRow[] => {
    const groups = groupedBy(openDeals(world), ({ stageId, currency }) => `${stageId} ${currency}`)
    const rows = [...groups.values()].flatMap(deals => {
      const [first] = deals
      if (!first) return []
      const stage = stageOf(world, first)
      const pipeline = world.pipelines.find(({ id }) => id === first.pipelineId)
      const amount = sum(deals.flatMap(deal => deal.amount ?? []))
      return {
        stage_place: stage?.position ?? null,
        pipeline: pipeline?.name ?? null,
        stage: stage?.name ?? null,
        currency: first.currency,
        deals: deals.length,
        amount: cents(amount),
        weighted: cents(amount * (probability(world, stage) ?? 0)),
        amount_reporting: cents(sum(worths(world, deals))),
        without_amount: unknownWorths(world, deals),
      }
    })
    return sortedBy(rows, 'pipeline', 'stage_place', 'currency').map(({ stage_place: _, ...row }) => row)
  }
}

// ------------------------------------------------------------------------------------------------ win rate

/** Days back in which a deal was closed. */
const CLOSED_WITHIN = 365

const winRate: Question = {
  name: 'win-rate',
  meaning: `Deals that were closed in the last ${CLOSED_WITHIN} days. The win rate is won / (won + lost): by number,
and by the converted amounts of the deals that have one. It is NULL where nothing was won or lost.
\`outcome_unknown\` counts closed deals whose stage does not say whether they were won; they are in
neither sum. \`without_amount\` counts won and lost deals. The rows by pipeline come first, then those by
owner. A deal keeps its owner after the owner has left; the row without \`id\` is for deals without an
owner. Closed deals without a known day count nowhere. Ordered by id.`,
  key: ['by', 'id'],
  columns: [
    'by',
    'id',
    'name',
    'won',
    'lost',
    'win_rate',
    'won_eur',
    'lost_eur',
    'win_rate_by_amount',
    'without_amount',
    'outcome_unknown',
  ],
  answer: winRates,
  trap: {
    overlooks: 'that closed deals stay in a stage that the CRM has deleted',
    answer: world => winRates({ ...world, stages: world.stages.filter(({ isDeleted }) => !isDeleted) }),
  },
}

function winRates(world: World): AnswerRow[] {
  const deals = closedWithin(world, CLOSED_WITHIN)
  const row = (by: string, id: string | null, name: string | null, own: readonly Deal[]): AnswerRow => {
    const won = own.filter(deal => outcomeOf(world, deal) === 'won')
    const lost = own.filter(deal => outcomeOf(world, deal) === 'lost')
    const decided = [...won, ...lost]
    return {
      by,
      id,
      name,
      won: won.length,
      lost: lost.length,
      win_rate: ratio(won.length, decided.length),
      won_eur: totalOf(world, won),
      lost_eur: totalOf(world, lost),
      win_rate_by_amount: ratio(sum(worths(world, won)), sum(worths(world, decided))),
      without_amount: unknownWorths(world, decided),
      outcome_unknown: own.length - decided.length,
    }
  }
  const byPipeline = distinct(deals.map(({ pipelineId }) => pipelineId)).map(id =>
    row(
      'pipeline',
      id,
      world.pipelines.find(pipeline => pipeline.id === id)?.name ?? null,
      deals.filter(({ pipelineId }) => pipelineId === id),
    ),
  )
  const byOwner = distinct(deals.map(({ ownerId }) => ownerId)).map(id =>
    row(
      'owner',
      id,
      ownerOf(world, id).owner,
      deals.filter(({ ownerId }) => ownerId === id),
    ),
  )
  return [...sortedBy(byPipeline, 'id'), ...sortedBy(byOwner, 'id')]
}

const ratio = (part: number, whole: number): number | null => (whole === 0 ? null : share(part / whole))

function closedWithin(world: World, days: number): Deal[] {
  const from = addDays(world.today, 1 - days)
  return world.deals.filter(deal => {
    const day = closedDayOf(world, deal)
    return day !== null && day >= from && day <= world.today
  })
}

// ------------------------------------------------------------------------------------------------ commit

const commitThisQuarter: Question = {
  name: 'commit-this-quarter',
  meaning: `One row for the last fiscal quarter and one for this quarter. \`won\` counts won deals that were closed in
the quarter. \`commit\` counts open deals in the forecast category Commit whose close date is in the
quarter, passed or not; in the last quarter they have slipped. \`unknown_amounts\` counts the won and
committed deals that no sum includes. \`commit_without_date\` counts open deals in Commit without a close
date; they may belong to either quarter, so both rows have the same number.`,
  key: ['from_day'],
  columns: [
    'fiscal_quarter',
    'from_day',
    'to_day',
    'won',
    'won_eur',
    'commit',
    'commit_eur',
    'unknown_amounts',
    'commit_without_date',
  ],
  answer: commitOfQuarters,
  trap: {
    overlooks: 'that amounts are in three currencies',
    answer: world => commitOfQuarters(withoutCurrencies(world)),
  },
}

function commitOfQuarters(world: World): AnswerRow[] {
  const committed = openDeals(world).filter(({ forecast }) => forecast === 'Commit')
  return [-1, 0].map(ahead => {
    const { name, fromDay, toDay } = fiscalQuarterOf(world.today, ahead, world.settings)
    const isInside = (day: string | null): boolean => day !== null && day >= fromDay && day <= toDay
    const won = world.deals.filter(
      deal => outcomeOf(world, deal) === 'won' && isInside(closedDayOf(world, deal)),
    )
    const commit = committed.filter(({ closeDate }) => isInside(closeDate))
    return {
      fiscal_quarter: name,
      from_day: fromDay,
      to_day: toDay,
      won: won.length,
      won_eur: totalOf(world, won),
      commit: commit.length,
      commit_eur: totalOf(world, commit),
      unknown_amounts: unknownWorths(world, [...won, ...commit]),
      commit_without_date: countOf(committed, ({ closeDate }) => closeDate === null),
    }
  })
}

// ------------------------------------------------------------------------------------------------ moved

const pipelineMoved: Question = {
  name: 'pipeline-moved-this-week',
  meaning: `Deals whose stage, amount or close date differs from the one at the start of this week's Monday, local
time, by the changes that parley observed. A value that changed and changed back has not moved. Deals
that were closed then and are closed now are left out, and so are deals that the CRM has deleted. An
open deal that parley first saw since Monday is new and has no values before. Amounts are converted.
\`observed_day\` is the local day of the last observed change of the three fields, or of the first read of
a new deal. Ordered by id.`,
  key: ['deal_id'],
  columns: [
    'deal_id',
    'deal',
    'is_new',
    'stage_before',
    'stage_after',
    'amount_before_eur',
    'amount_after_eur',
    'close_date_before',
    'close_date_after',
    'observed_day',
  ],
  answer: movedSinceMonday,
  trap: {
    overlooks: 'that Monday begins nine hours earlier in Tokyo than in UTC',
    answer: world =>
      movedSinceMonday({ ...world, settings: { ...world.settings, timeZone: 'UTC', utcOffsetHours: 0 } }),
  },
}

const MOVING_FIELDS = ['stage_id', 'amount', 'close_date'] as const

function movedSinceMonday(world: World): AnswerRow[] {
  const monday = mondayOf(world.today)
  const dayIn = (instant: string): string => dayOf(instant, world.settings)
  const rows = world.deals.flatMap((deal): AnswerRow[] => {
    const isNew = dayIn(deal.firstSeenAt) >= monday
    const changes = (field: string) =>
      changesOf(world, deal, field).filter(({ observedAt }) => dayIn(observedAt) >= monday)
    const before = <T>(field: string, value: T): T => {
      const [first] = changes(field)
      return first ? (first.before as T) : value
    }
    const wasClosed = !isNew && before('is_closed', deal.isClosed)
    if (deal.isClosed && (wasClosed || isNew)) return []
    const old = {
      stageId: before('stage_id', deal.stageId),
      amount: before('amount', deal.amount),
      currency: before('currency', deal.currency),
      closeDate: before('close_date', deal.closeDate),
    }
    const hasMoved =
      old.stageId !== deal.stageId || old.amount !== deal.amount || old.closeDate !== deal.closeDate
    if (!isNew && !hasMoved) return []
    const observed = MOVING_FIELDS.flatMap(changes).map(({ observedAt }) => dayIn(observedAt))
    return [
      {
        deal_id: deal.id,
        deal: deal.name,
        is_new: Number(isNew),
        stage_before: isNew ? null : (stageOf(world, old)?.name ?? null),
        stage_after: stageOf(world, deal)?.name ?? null,
        amount_before_eur: isNew ? null : cents(inEuros(world, old.amount, old.currency)),
        amount_after_eur: cents(worthOf(world, deal)),
        close_date_before: isNew ? null : old.closeDate,
        close_date_after: deal.closeDate,
        observed_day: latest([...observed, ...(isNew ? [dayIn(deal.firstSeenAt)] : [])]),
      },
    ]
  })
  return sortedBy(rows, 'deal_id')
}

// ------------------------------------------------------------------------------------------------ cycle

const cycleTime: Question = {
  name: 'cycle-time',
  meaning: `Deals that were won or lost and closed in the last ${CLOSED_WITHIN} days. The time is the number of days
from the local day on which the deal was created to the day on which it was closed. \`without_time\`
counts deals whose creation has no time, and deals that were closed before they were created; they are
in no average.`,
  key: ['outcome'],
  columns: ['outcome', 'deals', 'median_days', 'mean_days', 'without_time'],
  answer: cycleTimes,
  trap: {
    overlooks: 'that the close date of the CRM is not always the day on which a deal was closed',
    answer: world => cycleTimes({ ...world, dealChanges: [] }),
  },
}

function cycleTimes(world: World): AnswerRow[] {
  const deals = closedWithin(world, CLOSED_WITHIN)
  return (['won', 'lost'] as const).map(outcome => {
    const own = deals.filter(deal => outcomeOf(world, deal) === outcome)
    const days = own.flatMap(deal => {
      const closed = closedDayOf(world, deal)
      if (deal.createdAt === null || closed === null) return []
      const taken = daysBetween(dayOf(deal.createdAt, world.settings), closed)
      return taken < 0 ? [] : [taken]
    })
    return {
      outcome,
      deals: own.length,
      median_days: hundredths(median(days)),
      mean_days: hundredths(mean(days)),
      without_time: own.length - days.length,
    }
  })
}

export const PIPELINE_QUESTIONS: readonly Question[] = [
  pipelineByStage,
  winRate,
  commitThisQuarter,
  pipelineMoved,
  cycleTime,
]
