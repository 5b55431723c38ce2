import { groupedBy } from '../../support/grouped-by.ts'
import { countOf, earliest, hundredths, latest, mean, median, sortedBy, sum } from './counting.ts'
import { changesOf, openDeals, outcomeOf, ownerOf, stageOf, touchesOfDeal } from './deals.ts'
import { addDays, dayOf, daysBetween, mondayOf, quarterBegin } from './local-time.ts'
import type { AnswerRow, Question } from './question.ts'
import type { Deal, DealChange, World } from './world-rows.ts'

/** Questions about how deals came to be what they are. */

// ------------------------------------------------------------------------------------------------ moved

const pipelineMoved: Question = {
  name: 'pipeline-moved-since-monday',
  meaning: `Deals whose stage, amount or close date differs from the one at the start of this week's Monday, local
time, by the changes that parley observed. A value that changed and changed back has not moved. Deals
that were closed then and are closed now are left out, and so are deals that the CRM has deleted. An
open deal that parley first saw since Monday is new and has no values before. Amounts are in the currency of
the deal. Ordered by name and id.`,
  key: ['deal_id'],
  columns: [
    'deal',
    'stage_before',
    'stage',
    'amount_before',
    'amount',
    'close_date_before',
    'close_date',
    'deal_id',
  ],
  answer: movedSinceMonday,
  trap: {
    overlooks: 'that Monday begins nine hours earlier in Tokyo than in UTC',
    answer: world =>
      movedSinceMonday({ ...world, settings: { ...world.settings, timeZone: 'UTC', utcOffsetHours: 0 } }),
  },
}

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
      closeDate: before('close_date', deal.closeDate),
    }
    const hasMoved =
      old.stageId !== deal.stageId || old.amount !== deal.amount || old.closeDate !== deal.closeDate
    if (!isNew && !hasMoved) return []
    return [
      {
        deal: deal.name,
        stage_before: isNew ? null : (stageOf(world, old)?.name ?? null),
        stage: stageOf(world, deal)?.name ?? null,
        amount_before: isNew ? null : old.amount,
        amount: deal.amount,
        close_date_before: isNew ? null : old.closeDate,
        close_date: deal.closeDate,
        deal_id: deal.id,
      },
    ]
  })
  return sortedBy(rows, 'deal', 'deal_id')
}

// ------------------------------------------------------------------------------------------------ postponed

const MOVED_WITHIN = 90

const closeDatesMoved: Question = {
  name: 'close-dates-moved',
  meaning: `Open deals for which parley observed a change of the close date in the last ${MOVED_WITHIN} days. A change from
or to no date is neither later nor earlier; \`times_unknown\` counts it. \`days_later\` adds up the days of all
other changes. Ordered by \`days_later\`, most first, then by name and id.`,
  key: ['deal_id'],
  columns: [
    'deal',
    'stage',
    'owner',
    'times_later',
    'times_earlier',
    'times_unknown',
    'days_later',
    'close_date',
    'last_moved',
    'deal_id',
  ],
  answer: movedDates,
  trap: {
    overlooks: 'that a close date is also removed',
    answer: world =>
      movedDates({ ...world, dealChanges: world.dealChanges.filter(({ after }) => after !== null) }),
  },
}

function movedDates(world: World): AnswerRow[] {
  const since = addDays(world.today, 1 - MOVED_WITHIN)
  const dayIn = ({ observedAt }: DealChange): string => dayOf(observedAt, world.settings)
  const rows = openDeals(world).flatMap((deal): AnswerRow[] => {
    const changes = changesOf(world, deal, 'close_date').filter(change => dayIn(change) >= since)
    if (changes.length === 0) return []
    const moves = changes.flatMap(({ before, after }) =>
      typeof before === 'string' && typeof after === 'string' ? daysBetween(before, after) : [],
    )
    return [
      {
        deal: deal.name,
        stage: stageOf(world, deal)?.name ?? null,
        owner: ownerOf(world, deal.ownerId).owner,
        times_later: countOf(moves, move => move > 0),
        times_earlier: countOf(moves, move => move < 0),
        times_unknown: changes.length - moves.length,
        days_later: sum(moves),
        close_date: deal.closeDate,
        last_moved: latest(changes.map(dayIn)),
        deal_id: deal.id,
      },
    ]
  })
  return sortedBy(rows, '-days_later', 'deal', 'deal_id')
}

