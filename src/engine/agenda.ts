import { isoInstant } from '../clock.ts'
import type { Feed, ItemFeed, ResourceName, TimelineFeed } from '../resource.ts'
import type { Segment } from '../store/ledger.ts'
import type { Task } from '../store/tasks.ts'
import type { EngineContext, EngineOptions } from './context.ts'
import { isRecheckDue, recheckAt } from './deletions/recheck.ts'
import { HOUR, MINUTE, scaled, WEEK } from './intervals.ts'
import type { Lane } from './job.ts'

/** What falls due and when: once in each round of a backfill, by time in the daemon. */
export interface Agenda {
  isListDue(list: ListOf, segment: Segment): boolean
  /** When a list falls due, by this machine's clock; undefined when it never does. Meaningful where it is timed. */
  dueAt(list: ListOf, segment: Segment): string | undefined
  /** How long after one pass the next begins, in ms. Meaningful where it is timed. */
  intervalMs(list: ListOf, segment: Segment): number
  /** A document that was never read has no segment. */
  laneOf(list: ListOf, segment: Segment | undefined): Exclude<Lane, 'retry'>
  dueTasks(query: TaskQuery): Task[]
  /** True while a walk from the newest end has taken so long that the rest must not make the head stale. */
  isLong(segment: Segment): boolean
  /** True when somebody waits for what the segment will bring, which is new then. */
  isAwaited(segment: Segment): boolean
  /** True in the daemon: what was read falls due again by time, whatever the round. */
  isTimed: boolean
  /** How many keys are taken from the database at a time, so that a million pending rows cost no memory. */
  lot: number
}

export interface ListOf {
  resource: ResourceName
  /** `resource.feed` */
  id: string
  feed: Exclude<Feed, ItemFeed>
}

export interface TaskQuery {
  resource: ResourceName
  feed: string
  /** In a backfill: all of them again in each round; else only what waits for the API or is due. */
  everyRound: boolean
  since: string | null
  limit: number
  /** Scopes that cannot be asked for now. */
  exceptScopes?: readonly string[]
  /** Pattern of SQLite's GLOB that the keys have to match. */
  keys?: string
}

/** In a backfill everything is due that this round has not seen yet, and the run ends when nothing is. */
export function byRounds(context: EngineContext): Agenda {
  const { store } = context
  return {
    isListDue: (list, segment) =>
      isWanted(list, segment, context.options) &&
      putOffMs(segment, context) === 0 &&
      (isDueInRound(segment, context.round(list.resource)) || isRecheckDue(context, list, segment)),
    dueAt: () => context.now(),
    intervalMs: () => Number.POSITIVE_INFINITY,
    laneOf: ({ resource }) => (context.wasComplete(resource) ? 'audit' : 'history'),
    dueTasks: ({ resource, ...query }) =>
      store.tasks.due({ ...query, round: context.round(resource), now: context.now() }),
    isLong: () => false,
    isAwaited: () => true,
    isTimed: false,
    lot: 2000,
  }
}

export function isDueInRound({ closed, listedRound }: Segment, round: number): boolean {
  return !closed && listedRound < round
}

/** How far ahead a due time may lie, in ms: a week, or what a retry may wait where the owner has shortened that. */
export function longestWaitMs(options: Pick<EngineOptions, 'intervalScale'>): number {
  return Math.max(scaled(WEEK, options), HOUR)
}

/** How long until what could not be read is asked for again, in ms. */
function putOffMs({ retryAt }: Segment, { clock, options }: EngineContext): number {
  const waitMs = retryAt === null ? 0 : Math.max(0, Date.parse(retryAt) - clock.now())
  // A longer one was noted by a clock that was far ahead.
  return waitMs <= longestWaitMs(options) ? waitMs : 0
}

/** What lies before the owner's bound is not read. */
export function isWanted(
  { feed }: Pick<ListOf, 'feed'>,
  { to }: Segment,
  { since }: Pick<EngineOptions, 'since'>,
): boolean {
  return feed.mode !== 'timeline' || since === null || to === null || to > since
}

