import { DAY_MS } from '../../base/clock.ts'
import { type DeclaredFeed, itemsOf, type ListFeed, listsOf } from '../../catalog/feeds.ts'
import type { Feed, ItemFeed, Resource } from '../../declare/resource.ts'
import type { Segment } from '../../store/sync/segments.ts'
import type { EngineContext } from '../context/context.ts'
import { scaled } from '../context/intervals.ts'
import type { Keys, Source } from '../context/job.ts'
import { confirmingReadMs } from '../deletions/recheck.ts'
import { byTime } from './by-time.ts'
import { firstReads } from './first-reads.ts'
import { hasWaitingRetry } from './retries.ts'

/**
 * Computes when each list and key is read next. The work of the modes, the sleep of an idle daemon, `next_run_at`, the
 * backlog and the check for late lists all derive from it.
 *
 * The due time of a segment is computed from its row and the settings whenever it is needed (`dueAt` in by-time.ts). It
 * is not stored: a change that did not update the stored time would silence the list. Single reads are due at the time
 * stored in their task.
 */

/**
 * A segment of a list and how long until it is read, in ms. A list that was never read has one part, without a segment.
 */
export interface ListPart {
  segment: Segment | undefined
  waitMs: number
}

export function partsOf(context: EngineContext, list: DeclaredFeed<ListFeed>): ListPart[] {
  const { store, schedule, backoffs } = context
  const segments = store.segments.of(list.id)
  if (isNeverRead(list.feed, segments)) {
    // A single document that was read before has no segment after a resync, and may still be suspected.
    const waitMs = Math.max(backoffs.waitMs(list.id), confirmingReadMs(context, list) ?? 0)
    return [{ segment: undefined, waitMs }]
  }
  return segments.map(segment => ({ segment, waitMs: schedule.waitMs(list, segment) }))
}

/** A list without segments was never read, except a list with one segment for each scope: it may have no scope yet. */
function isNeverRead(feed: Feed, segments: readonly unknown[]): boolean {
  const isScoped = feed.mode === 'snapshot' && feed.scope !== undefined
  return segments.length === 0 && !isScoped
}

/** The segments of a list that are due now, newest first. */
export function dueSegments(context: EngineContext, list: DeclaredFeed<ListFeed>): Segment[] {
  return context.store.segments.of(list.id).filter(segment => context.schedule.waitMs(list, segment) === 0)
}

export type Backlog = Readonly<Record<Source['lane'], number>>

/** How many segments and single keys are due now, by lane. */
export function backlogNow(context: EngineContext, resources: readonly Resource[]): Backlog {
  const due = { head: 0, history: 0, audit: 0, items: 0 }
  for (const resource of resources) {
    for (const list of listsOf(resource))
      for (const segment of dueSegments(context, list)) due[context.schedule.laneOf(list, segment)] += 1
    for (const item of itemsOf(resource)) due.items += dueKeys(context, item)
  }
  return due
}

function dueKeys({ store }: EngineContext, { id, feed: { pending } }: DeclaredFeed<ItemFeed>): number {
  const tasks = store.tasks.countDue(id, store.dueClock.now())
  return pending ? tasks + store.pending.count(pending) : tasks
}

/** How long until a segment of a list is read, in ms; infinite when none falls due. */
export const listWaitMs = ({ store, schedule }: EngineContext, list: DeclaredFeed<ListFeed>): number =>
  Math.min(...store.segments.of(list.id).map(segment => schedule.waitMs(list, segment)))

/** How long until a key of a feed is read, in ms; infinite when none falls due. */
export function keysWaitMs(context: EngineContext, { items, ...keys }: Keys): number {
  const { schedule, backoffs } = context
  const { feed } = keys
  const exceptScopes = backoffs.waitingScopes(feed)
  const hasFirst = items !== undefined && firstReads(context, feed, items, 1).length > 0
  const waits = [
    hasFirst ? 0 : schedule.tasksWaitMs({ ...keys, exceptScopes }),
    // Keys of a scope that backs off fall due at the end of that backoff at the earliest.
    ...exceptScopes.map(scope => backoffs.waitMs(feed, scope)),
  ]
  return Math.max(backoffs.waitMs(feed), Math.min(...waits))
}

/** True when a source has nothing due or under way, and no failed request of the source waits for its next try. */
export const isIdle = (context: EngineContext, source: Source): boolean =>
  !source.isBusy() && source.waitMs() > 0 && !hasWaitingRetry(context, source)

/** How long until the first of these sources has something to read, in ms, at most a day. */
export const nextDueMs = ({ options }: EngineContext, sources: readonly Source[]): number =>
  Math.max(0, Math.min(...sources.map(source => source.waitMs()), scaled(DAY_MS, options)))

/** `nextDueMs` for a resource in a daemon that follows a backfill, by the daemon's intervals. */
export function nextDueOfDaemonMs(
  context: EngineContext,
  { resource, sources, pollMs }: { resource: Resource; sources: readonly Source[]; pollMs: number },
): number {
  if (context.backoffs.hasFailedFeed(resource.name)) return 0
  const ofDaemon = { ...context, schedule: byTime(context, { pollMs }) }
  const waits = [
    ...listsOf(resource).flatMap(list => partsOf(ofDaemon, list).map(({ waitMs }) => waitMs)),
    ...sources.flatMap(({ keys }) => (keys ? keysWaitMs(ofDaemon, keys) : [])),
  ]
  return Math.max(0, Math.min(...waits, scaled(DAY_MS, context.options)))
}
