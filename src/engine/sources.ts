import type { Feed, Resource } from '../catalog/resource.ts'
import type { EngineContext } from './context.ts'
import { createProbes } from './deletions/probes.ts'
import { createItems } from './modes/items/items.ts'
import { createChanges } from './modes/keys/announced-records.ts'
import { createLookup } from './modes/keys/referenced-ids.ts'
import { createPeriodic } from './modes/periodic/periodic.ts'
import { createSingleton } from './modes/singleton.ts'
import { createNewestKeys } from './modes/snapshot/newest-keys.ts'
import { createSnapshot } from './modes/snapshot/snapshot.ts'
import { tileByAge } from './modes/timeline/tiling.ts'
import { createTimeline, tileAxis } from './modes/timeline/timeline.ts'
import type { Source } from './requests/job.ts'

type ModeOf<M extends Feed['mode']> = Extract<Feed, { mode: M }>

type Factories = {
  [M in Feed['mode']]: (
    context: EngineContext,
    resource: Resource,
    name: string,
    feed: ModeOf<M>,
  ) => (Source | undefined)[]
}

/** By mode: the sources that read a feed, and those that check or look up single rows for it. */
const SOURCES: Factories = {
  timeline(context, resource, name, feed) {
    tileAxis(context, `${resource.name}.${name}`)
    if (context.schedule.isTimed) tileByAge(context, `${resource.name}.${name}`, feed, new Set())
    const lists = createTimeline(context, resource, name, feed)
    const others = feed.lookup ? [feed.lookup.resource] : []
    const isListed = () => lists.every(list => list.finished()) && others.every(context.isFinished)
    return [
      ...lists,
      createProbes(context, resource, name, feed),
      createLookup(context, resource, name, feed, isListed),
    ]
  },
  snapshot: (context, resource, name, feed) => [
    createSnapshot(context, resource, name, feed),
    createNewestKeys(context, resource, name, feed),
    createProbes(context, resource, name, feed),
    createChanges(context, resource, name, feed),
  ],
  item: createItems,
  periodic: (context, resource, name, feed) => [createPeriodic(context, resource, name, feed)],
  singleton: (context, resource, name, feed) => [createSingleton(context, resource, name, feed)],
}

export function createSources(context: EngineContext, resource: Resource): Source[] {
  // Every backfill retries failed lists at once.
  if (!context.schedule.isTimed)
    for (const name of Object.keys(resource.feeds))
      context.store.segments.retryNow(`${resource.name}.${name}`)
  return Object.entries(resource.feeds)
    .flatMap(([name, feed]) => createFeed(context, resource, name, feed))
    .filter(source => source !== undefined)
}

function createFeed<M extends Feed['mode']>(
  context: EngineContext,
  resource: Resource,
  name: string,
  feed: ModeOf<M>,
): (Source | undefined)[] {
  const create: Factories[M] = SOURCES[feed.mode as M]
  return create(context, resource, name, feed)
}