// ------------------------------------------------------------------------------------------------ stages

const stageChanges: Question = {
  name: 'stage-changes-last-quarter',
  meaning: `Every change of a stage that parley observed since the last calendar quarter began, of deals that are still
there, with the names of both stages: a deleted one keeps its last name. Of several changes between two reads only
the last is known. Ordered by the day on which parley observed it, then by name and id.`,
  key: ['deal_id', 'seen_on', 'stage'],
  columns: ['seen_on', 'deal', 'stage_before', 'stage', 'owner', 'deal_id'],
  answer: changedStages,
  trap: {
    overlooks: 'that a stage may be deleted since',
    answer: world => changedStages({ ...world, stages: world.stages.filter(({ isDeleted }) => !isDeleted) }),
  },
}

function changedStages(world: World): AnswerRow[] {
  const since = quarterBegin(world.today, -1)
  const nameOf = (id: unknown) => world.stages.find(stage => stage.id === id)?.name ?? null
  const rows = world.deals.flatMap(deal =>
    changesOf(world, deal, 'stage_id')
      .filter(({ observedAt }) => dayOf(observedAt, world.settings) >= since)
      .map(({ observedAt, before, after }) => ({
        at: observedAt,
        seen_on: dayOf(observedAt, world.settings),
        deal: deal.name,
        stage_before: nameOf(before),
        stage: nameOf(after),
        owner: ownerOf(world, deal.ownerId).owner,
        deal_id: deal.id,
      })),
  )
  return sortedBy(rows, 'seen_on', 'deal', 'deal_id', 'at').map(({ at: _, ...row }) => row)
}

// ------------------------------------------------------------------------------------------------ time to close

const timeToClose: Question = {
  name: 'time-to-close-by-stage',
  meaning: `Closed deals by the stage that they are in. The time is the number of days from the local day of the first
meeting of the deal, even one that cannot be read, to its close date, if that is not earlier. Ordered by pipeline, by
the number of deals, most first, and by stage.`,
  key: ['pipeline', 'stage'],
  columns: [
    'pipeline',
    'stage',
    'deals_closed',
    'with_a_meeting_before',
    'median_days',
    'mean_days',
    'shortest_days',
    'longest_days',
  ],
  answer: timesToClose,
  trap: {
    overlooks: 'that closed deals stay in a stage that the CRM has deleted',
    answer: world => timesToClose({ ...world, stages: world.stages.filter(({ isDeleted }) => !isDeleted) }),
  },
}

function timesToClose(world: World): AnswerRow[] {
  const closed = world.deals.filter(deal => outcomeOf(world, deal) !== 'open')
  const rows = [...groupedBy(closed, ({ stageId }) => String(stageId)).values()].flatMap(own => {
    const days = own.flatMap(deal => daysSinceFirstMeeting(world, deal) ?? [])
    const [first] = own
    if (!first) return []
    return {
      pipeline: world.pipelines.find(({ id }) => id === first.pipelineId)?.name ?? null,
      stage: stageOf(world, first)?.name ?? null,
      deals_closed: own.length,
      with_a_meeting_before: days.length,
      median_days: hundredths(median(days)),
      mean_days: hundredths(mean(days)),
      shortest_days: days.length === 0 ? null : Math.min(...days),
      longest_days: days.length === 0 ? null : Math.max(...days),
    }
  })
  return sortedBy(rows, 'pipeline', '-deals_closed', 'stage')
}

function daysSinceFirstMeeting(world: World, deal: Deal): number | undefined {
  const meetings = touchesOfDeal(world, deal).filter(({ isMeeting }) => isMeeting)
  const first = earliest(meetings.map(({ at }) => dayOf(at, world.settings)))
  const closed = deal.closeDate
  return first === null || closed === null || closed < first ? undefined : daysBetween(first, closed)
}

export const HISTORY_QUESTIONS: readonly Question[] = [
  pipelineMoved,
  closeDatesMoved,
  stageChanges,
  timeToClose,
]
