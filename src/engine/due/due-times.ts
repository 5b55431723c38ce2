import { HOUR_MS, isoInstant, MINUTE_MS } from '../../base/clock.ts'
import type { DeclaredFeed, ListFeed } from '../../catalog/feeds.ts'
import type { Segment } from '../../store/sync/segments.ts'
import type { EngineContext } from '../context/context.ts'
import { auditIntervalFrom, passInterval, scaled, usualIntervalMs } from '../context/intervals.ts'
import type { Schedule } from '../context/schedule.ts'
import { confirmAfterMs } from '../deletions/denial.ts'
import { confirmingReadMs } from '../deletions/recheck.ts'
import { isDueInRound, isFuture, isHead, isNewEnough } from './segment-conditions.ts'

/** What the due time of a segment depends on, next to the segment itself. Times are in ms by the API's clock. */
export interface DueFacts {
  now: number
  /** The time from one pass to the next. In a backfill: -Infinity until the round has read the segment, then Infinity. */
  intervalMs: number
  /** False when the segment lies entirely before `sync.since`. */
  isNewEnough: boolean
  /** After failures, the segment is not read before this time. */
  retryAt?: number | undefined
  /** A want makes the segment due at this time, before its interval is over. */
  wantedAt?: number | undefined
  /** For a suspected document: when a read can confirm its deletion. The document is not read before that. */
  confirmAt?: number | undefined
}

/** When a segment is read next. Pure. @returns -Infinity for at once, Infinity for never */
export function dueAt(
  { closed, listedAt, passStartedAt, unavailableSince }: DueSegment,
  facts: DueFacts,
): number {
  const { intervalMs, isNewEnough, wantedAt = Number.POSITIVE_INFINITY, confirmAt } = facts
  const { retryAt = Number.NEGATIVE_INFINITY } = facts
  if (!isNewEnough) return Number.POSITIVE_INFINITY
  if (closed) return Math.max(retryAt, wantedAt)
  if (confirmAt !== undefined) return Math.max(retryAt, confirmAt)
  const isUnread = listedAt === null || passStartedAt !== null || unavailableSince !== null
  if (isUnread || isInFuture(listedAt, facts.now)) return retryAt
  return Math.max(retryAt, Math.min(Date.parse(listedAt) + intervalMs, wantedAt))
}

type DueSegment = Pick<Segment, 'closed' | 'listedAt' | 'passStartedAt' | 'unavailableSince'>

/** True when a clock that was ahead stored this time. Without this check, the list would not be read until then. */
const isInFuture = (listedAt: string, now: number): boolean => Date.parse(listedAt) > now + MINUTE_MS

/** How often the rows that are dated in the future are listed. */
const FUTURE = HOUR_MS

/**
 * In the daemon, lists fall due at intervals, and single reads at the time stored in their task. In a backfill, each list
 * and key is due once in each round. The run also waits for reads that fall due soon enough to confirm a deletion, and
 * leaves later ones to the next run.
 * @param pollMs how often the newest rows are listed; undefined in a backfill
 */
export function createSchedule(context: EngineContext, pollMs?: number): Schedule {
  const { store, server, options, backoffs } = context
  const isTimed = pollMs !== undefined
  const roundOf = ({ resource }: Pick<DeclaredFeed, 'resource'>) => context.rounds.number(resource)
  const intervalMs = (list: DeclaredFeed<ListFeed>, segment: Segment) => {
    const { feed } = list
    if (!isTimed)
      return isDueInRound(segment, roundOf(list)) ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY
    if (feed.mode === 'snapshot')
      return passInterval(scaled(usualIntervalMs(feed), options), segment, options)
    if (feed.mode !== 'timeline') return scaled(usualIntervalMs(feed), options)
    if (isFuture(segment, server.now())) return scaled(FUTURE, options)
    if (isHead(segment, server.now()) || segment.to === null) return pollMs
    const listedAt = segment.listedAt === null ? server.now() : Date.parse(segment.listedAt)
    return auditIntervalFrom(listedAt - Date.parse(segment.to), options)
  }
  const factsOf = (list: DeclaredFeed<ListFeed>, segment: Segment): DueFacts => {
    const now = server.now()
    const confirmMs = confirmingReadMs(context, list)
    const { retryAt, wantedAt } = segment
    const until = (dueAt: string | null) => (dueAt === null ? undefined : now + store.dueClock.waitMs(dueAt))
    return {
      now,
      intervalMs: intervalMs(list, segment),
      isNewEnough: isNewEnough(list, segment, options),
      retryAt: until(retryAt),
      wantedAt: until(wantedAt),
      confirmAt: confirmMs === undefined ? undefined : now + confirmMs,
    }
  }
  const untilMs = (dueAt: string | undefined) =>
    dueAt === undefined ? Number.POSITIVE_INFINITY : store.dueClock.waitMs(dueAt)
  const isAwaited = (ms: number) => isTimed || ms <= confirmAfterMs(context)

  return {
    waitMs(list, segment) {
      const facts = factsOf(list, segment)
      const ownMs = Math.max(0, dueAt(segment, facts) - facts.now)
      if (!isAwaited(ownMs)) return Number.POSITIVE_INFINITY
      const tryMs = segment.tryAt === null ? 0 : store.dueClock.waitMs(segment.tryAt)
      return Math.max(backoffs.waitMs(list.id, segment.scope), ownMs, tryMs)
    },
    intervalMs,
    overdue(list, segment) {
      if (!isTimed) return 0
      const { listedAt } = segment
      const facts = factsOf(list, segment)
      if (listedAt === null || isInFuture(listedAt, facts.now)) return Number.POSITIVE_INFINITY
      const dueAgainAt = Math.min(
        Date.parse(listedAt) + facts.intervalMs,
        facts.wantedAt ?? Number.POSITIVE_INFINITY,
      )
      return Math.max(0, facts.now - dueAgainAt) / facts.intervalMs
    },
    laneOf(list, segment) {
      if (!isTimed || list.feed.mode !== 'timeline')
        return context.rounds.wasComplete(list.resource) ? 'audit' : 'history'
      if (!segment || segment.listedAt === null) return 'history'
      if (isHead(segment, server.now())) return 'head'
      // A pass in progress without a cursor is the unread rest of a pass that was cut or restarted.
      const isRest = segment.passStartedAt !== null && segment.cursor === null
      return isRest ? 'history' : 'audit'
    },
    dueTasks(query) {
      const now = store.dueClock.now()
      return isTimed
        ? store.tasks.dueBy({ ...query, now })
        : store.tasks.due({ ...query, round: roundOf(query), now })
    },
    tasksWaitMs({ feed, ...query }) {
      const now = store.dueClock.now()
      if (isTimed) return untilMs(store.tasks.nextDue(feed, { ...query, now }))
      const round = roundOf(query)
      if (store.tasks.due({ ...query, feed, round, now, limit: 1 }).length > 0) return 0
      const upTo = isoInstant(Date.parse(now) + confirmAfterMs(context))
      return untilMs(store.tasks.nextInRun(feed, { ...query, now, upTo }))
    },
    isLong: segment =>
      isTimed &&
      isHead(segment, server.now()) &&
      segment.passStartedAt !== null &&
      server.now() - Date.parse(segment.passStartedAt) > pollMs,
    isAwaited: ({ listedAt, to }) =>
      !isTimed || listedAt === null || (to !== null && listedAt < to && Date.parse(to) <= server.now()),
    isTimed,
    // Keys that fall due during a batch alternate with its keys in the daemon, so its batches are short.
    batchSize: isTimed ? 100 : 2000,
  }
}
