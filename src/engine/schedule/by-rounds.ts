import type { EngineContext } from '../context.ts'
import { isRecheckDue } from '../deletions/recheck.ts'
import type { Schedule } from './schedule.ts'
import { isDueInRound, isWanted, putOffMs } from './wanted.ts'

/** In a backfill everything is due that this round has not seen yet, and the run ends when nothing is. */
export function byRounds(context: EngineContext): Schedule {
  const { store } = context
  return {
    isListDue: (list, segment) =>
      isWanted(list, segment, context.options) &&
      putOffMs(segment, context) === 0 &&
      (isDueInRound(segment, context.round(list.resource)) || isRecheckDue(context, list, segment)),
    dueAt: () => context.now(),
    intervalMs: () => Number.POSITIVE_INFINITY,
    overdue: () => 0,
    laneOf: ({ resource }) => (context.wasComplete(resource) ? 'audit' : 'history'),
    dueTasks: ({ resource, ...query }) =>
      store.tasks.due({ ...query, round: context.round(resource), now: context.now() }),
    isLong: () => false,
    isAwaited: () => true,
    isTimed: false,
    batchSize: 2000,
  }
}
