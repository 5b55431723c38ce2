import { CATALOG } from '../../catalog/catalog.ts'
import { type DeclaredFeed, feedsOf } from '../../catalog/feeds.ts'
import type { Resource, TimelineFeed } from '../../declare/resource.ts'
import type { ResourceName } from '../../declare/resource-names.ts'
import { META } from '../../store/sync/meta.ts'
import type { EngineContext } from '../context/context.ts'
import type { Source } from '../context/job.ts'
import { isIdle } from '../due/due.ts'
import { createItems } from '../modes/items/items.ts'
import { createAnnouncedRecords } from '../modes/keys/announced-records.ts'
import { createProbes } from '../modes/keys/probes.ts'
import { createLookup } from '../modes/keys/referenced-ids.ts'
import { createPeriodic } from '../modes/periodic/periodic.ts'
import { createNewestKeys } from '../modes/snapshot/newest-keys.ts'
import { createSingleton } from '../modes/snapshot/singleton.ts'
import { createSnapshot } from '../modes/snapshot/snapshot.ts'
import { tileByAge } from '../modes/timeline/tiling.ts'
import { addFirstSegment, createTimeline } from '../modes/timeline/timeline.ts'

/** The sources that read a feed, and those that check or look up single rows for it. */
function sourcesOfFeed(
  context: EngineContext,
  { feed, ...name }: DeclaredFeed,
  resource: Resource,
): (Source | undefined)[] {
  switch (feed.mode) {
    case 'timeline':
      return sourcesOfTimeline(context, { ...name, feed })
    case 'snapshot': {
      const list = { ...name, feed }
      return [
        ...createSnapshot(context, list, resource),
        createNewestKeys(context, list),
        ...createProbes(context, list),
        createAnnouncedRecords(context, list),
      ]
    }
    case 'item':
      return createItems(context, { ...name, feed }, resource)
    case 'periodic':
      return createPeriodic(context, { ...name, feed })
    case 'singleton':
      return createSingleton(context, { ...name, feed })
  }
}

function sourcesOfTimeline(context: EngineContext, list: DeclaredFeed<TimelineFeed>): (Source | undefined)[] {
  const { lookup } = list.feed
  addFirstSegment(context, list.id)
  if (context.schedule.isTimed) tileByAge(context, list, new Set())
  const lanes = createTimeline(context, list)
  const others = lookup ? [lookup.resource] : []
  const isListed = () => lanes.every(lane => isIdle(context, lane)) && others.every(context.isFinished)
  return [...lanes, ...createProbes(context, list), createLookup(context, list, isListed)]
}

export function createSources(context: EngineContext, resource: Resource): Source[] {
  const { schedule, store } = context
  const sources = feedsOf(resource)
    .flatMap(declared => sourcesOfFeed(context, declared, resource))
    .filter(source => source !== undefined)
  if (schedule.isTimed) return sources
  // Every backfill requests at once what has failed before.
  for (const { feed } of sources) {
    store.segments.retryNow(feed)
    store.tasks.retryNow(feed)
  }
  return sources
}

export type ChosenResources = ReturnType<typeof chooseResources>

/** The resources that a backfill or a session reads, and the sources of their requests. @param names parents included */
export function chooseResources(names: readonly ResourceName[]) {
  const resources = CATALOG.filter(({ name }) => names.includes(name))
  const sources = new Map<ResourceName, readonly Source[]>()
  const sourcesOf = (name: ResourceName): readonly Source[] => sources.get(name) ?? []
  return {
    /** In catalogue order. */
    resources,
    /**
     * Creates the sources, and stores the choice and `sync.since` for `parley status`. Before this call, no resource has
     * sources. Call it in a transaction.
     */
    createSources(context: EngineContext): void {
      context.store.state.setMeta(META.chosenResources, JSON.stringify(resources.map(({ name }) => name)))
      context.store.state.setMeta(META.since, context.options.since ?? '')
      for (const resource of resources) sources.set(resource.name, createSources(context, resource))
    },
    sources: (): readonly Source[] => [...sources.values()].flat(),
    sourcesOf,
    /** True when no source of the resource has a request left. */
    isIdle: (context: EngineContext, name: ResourceName): boolean =>
      sourcesOf(name).every(source => isIdle(context, source)),
  }
}