/** In the daemon lists fall due at intervals, and single reads at the time that was noted when they were put off. */
export function byTime(context: EngineContext, { pollMs }: { pollMs: number }): Agenda {
  const { store, server, options } = context
  const intervalMs = ({ feed }: ListOf, segment: Segment) => {
    if (feed.mode === 'snapshot')
      return passInterval(scaled(usualIntervalMs(feed), options), segment, options)
    if (feed.mode !== 'timeline') return scaled(usualIntervalMs(feed), options)
    if (segment.to === null) return pollMs
    return scaled(auditInterval(server.now() - Date.parse(segment.to)), options)
  }
  /** 0 when it is due, infinite when it never is. */
  const waitMs = (list: ListOf, segment: Segment): number => {
    const { closed, listedAt, listedRound, passStartedAt, unavailableSince, to } = segment
    if (closed || !isWanted(list, segment, options)) return Number.POSITIVE_INFINITY
    const putOff = putOffMs(segment, context)
    if (putOff > 0) return putOff
    // What is not offered is held elsewhere, for as long as it is left alone.
    if (listedAt === null || passStartedAt !== null || unavailableSince !== null) return 0
    // Noted by a clock that was ahead, it would else not be listed before that time has come.
    if (Date.parse(listedAt) > server.now() + MINUTE) return 0
    const wished = context.wishes.has(list.id) && (list.feed.mode !== 'timeline' || to === null)
    const confirming = context.isConfirming(list.resource) && listedRound < context.round(list.resource)
    if (wished || confirming) return 0
    const recheck = recheckAt(context, list, segment) ?? Number.POSITIVE_INFINITY
    return Math.max(0, Math.min(Date.parse(listedAt) + intervalMs(list, segment), recheck) - server.now())
  }

  return {
    isListDue: (list, segment) => waitMs(list, segment) === 0,
    dueAt(list, segment) {
      const ms = waitMs(list, segment)
      return Number.isFinite(ms) ? isoInstant(context.clock.now() + ms) : undefined
    },
    intervalMs,
    laneOf(list, segment) {
      if (list.feed.mode !== 'timeline') return context.wasComplete(list.resource) ? 'audit' : 'history'
      if (!segment || segment.listedAt === null) return 'history'
      if (segment.to === null) return 'head'
      // Begun without a cursor, it is the rest of a walk from the newest end that was cut.
      const isRest = segment.passStartedAt !== null && segment.cursor === null
      return isRest ? 'history' : 'audit'
    },
    dueTasks: query => store.tasks.dueBy({ ...query, now: context.now() }),
    isLong: ({ to, passStartedAt }) =>
      to === null && passStartedAt !== null && server.now() - Date.parse(passStartedAt) > pollMs,
    isAwaited: ({ listedAt, to }) => listedAt === null || (to !== null && listedAt < to),
    isTimed: true,
    // Taken newest first, so that what comes in meanwhile does not wait behind much.
    lot: 100,
  }
}

/**
 * When a span of event time is listed again: an eighth of its age, so that what appears late is found the sooner the
 * younger it is, and at most a week. Pure. Both in ms.
 */
export function auditInterval(ageMs: number): number {
  return Math.min(Math.max(ageMs / 8, SHORTEST_AUDIT_MS), WEEK)
}

const SHORTEST_AUDIT_MS = 5 * MINUTE

/** Passes over the whole of a list take no more of the time than this. */
const MOST_SHARE = 1 / 20

/** How long after one pass over a whole list the next begins: the longer the pass took, the longer; in ms. Pure. */
export function passInterval(
  usualMs: number,
  { passMs }: Pick<Segment, 'passMs'>,
  options: Pick<EngineOptions, 'intervalScale'>,
): number {
  return Math.max(usualMs, Math.min((passMs ?? 0) / MOST_SHARE, scaled(WEEK, options)))
}

type ListFeed = Exclude<Feed, TimelineFeed | ItemFeed>

/** How often what has no order of time is read as a whole, in ms, unless the feed says otherwise. */
const LIST_INTERVALS: Readonly<Record<ListFeed['mode'], number>> = {
  snapshot: 6 * HOUR,
  periodic: HOUR,
  singleton: 6 * HOUR,
}

/** In ms, without the owner's scale. */
export function usualIntervalMs(feed: ListFeed): number {
  return (feed.mode === 'snapshot' ? feed.every : undefined) ?? LIST_INTERVALS[feed.mode]
}
