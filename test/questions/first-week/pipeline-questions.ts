import { groupedBy } from '../../support/grouped-by.ts'
import { cents, countOf, distinct, hundredths, mean, median, sortedBy, sum } from './counting.ts'
import { openDeals, outcomeOf, ownerOf, probabilityOf, stageOf, worthOf } from './deals.ts'
import { addDays, dayOf, daysBetween, fiscalQuarterOf } from './local-time.ts'
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
  meaning: `Closed deals with a close date in the last ${CLOSED_WITHIN} days. The win rate is won / (won + lost): by number,
and by the converted amounts of the deals that have one. It is NULL where nothing was won or lost.
\`outcome_unknown\` counts closed deals whose stage does not say whether they were won; they are in
neither sum. \`without_amount\` counts won and lost deals. The rows by pipeline come first, then those by
owner. A deal keeps its owner after the owner has left; the row without \`id\` is for deals without an
owner. Closed deals without a close date count nowhere. Ordered by the number of deals, most first, then by id.`,
  key: ['part', 'id'],
  columns: [
    'part',
    'name',
    'won',
    'lost',
    'win_percent',
    'won_amount',
    'lost_amount',
    'win_percent_by_amount',
    'without_amount',
    'outcome_unknown',
    'id',
  ],
  answer: winRates,
  trap: {
    overlooks: 'that closed deals stay in a stage that the CRM has deleted',
    answer: world => winRates({ ...world, stages: world.stages.filter(({ isDeleted }) => !isDeleted) }),
  },
}

function winRates(world: World): AnswerRow[] {
  const deals = closedWithin(world, CLOSED_WITHIN)
  const row = (part: string, id: string | null, name: string | null, own: readonly Deal[]): AnswerRow => {
    const won = own.filter(deal => outcomeOf(world, deal) === 'won')
    const lost = own.filter(deal => outcomeOf(world, deal) === 'lost')
    const decided = [...won, ...lost]
    return {
      part,
      name,
      won: won.length,
      lost: lost.length,
      win_percent: percent(won.length, decided.length),
      won_amount: totalOf(world, won),
      lost_amount: totalOf(world, lost),
      win_percent_by_amount: percent(sum(worths(world, won)), sum(worths(world, decided))),
      without_amount: unknownWorths(world, decided),
      outcome_unknown: own.length - decided.length,
      id,
      decided: decided.length,
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
  return [byPipeline, byOwner].flatMap(rows =>
    sortedBy(rows, '-decided', 'id').map(({ decided: _, ...row }) => row),
  )
}

const percent = (part: number, whole: number): number | null =>
  whole === 0 ? null : hundredths((100 * part) / whole)

function closedWithin(world: World, days: number): Deal[] {
  const from = addDays(world.today, 1 - days)
  return world.deals.filter(
    ({ isClosed, closeDate: day }) => isClosed && day !== null && day >= from && day <= world.today,
  )
}

// ------------------------------------------------------------------------------------------------ commit

const commitThisQuarter: Question = {
  name: 'commit-of-the-quarter',
  meaning: `One row for the last fiscal quarter and one for this quarter. \`won\` counts won deals with a close date in
the quarter. \`committed\` counts open deals in the forecast category Commit whose close date is in the
quarter, passed or not; in the last quarter they have slipped. \`without_amount\` counts the won and
committed deals that no sum includes. \`committed_without_date\` counts open deals in Commit without a close
date; they may belong to either quarter, so both rows have the same number.`,
  key: ['from_day'],
  columns: [
    'period',
    'from_day',
    'won',
    'won_amount',
    'committed',
    'committed_amount',
    'without_amount',
    'committed_without_date',
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
    const { fromDay, toDay } = fiscalQuarterOf(world.today, ahead, world.settings)
    const isInside = (day: string | null): boolean => day !== null && day >= fromDay && day <= toDay
    const won = world.deals.filter(deal => outcomeOf(world, deal) === 'won' && isInside(deal.closeDate))
    const commit = committed.filter(({ closeDate }) => isInside(closeDate))
    return {
      period: `${ahead === 0 ? 'this' : 'last'} fiscal quarter`,
      from_day: fromDay,
      won: won.length,
      won_amount: totalOf(world, won),
      committed: commit.length,
      committed_amount: totalOf(world, commit),
      without_amount: unknownWorths(world, [...won, ...commit]),
      committed_without_date: countOf(committed, ({ closeDate }) => closeDate === null),
    }
  })
}

// ------------------------------------------------------------------------------------------------ cycle

const cycleTime: Question = {
  name: 'cycle-time',
  meaning: `Won and lost deals with a close date in the last ${CLOSED_WITHIN} days. The time is the number of days
from the local day on which the deal was created to its close date. \`without_time\` counts deals whose
creation has no time, and those that were created after their close date; they are in no average.`,
  key: ['outcome'],
  columns: ['outcome', 'deals', 'median_days', 'mean_days', 'without_time'],
  answer: cycleTimes,
  trap: {
    overlooks: 'that closed deals stay in a stage that the CRM has deleted',
    answer: world => cycleTimes({ ...world, stages: world.stages.filter(({ isDeleted }) => !isDeleted) }),
  },
}

function cycleTimes(world: World): AnswerRow[] {
  const deals = closedWithin(world, CLOSED_WITHIN)
  return (['won', 'lost'] as const).map(outcome => {
    const own = deals.filter(deal => outcomeOf(world, deal) === outcome)
    const days = own.flatMap(deal => {
      if (deal.createdAt === null || deal.closeDate === null) return []
      const taken = daysBetween(dayOf(deal.createdAt, world.settings), deal.closeDate)
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
  cycleTime,
]
