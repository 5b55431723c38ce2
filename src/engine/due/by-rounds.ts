import type { EngineContext } from '../context/context.ts'
import type { Schedule } from '../context/schedule.ts'
import { confirmingReadMs } from '../deletions/recheck.ts'
import { isDueInRound, isNewEnough } from './segment-conditions.ts'

/** The schedule of a backfill: each list and key is due once per round, and the run ends when none is left. */
export function byRounds(context: EngineContext): Schedule {
  const { store, backoffs } = context
  const hasCome = (dueAt: string | null) => dueAt !== null && store.dueClock.waitMs(dueAt) === 0
  const isOver = (waitsUntil: string | null) => waitsUntil === null || hasCome(waitsUntil)
  return {
    waitMs(list, segment) {
      if (backoffs.isWaiting(list.id, segment.scope)) return Number.POSITIVE_INFINITY
      const confirmMs = confirmingReadMs(context, list)
      const isDue =
        confirmMs === undefined
          ? isNewEnough(list, segment, context.options) &&
            isOver(segment.retryAt) &&
            (isDueInRound(segment, context.rounds.number(list.resource)) || hasCome(segment.wantedAt))
          : confirmMs === 0
      return isDue && isOver(segment.tryAt) ? 0 : Number.POSITIVE_INFINITY
    },
    intervalMs: () => Number.POSITIVE_INFINITY,
    overdue: () => 0,
    laneOf: ({ resource }) => (context.rounds.wasComplete(resource) ? 'audit' : 'history'),
    dueTasks: ({ resource, ...query }) =>
      store.tasks.due({ ...query, round: context.rounds.number(resource), now: store.dueClock.now() }),
    isLong: () => false,
    isAwaited: () => true,
    isTimed: false,
    batchSize: 2000,
  }
}
