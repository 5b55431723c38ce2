import type { DeclaredFeed, ListFeed } from '../../catalog/feeds.ts'
import type { Segment } from '../../store/sync/segments.ts'
import type { EngineContext } from '../context/context.ts'
import type { Job, Lane, Source } from '../context/job.ts'
import { dueSegments, listWaitMs } from '../due/due.ts'
import { createSegmentTurns } from '../due/overload-order.ts'
import { FAILURES_OF_ONE_PAGE } from './narrowing.ts'
import { createPageGuard, type PageGuard } from './page-guard.ts'

/**
 * The sources of all lists. A list is read in segments: spans of event time, periods, scopes or one for the whole list.
 * This file chooses the next due segment, tracks the requests under way and decides when to look again, for every mode.
 * A mode says which segments there are, what a request for a segment asks, and what its outcome means.
 */
export interface ListMode {
  list: DeclaredFeed<ListFeed>
  /** Set where each segment has its own lane. By default the list has one lane, given by the schedule. */
  lanes?: readonly Lane[]
  /** True when one request is made at a time. */
  isOneByOne?: boolean
  /** Adds the segments that are to be read. False while other lists must be read first, or another program writes. */
  prepare(): boolean
  /** Whether a due segment is read now. */
  mayTake?(segment: Segment): boolean
  ask(segment: Segment, state: ListState): Asking
  share?(): void
  replan?(): void
}

/** A job without what all jobs of its list share. */
export type Asking = Omit<Job, 'resource' | 'feed' | 'expected' | 'reads' | 'hasFailed' | 'over'> &
  Partial<Pick<Job, 'over'>>

/** What the requests of a list share. */
export interface ListState {
  /** The segments of which a page is requested. */
  underWay: ReadonlySet<number>
  /** Of the pass that the requested page belongs to. */
  guard: PageGuard
  failures: ListFailures
}

export type ListFailures = ReturnType<typeof createListFailures>

/** More failures close a list. The scopes of a list are not narrowed, so fewer failures suffice. */
const MOST_FAILURES = {
  timeline: FAILURES_OF_ONE_PAGE,
  periodic: FAILURES_OF_ONE_PAGE,
  snapshot: 2,
  singleton: 0,
}

/** The failed requests of a list since it was last answered. */
function createListFailures(
  { schedule: { isTimed }, backoffs }: EngineContext,
  { id, feed }: DeclaredFeed<ListFeed>,
) {
  const bySegment = new Map<number, number>()
  /**
   * The failures that count against the list. In a backfill, several spans may be divided at the same time. Their
   * failures say nothing about the list until one of them has failed too often.
   */
  const count = (): number => {
    const counts = [...bySegment.values()]
    const most = Math.max(0, ...counts)
    const isOfList = isTimed || most > FAILURES_OF_ONE_PAGE
    return isOfList ? counts.reduce((sum, failures) => sum + failures, 0) : most
  }
  return {
    note: (segment: Segment) => void bySegment.set(segment.id, (bySegment.get(segment.id) ?? 0) + 1),
    count,
    /** In the daemon, a list of which many parts have failed waits, and one part tries for all. */
    closeList() {
      if (isTimed && (count() > MOST_FAILURES[feed.mode] || backoffs.hasFailed(id, '')))
        backoffs.failed(id, '')
    },
    end: () => bySegment.clear(),
  }
}

/**
 * How long the result of a look for due segments is used, in ms. A look goes through all scopes, of which there may be
 * thousands.
 */
const LOOK_MS = 1000

/** Creates one source for each lane. */
export function createListSources(context: EngineContext, mode: ListMode): Source[] {
  const { store, backoffs, schedule, clock } = context
  const { list, lanes, share, replan } = mode
  const { resource, id, feed } = list
  const route = 'list' in feed ? feed.list.path : feed.read.path
  const where = { resource, feed: id }
  const lookMs = feed.mode === 'snapshot' && feed.scope ? LOOK_MS : 0
  const underWay = new Set<number>()
  const failures = createListFailures(context, list)
  /** By segment, the guard of its pass. */
  const guards = new Map<number, PageGuard>()
  const guardOf = ({ id, cursor }: Segment): PageGuard => {
    const guard = (cursor === null ? undefined : guards.get(id)) ?? createPageGuard()
    guards.set(id, guard)
    guard.asking(cursor)
    return guard
  }
  const isFree = (segment: Segment) => !underWay.has(segment.id)

  const createSource = (ofLane?: Lane): Source => {
    const choose = createSegmentTurns<Segment>(segment => schedule.overdue(list, segment))
    const isMine = (segment: Segment) => ofLane === undefined || schedule.laneOf(list, segment) === ofLane
    /** The segments that were due at the last look, except those that were taken since. */
    let found = new Set<Segment>()
    let lookedAt = Number.NEGATIVE_INFINITY

    const takeFound = (): Segment | undefined => {
      for (let next = choose([...found]); next; next = choose([...found])) {
        found.delete(next)
        const now = store.segments.find(next.id)
        const isDue = now !== undefined && isFree(now) && schedule.waitMs(list, now) === 0
        if (isDue && mode.mayTake?.(now) !== false) return now
      }
      return undefined
    }
    const take = (): Segment | undefined => {
      const known = clock.elapsed() - lookedAt < lookMs ? takeFound() : undefined
      if (known) return known
      found = new Set(dueSegments(context, list).filter(one => isFree(one) && isMine(one)))
      lookedAt = clock.elapsed()
      return takeFound()
    }

    return {
      ...where,
      route,
      get lane() {
        return ofLane ?? schedule.laneOf(list, undefined)
      },
      next() {
        if (backoffs.isWaiting(id) || (mode.isOneByOne && underWay.size > 0) || !mode.prepare())
          return undefined
        const segment = take()
        if (!segment) return undefined
        underWay.add(segment.id)
        const guard = guardOf(segment)
        const { over, ...asking } = mode.ask(segment, { underWay, guard, failures })
        return {
          ...where,
          expected: feed.expected,
          reads: { segment },
          hasFailed: segment.attempts > 0 || failures.count() > 0,
          ...asking,
          over(again) {
            underWay.delete(segment.id)
            if (!store.segments.find(segment.id)?.cursor) guards.delete(segment.id)
            over?.(again)
          },
        }
      },
      waitMs: () => backoffs.waitMs(id) || (mode.prepare() ? listWaitMs(context, list) : 0),
      isBusy: () => underWay.size > 0,
      ...(share && { share }),
      ...(replan && { replan }),
    }
  }
  return lanes ? lanes.map(createSource) : [createSource()]
}
