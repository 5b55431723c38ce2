import type { ItemFeed, Resource } from '../../catalog/resource.ts'
import { isoInstant } from '../../clock.ts'
import type { EngineContext } from '../context.ts'
import type { Source } from '../scheduler/job.ts'
import { byTime } from './by-time.ts'
import { DAY } from './intervals.ts'
import { isNeverRead } from './lateness.ts'
import type { ListOf } from './schedule.ts'

export type Backlog = Readonly<Record<Source['lane'], number>>

/** How many segments and single keys are due now, by lane. */
export function dueNow(context: EngineContext, resources: readonly Resource[]): Backlog {
  const due = { head: 0, history: 0, audit: 0, items: 0 }
  for (const { name, feeds } of resources) {
    for (const [feedName, feed] of Object.entries(feeds)) {
      const id = `${name}.${feedName}`
      if (feed.mode === 'item') due.items += dueKeys(context, id, feed)
      else for (const lane of duePasses(context, { resource: name, id, feed })) due[lane] += 1
    }
  }
  return due
}

function duePasses({ store, schedule, backoffs }: EngineContext, list: ListOf): Source['lane'][] {
  return store.segments
    .of(list.id)
    .filter(segment => !backoffs.isWaiting(list.id, segment.scope) && schedule.isListDue(list, segment))
    .map(segment => schedule.laneOf(list, segment))
}

function dueKeys({ store, now }: EngineContext, id: string, { pending }: ItemFeed): number {
  const tasks = store.tasks.countDue(id, now())
  return pending ? tasks + store.pending.count(pending) : tasks
}

export interface ScheduledResource {
  resource: Resource
  /** The feeds of its sources. */
  sources: readonly string[]
  /** False when the run has left some of it unread. */
  finished: boolean
}

/** Stores when each of these resources is due, by the daemon's intervals: after a backfill, a daemon may follow. */
export function noteNextDue(
  context: EngineContext,
  chosen: readonly ScheduledResource[],
  { pollMs }: { pollMs: number },
): void {
  const timed = { ...context, schedule: byTime(context, { pollMs }) }
  for (const { resource, sources, finished } of chosen) {
    context.store.state.nextRun(resource.name, finished ? nextDue(timed, resource, sources) : context.now())
  }
}

/** When the resource is due next, at most a day ahead. `sources` are the feeds of all its sources, probes included. */
export function nextDue(
  context: EngineContext,
  { name, feeds }: Resource,
  sources: readonly string[],
): string {
  const { store, clock, backoffs, schedule } = context
  const waitsUntil = backoffs.waitsUntil(name)
  const times = [...new Set(sources)].flatMap(id =>
    backoffs.isWaiting(id) ? [] : (store.tasks.nextDue(id, backoffs.waitingScopes(id)) ?? []),
  )
  for (const [feedName, feed] of Object.entries(feeds)) {
    const id = `${name}.${feedName}`
    if (feed.mode === 'item' || backoffs.isWaiting(id)) continue
    const segments = store.segments.of(id)
    if (isNeverRead(feed, segments)) times.push(context.now())
    const asked = segments.filter(({ scope }) => !backoffs.isWaiting(id, scope))
    times.push(...asked.flatMap(segment => schedule.dueAt({ resource: name, id, feed }, segment) ?? []))
  }
  if (waitsUntil !== undefined) times.push(isoInstant(clock.now() + waitsUntil - clock.elapsed()))
  return [...times, context.after(DAY)].sort()[0] ?? ''
}
