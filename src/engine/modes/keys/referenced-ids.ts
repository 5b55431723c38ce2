import { longestBackoffMs } from '../../../base/backoff.ts'
import { DAY_MS } from '../../../base/clock.ts'
import { columnAt } from '../../../catalog/catalog.ts'
import type { DeclaredFeed } from '../../../catalog/feeds.ts'
import type { TimelineFeed } from '../../../declare/resource.ts'
import type { Task } from '../../../store/sync/tasks/task.ts'
import type { EngineContext } from '../../context/context.ts'
import { MONTH_MS } from '../../context/intervals.ts'
import type { Source } from '../../context/job.ts'
import { byRange, createPlanInBatches } from '../../scheduler/batch-plan.ts'
import { noteArrivals } from '../arrivals.ts'
import { isAskable } from './key-requests.ts'
import { createKeySource } from './key-source.ts'

/**
 * Requests ids that rows of another table name and the list did not show. A backfill requests them once in each round.
 * The daemon requests them again after a day, and then ever more rarely.
 */
export function createLookup(
  context: EngineContext,
  list: DeclaredFeed<TimelineFeed>,
  isListed: () => boolean,
): Source | undefined {
  const { resource, id, feed } = list
  const { evidence, lookup } = feed
  if (evidence.by !== 'ids' || !lookup) return undefined
  const where = { resource, id: `${id}.lookup` }
  const timeIndex = columnAt(feed.table, feed.time)
  const { since } = context.options
  const readLater = ({ attempts, ...task }: Task) =>
    context.store.tasks.done(task, {
      round: context.rounds.number(resource),
      dueAt: context.after(longestBackoffMs(HIDDEN, attempts + 1)),
      attempts: attempts + 1,
    })
  let plannedUpTo = 0
  const plan = createPlanInBatches(context, {
    canBegin: isListed,
    *batches() {
      plannedUpTo = yield* planLookup(context, where.id, { ...feed, lookup }, plannedUpTo)
    },
  })
  const source = createKeySource(context, feed, evidence, {
    where,
    list: id,
    lane: 'items',
    everyRound: true,
    isReady: plan.isReady,
    // Rows older than `sync.since` are not stored here. The list brings them when the bound is lifted.
    isWanted: ({ cells }) => since === null || String(cells[timeIndex] ?? since) >= since,
    found(task, entry) {
      // In the first round nothing that an activity names has come late.
      if (entry && context.rounds.wasComplete(resource)) noteArrivals(context, list, [entry])
      readLater(task)
    },
    missing: readLater,
  })
  return { ...source, replan: plan.invalidate }
}

/** The waits for a row that no list shows. */
const HIDDEN = { firstMs: DAY_MS, mostMs: MONTH_MS }

/** Plans look-ups for the other table's rows since the last plan. Returns the highest `_id` of that table. */
function* planLookup(
  { store }: EngineContext,
  id: string,
  { table, lookup, evidence }: TimelineFeed & { lookup: NonNullable<TimelineFeed['lookup']> },
  after: number,
): Generator<undefined, number, undefined> {
  const { lookupTasks, tasks, dueClock } = store
  const upTo = store.stored.newestId(lookup.table)
  lookupTasks.removeSettled(id, table, lookup)
  yield* byRange(after, upTo, range => {
    for (const key of lookupTasks.unknownKeys(table, lookup, range)) {
      if (!isAskable(evidence, key)) continue
      const task = { feed: id, key, dueAt: dueClock.after(0) }
      // The first plan of a session sees the rows of earlier ones too. Later plans see new rows only.
      if (after === 0) tasks.add(task)
      else tasks.demand(task)
    }
  })
  return upTo
}
