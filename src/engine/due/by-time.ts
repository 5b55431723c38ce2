import { HOUR_MS, MINUTE_MS } from '../../base/clock.ts'
import type { DeclaredFeed, ListFeed } from '../../catalog/feeds.ts'
import type { Segment } from '../../store/sync/segments.ts'
import type { EngineContext } from '../context/context.ts'
import { auditIntervalFrom, passInterval, scaled, usualIntervalMs } from '../context/intervals.ts'
import type { Schedule } from '../context/schedule.ts'
import { confirmingReadMs } from '../deletions/recheck.ts'
import { isFuture, isHead, isNewEnough } from './segment-conditions.ts'

/** What the due time of a segment depends on, next to the segment itself. Times are in ms by the API's clock. */
export interface DueFacts {
  now: number
  /** The time from one pass to the next. */
  intervalMs: number
  /** False when the segment lies entirely before `sync.since`. */
  isNewEnough: boolean
  /** After failures, the segment is not read before these times. */
  retryAt?: number | undefined
  tryAt?: number | undefined
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
  const { retryAt = Number.NEGATIVE_INFINITY, tryAt = Number.NEGATIVE_INFINITY } = facts
  const earliest = Math.max(retryAt, tryAt)
  if (!isNewEnough) return Number.POSITIVE_INFINITY
  if (closed) return Math.max(earliest, wantedAt)
  if (confirmAt !== undefined) return Math.max(earliest, confirmAt)
  const isUnread = listedAt === null || passStartedAt !== null || unavailableSince !== null
  if (isUnread || isInFuture(listedAt, facts.now)) return earliest
  return Math.max(earliest, Math.min(Date.parse(listedAt) + intervalMs, wantedAt))
}

type DueSegment = Pick<Segment, 'closed' | 'listedAt' | 'passStartedAt' | 'unavailableSince'>

/** True when a clock that was ahead stored this time. Without this check, the list would not be read until then. */
const isInFuture = (listedAt: string, now: number): boolean => Date.parse(listedAt) > now + MINUTE_MS

/** How often the rows that are dated in the future are listed. */
const FUTURE = HOUR_MS

/** The schedule of the daemon: lists fall due at intervals, single reads at the time stored in their task. */
export function byTime(context: EngineContext, { pollMs }: { pollMs: number }): Schedule {
  const { store, server, options, backoffs } = context
  const intervalMs = ({ feed }: DeclaredFeed<ListFeed>, segment: Segment) => {
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
    const { retryAt, tryAt, wantedAt } = segment
    const until = (dueAt: string | null) => (dueAt === null ? undefined : now + store.dueClock.waitMs(dueAt))
    return {
      now,
      intervalMs: intervalMs(list, segment),
      isNewEnough: isNewEnough(list, segment, options),
      retryAt: until(retryAt),
      tryAt: until(tryAt),
      wantedAt: until(wantedAt),
      confirmAt: confirmMs === undefined ? undefined : now + confirmMs,
    }
  }
  /** How long until a segment is due, in ms, regardless of its feed's backoff. */
  const ownWaitMs = (list: DeclaredFeed<ListFeed>, segment: Segment): number => {
    const facts = factsOf(list, segment)
    return Math.max(0, dueAt(segment, facts) - facts.now)
  }

  return {
    waitMs: (list, segment) => Math.max(backoffs.waitMs(list.id, segment.scope), ownWaitMs(list, segment)),
    intervalMs,
    overdue(list, segment) {
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
      if (list.feed.mode !== 'timeline')
        return context.rounds.wasComplete(list.resource) ? 'audit' : 'history'
      if (!segment || segment.listedAt === null) return 'history'
      if (isHead(segment, server.now())) return 'head'
      // A pass in progress without a cursor is the unread rest of a pass that was cut or restarted.
      const isRest = segment.passStartedAt !== null && segment.cursor === null
      return isRest ? 'history' : 'audit'
    },
    dueTasks: query => store.tasks.dueBy({ ...query, now: store.dueClock.now() }),
    tasksWaitMs({ feed, ...query }) {
      const dueAt = store.tasks.nextDue(feed, { ...query, now: store.dueClock.now() })
      return dueAt === undefined ? Number.POSITIVE_INFINITY : store.dueClock.waitMs(dueAt)
    },
    isLong: segment =>
      isHead(segment, server.now()) &&
      segment.passStartedAt !== null &&
      server.now() - Date.parse(segment.passStartedAt) > pollMs,
    isAwaited: ({ listedAt, to }) =>
      listedAt === null || (to !== null && listedAt < to && Date.parse(to) <= server.now()),
    isTimed: true,
    // Keys that fall due during a batch alternate with its keys, so batches are short.
    batchSize: 100,
  }
}
