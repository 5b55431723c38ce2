import { CATALOG } from '../../catalog/catalog.ts'
import type { Resource } from '../../declare/resource.ts'
import type { ResourceName } from '../../declare/resource-names.ts'
import { META } from '../../store/sync/meta.ts'
import type { EngineContext } from '../context/context.ts'
import type { Source } from '../context/job.ts'
import { createSources } from './sources.ts'

/** The resources that a backfill or a session reads, and the sources of their requests. */
export interface ChosenResources {
  /** In catalogue order. */
  resources: readonly Resource[]
  /** Creates the sources, and stores the choice for `parley status`. Call it in a transaction. Until then no resource has any. */
  createSources(context: EngineContext): void
  sources(): readonly Source[]
  sourcesOf(resource: ResourceName): readonly Source[]
  /** True when no source of the resource has a request left. */
  isIdle(resource: ResourceName): boolean
}

/** @param names parents included */
export function chooseResources(names: readonly ResourceName[]): ChosenResources {
  const resources = CATALOG.filter(({ name }) => names.includes(name))
  const sources = new Map<ResourceName, readonly Source[]>()
  const sourcesOf = (name: ResourceName) => sources.get(name) ?? []
  return {
    resources,
    createSources(context) {
      context.store.state.setMeta(META.chosenResources, JSON.stringify(resources.map(({ name }) => name)))
      for (const resource of resources) sources.set(resource.name, createSources(context, resource))
    },
    sources: () => [...sources.values()].flat(),
    sourcesOf,
    isIdle: name => sourcesOf(name).every(source => source.finished()),
  }
}
