import { isoInstant } from '../../base/clock.ts'
import type { DeclaredFeed, ListFeed } from '../../catalog/feeds.ts'
import type { Segment } from '../../store/sync/segments.ts'
import type { EngineContext } from '../context/context.ts'
import type { TaskQuery } from '../context/job.ts'
import type { Schedule } from '../context/schedule.ts'
import { confirmAfterMs } from '../deletions/denial.ts'
import { confirmingReadMs } from '../deletions/recheck.ts'
import { isDueInRound, isNewEnough } from './segment-conditions.ts'

/**
 * The schedule of a backfill: each list and key is due once per round, and the run ends when none is left. A read that
 * may confirm a deletion is due minutes after the denial, and the run waits for it.
 */
export function byRounds(context: EngineContext): Schedule {
  const { store, backoffs } = context
  /** A wait for a later time is left to the next run, unless a read then may confirm a deletion. */
  const ifAwaited = (ms: number) => (ms <= confirmAfterMs(context) ? ms : Number.POSITIVE_INFINITY)
  const untilMs = (dueAt: string | null) => (dueAt === null ? 0 : store.dueClock.waitMs(dueAt))
  const dueMs = (list: DeclaredFeed<ListFeed>, segment: Segment): number => {
    if (backoffs.isWaiting(list.id, segment.scope)) return Number.POSITIVE_INFINITY
    const confirmMs = confirmingReadMs(context, list)
    if (confirmMs !== undefined) return confirmMs
    if (!isNewEnough(list, segment, context.options) || untilMs(segment.retryAt) > 0)
      return Number.POSITIVE_INFINITY
    if (isDueInRound(segment, context.rounds.number(list.resource))) return 0
    return segment.wantedAt === null ? Number.POSITIVE_INFINITY : ifAwaited(untilMs(segment.wantedAt))
  }
  const dueTasks = ({ resource, ...query }: TaskQuery) =>
    store.tasks.due({ ...query, round: context.rounds.number(resource), now: store.dueClock.now() })
  return {
    waitMs: (list, segment) => Math.max(dueMs(list, segment), untilMs(segment.tryAt)),
    intervalMs: () => Number.POSITIVE_INFINITY,
    overdue: () => 0,
    laneOf: ({ resource }) => (context.rounds.wasComplete(resource) ? 'audit' : 'history'),
    dueTasks,
    tasksWaitMs(query) {
      if (dueTasks({ ...query, limit: 1, first: 'newest' }).length > 0) return 0
      const now = store.dueClock.now()
      const upTo = isoInstant(Date.parse(now) + confirmAfterMs(context))
      const dueAt = store.tasks.nextInRun(query.feed, { ...query, now, upTo })
      return dueAt === undefined ? Number.POSITIVE_INFINITY : store.dueClock.waitMs(dueAt)
    },
    isLong: () => false,
    isAwaited: () => true,
    isTimed: false,
    batchSize: 2000,
  }
}
