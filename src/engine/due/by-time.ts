import type { DeclaredFeed, ListFeed } from '../../catalog/feeds.ts'
import type { Segment } from '../../store/sync/segments.ts'
import type { EngineContext } from '../context/context.ts'
import { auditInterval, MINUTE, passInterval, scaled, usualIntervalMs } from '../context/intervals.ts'
import type { Schedule } from '../context/schedule.ts'
import { confirmingReadMs, recheckAt } from '../deletions/recheck.ts'
import { isNewEnough, putOffMs } from './segment-conditions.ts'

/** The schedule of the daemon: lists fall due at intervals, single reads at the time stored in their task. */
export function byTime(context: EngineContext, { pollMs }: { pollMs: number }): Schedule {
  const { store, server, options, backoffs } = context
  const intervalMs = ({ feed }: DeclaredFeed<ListFeed>, segment: Segment) => {
    if (feed.mode === 'snapshot')
      return passInterval(scaled(usualIntervalMs(feed), options), segment, options)
    if (feed.mode !== 'timeline') return scaled(usualIntervalMs(feed), options)
    if (segment.to === null) return pollMs
    return scaled(auditInterval(server.now() - Date.parse(segment.to)), options)
  }
  /** By the server's clock, in ms. */
  const dueAgainAt = (list: DeclaredFeed<ListFeed>, segment: Segment, listedAt: string): number =>
    Math.min(
      Date.parse(listedAt) + intervalMs(list, segment),
      recheckAt(context, list, segment) ?? Number.POSITIVE_INFINITY,
    )
  /** True when a clock that was ahead stored this time. Without this check, the list would not be read until then. */
  const isInFuture = (listedAt: string) => Date.parse(listedAt) > server.now() + MINUTE
  /** How long until a segment is due, in ms, regardless of its feed's backoff. */
  const ownWaitMs = (list: DeclaredFeed<ListFeed>, segment: Segment): number => {
    const { closed, listedAt, listedRound, passStartedAt, unavailableSince, to } = segment
    if (closed || !isNewEnough(list, segment, options)) return Number.POSITIVE_INFINITY
    const putOff = putOffMs(segment, context)
    const confirmMs = confirmingReadMs(context, list)
    if (putOff > 0 || confirmMs !== undefined) return Math.max(putOff, confirmMs ?? 0)
    if (listedAt === null || passStartedAt !== null || unavailableSince !== null) return 0
    if (isInFuture(listedAt)) return 0
    // A failed scope is due as soon as its backoff ends: the round may end without it, but the resource stays failing.
    if (backoffs.hasFailed(list.id, segment.scope)) return 0
    const isUrgent =
      (list.feed.mode !== 'timeline' || to === null) && context.demandedLists.isDemanded(list.id, segment.id)
    const isUnconfirmed =
      context.rounds.isConfirming(list.resource) && listedRound < context.rounds.number(list.resource)
    if (isUrgent || isUnconfirmed) return 0
    return Math.max(0, dueAgainAt(list, segment, listedAt) - server.now())
  }

  return {
    waitMs: (list, segment) => Math.max(backoffs.waitMs(list.id, segment.scope), ownWaitMs(list, segment)),
    intervalMs,
    overdue(list, segment) {
      const { listedAt } = segment
      if (listedAt === null || isInFuture(listedAt)) return Number.POSITIVE_INFINITY
      const lateMs = server.now() - dueAgainAt(list, segment, listedAt)
      return lateMs > 0 ? lateMs / intervalMs(list, segment) : 0
    },
    laneOf(list, segment) {
      if (list.feed.mode !== 'timeline')
        return context.rounds.wasComplete(list.resource) ? 'audit' : 'history'
      if (!segment || segment.listedAt === null) return 'history'
      if (segment.to === null) return 'head'
      // A pass in progress without a cursor is the unread rest of a pass that was cut or restarted.
      const isRest = segment.passStartedAt !== null && segment.cursor === null
      return isRest ? 'history' : 'audit'
    },
    dueTasks: query => store.tasks.dueBy({ ...query, now: store.dueClock.now() }),
    isLong: ({ to, passStartedAt }) =>
      to === null && passStartedAt !== null && server.now() - Date.parse(passStartedAt) > pollMs,
    isAwaited: ({ listedAt, to }) => listedAt === null || (to !== null && listedAt < to),
    isTimed: true,
    // Keys that fall due during a batch alternate with its keys, so batches are short.
    batchSize: 100,
  }
}
