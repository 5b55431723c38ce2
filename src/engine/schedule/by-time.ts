import { isoInstant } from '../../clock.ts'
import type { Segment } from '../../store/sync/segments.ts'
import type { EngineContext } from '../context.ts'
import { recheckAt } from '../deletions/recheck.ts'
import { auditInterval, MINUTE, passInterval, scaled, usualIntervalMs } from './intervals.ts'
import type { ListOf, Schedule } from './schedule.ts'
import { isWanted, putOffMs } from './wanted.ts'

/** In the daemon lists fall due at intervals, and single reads at the time that was noted when they were put off. */
export function byTime(context: EngineContext, { pollMs }: { pollMs: number }): Schedule {
  const { store, server, options } = context
  const intervalMs = ({ feed }: ListOf, segment: Segment) => {
    if (feed.mode === 'snapshot')
      return passInterval(scaled(usualIntervalMs(feed), options), segment, options)
    if (feed.mode !== 'timeline') return scaled(usualIntervalMs(feed), options)
    if (segment.to === null) return pollMs
    return scaled(auditInterval(server.now() - Date.parse(segment.to)), options)
  }
  /** By the server's clock, in ms. */
  const dueAgainAt = (list: ListOf, segment: Segment, listedAt: string): number =>
    Math.min(
      Date.parse(listedAt) + intervalMs(list, segment),
      recheckAt(context, list, segment) ?? Number.POSITIVE_INFINITY,
    )
  /** Noted by a clock that was ahead, it would else not be listed before that time has come. */
  const isOfTheFuture = (listedAt: string) => Date.parse(listedAt) > server.now() + MINUTE
  /** 0 when it is due, infinite when it never is. */
  const waitMs = (list: ListOf, segment: Segment): number => {
    const { closed, listedAt, listedRound, passStartedAt, unavailableSince, to } = segment
    if (closed || !isWanted(list, segment, options)) return Number.POSITIVE_INFINITY
    const putOff = putOffMs(segment, context)
    if (putOff > 0) return putOff
    // The backoff of a feed that is not offered is kept elsewhere.
    if (listedAt === null || passStartedAt !== null || unavailableSince !== null) return 0
    if (isOfTheFuture(listedAt)) return 0
    const isDemanded = context.demandedLists.has(list.id) && (list.feed.mode !== 'timeline' || to === null)
    const confirming = context.isConfirming(list.resource) && listedRound < context.round(list.resource)
    if (isDemanded || confirming) return 0
    return Math.max(0, dueAgainAt(list, segment, listedAt) - server.now())
  }

  return {
    isListDue: (list, segment) => waitMs(list, segment) === 0,
    dueAt(list, segment) {
      const ms = waitMs(list, segment)
      return Number.isFinite(ms) ? isoInstant(context.clock.now() + ms) : undefined
    },
    intervalMs,
    overdue(list, segment) {
      const { listedAt } = segment
      if (listedAt === null || isOfTheFuture(listedAt)) return Number.POSITIVE_INFINITY
      const lateMs = server.now() - dueAgainAt(list, segment, listedAt)
      return lateMs > 0 ? lateMs / intervalMs(list, segment) : 0
    },
    laneOf(list, segment) {
      if (list.feed.mode !== 'timeline') return context.wasComplete(list.resource) ? 'audit' : 'history'
      if (!segment || segment.listedAt === null) return 'history'
      if (segment.to === null) return 'head'
      // Begun without a cursor, it is the rest of a pass from the newest end that was cut.
      const isRest = segment.passStartedAt !== null && segment.cursor === null
      return isRest ? 'history' : 'audit'
    },
    dueTasks: query => store.tasks.dueBy({ ...query, now: context.now() }),
    isLong: ({ to, passStartedAt }) =>
      to === null && passStartedAt !== null && server.now() - Date.parse(passStartedAt) > pollMs,
    isAwaited: ({ listedAt, to }) => listedAt === null || (to !== null && listedAt < to),
    isTimed: true,
    // Taken newest first, so that what comes in meanwhile does not wait behind much.
    batchSize: 100,
  }
}
