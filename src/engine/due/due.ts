import { isoInstant } from '../../base/clock.ts'
import { type DeclaredFeed, itemsOf, type ListFeed, listsOf } from '../../catalog/feeds.ts'
import type { Feed, ItemFeed, Resource } from '../../declare/resource.ts'
import type { ResourceName } from '../../declare/resource-names.ts'
import type { Segment } from '../../store/sync/segments.ts'
import type { TaskBounds } from '../../store/sync/tasks/due.ts'
import type { EngineContext } from '../context/context.ts'
import { DAY, scaled } from '../context/intervals.ts'
import type { Source } from '../context/job.ts'
import { confirmingReadMs } from '../deletions/recheck.ts'
import { byTime } from './by-time.ts'

/**
 * Computes when each list and key is read next. The work of the modes, the sleep of an idle daemon, `next_run_at`, the
 * backlog and the check for late lists all derive from it.
 *
 * The due time of a segment is computed from its row and the settings whenever it is needed (`dueAt` in by-time.ts). It
 * is not stored: a change that did not update the stored time would silence the list. Single reads are due at the time
 * stored in their task.
 */

/** A segment of a list and how long until it is read, in ms. A list that was never read is one part without segment. */
export interface ListPart {
  segment: Segment | undefined
  waitMs: number
}

export function partsOf(context: EngineContext, list: DeclaredFeed<ListFeed>): ListPart[] {
  const { store, schedule, backoffs } = context
  const segments = store.segments.of(list.id)
  if (isNeverRead(list.feed, segments)) {
    // A document that was read before has no segment after a resync, and may still be suspected.
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
export function dueNow(context: EngineContext, resources: readonly Resource[]): Backlog {
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

/** How long until the resource has something to read, in ms, at most a day. `sources`: all sources of the resource. */
export function nextDueMs(context: EngineContext, resource: Resource, sources: readonly Source[]): number {
  const { backoffs, clock, options } = context
  const feeds = new Map(sources.map(({ feed, bounds }) => [feed, bounds]))
  const backoffEnd = backoffs.waitsUntil(resource.name) ?? Number.POSITIVE_INFINITY
  const waits = [
    ...listsOf(resource).flatMap(list => partsOf(context, list).map(({ waitMs }) => waitMs)),
    ...[...feeds].map(([feed, bounds]) => tasksWaitMs(context, feed, bounds)),
    ...sources.map(source => source.waitMs?.() ?? Number.POSITIVE_INFINITY),
    backoffEnd - clock.elapsed(),
  ]
  return Math.max(0, Math.min(...waits, scaled(DAY, options)))
}

/** How long until the first task of a feed is due, in ms. Tasks do not count while their scope backs off. */
function tasksWaitMs({ store, backoffs }: EngineContext, feed: string, bounds?: TaskBounds): number {
  if (backoffs.isWaiting(feed)) return Number.POSITIVE_INFINITY
  const query = { ...bounds, now: store.dueClock.now(), exceptScopes: backoffs.waitingScopes(feed) }
  const dueAt = store.tasks.nextDue(feed, query)
  return dueAt === undefined ? Number.POSITIVE_INFINITY : store.dueClock.waitMs(dueAt)
}

export interface NextDueOf {
  resources: readonly Resource[]
  sourcesOf(resource: ResourceName): readonly Source[]
  /** False when the run has left a part of the resource unread. */
  isFinished(resource: ResourceName): boolean
  pollMs: number
}

/** Stores `next_run_at` of these resources. It uses the daemon's intervals, since a daemon may follow a backfill. */
export function noteNextDue(
  context: EngineContext,
  { resources, sourcesOf, isFinished, pollMs }: NextDueOf,
): void {
  const timed = { ...context, schedule: byTime(context, { pollMs }) }
  for (const resource of resources) {
    const { name } = resource
    const ms = isFinished(name) ? nextDueMs(timed, resource, sourcesOf(name)) : 0
    context.store.state.nextRun(name, isoInstant(context.clock.now() + ms))
  }
}
