import type { DeclaredFeed, ListFeed } from '../../catalog/feeds.ts'
import type { ResourceState } from '../../store/sync/resource-state.ts'
import type { Segment } from '../../store/sync/segments.ts'
import type { EngineContext } from '../context/context.ts'
import type { TaskQuery } from '../context/job.ts'
import type { Schedule } from '../context/schedule.ts'
import { confirmingReadMs } from '../deletions/recheck.ts'
import { isDueInRound, isNewEnough } from './segment-conditions.ts'

/** The schedule of a backfill: each list and key is due once per round, and the run ends when none is left. */
export function byRounds(context: EngineContext): Schedule {
  const { store, backoffs } = context
  const hasCome = (dueAt: string | null) => dueAt !== null && store.dueClock.waitMs(dueAt) === 0
  const isDue = (list: DeclaredFeed<ListFeed>, segment: Segment): boolean => {
    if (backoffs.isWaiting(list.id, segment.scope)) return false
    const confirmMs = confirmingReadMs(context, list)
    if (confirmMs !== undefined) return confirmMs === 0
    return (
      isNewEnough(list, segment, context.options) &&
      (segment.retryAt === null || hasCome(segment.retryAt)) &&
      (isDueInRound(segment, context.rounds.number(list.resource)) || hasCome(segment.wantedAt))
    )
  }
  const dueTasks = ({ resource, ...query }: TaskQuery) =>
    store.tasks.due({ ...query, round: context.rounds.number(resource), now: store.dueClock.now() })
  return {
    waitMs(list, segment) {
      if (!isDue(list, segment)) return Number.POSITIVE_INFINITY
      return segment.tryAt === null ? 0 : store.dueClock.waitMs(segment.tryAt)
    },
    intervalMs: () => Number.POSITIVE_INFINITY,
    overdue: () => 0,
    laneOf: ({ resource }) => (context.rounds.wasComplete(resource) ? 'audit' : 'history'),
    dueTasks,
    tasksWaitMs(query) {
      if (dueTasks({ ...query, limit: 1, first: 'newest' }).length > 0) return 0
      const tryAt = store.tasks.nextTry(query.feed, { ...query, now: store.dueClock.now() })
      return tryAt === undefined ? Number.POSITIVE_INFINITY : store.dueClock.waitMs(tryAt)
    },
    isLong: () => false,
    isAwaited: () => true,
    isTimed: false,
    batchSize: 2000,
  }
}

type StoredRound = Pick<ResourceState, 'roundOpen' | 'roundStartedAt'>

/** When the earliest open round began. An interrupted backfill leaves rounds open. Undefined when none is open. */
export function interruptedSince(rounds: readonly StoredRound[]): string | undefined {
  return rounds.flatMap(({ roundOpen, roundStartedAt }) => (roundOpen && roundStartedAt) || []).sort()[0]
}

/** Whether an interrupted backfill has begun this round. The next backfill then begins no other for the resource. */
export function isContinued({ roundOpen, roundStartedAt }: StoredRound, since: string | undefined): boolean {
  return roundOpen || (since !== undefined && roundStartedAt !== null && roundStartedAt >= since)
}
