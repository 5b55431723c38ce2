import { CATALOG } from '../catalog/catalog.ts'
import type { Feed, ResourceName } from '../catalog/resource.ts'

export interface FeedName {
  resource: ResourceName
  /** `resource.feed` */
  feed: string
}

interface DeclaredFeed {
  resource: ResourceName
  feed: Feed
}

const FEEDS: ReadonlyMap<string, DeclaredFeed> = new Map(
  CATALOG.flatMap(({ name: resource, feeds }) =>
    Object.entries(feeds).map(([name, feed]) => [`${resource}.${name}`, { resource, feed }] as const),
  ),
)

/** @param id `resource.feed` */
export function feedNamed(id: string): DeclaredFeed {
  const declared = FEEDS.get(id)
  if (!declared) throw new TypeError(`No resource declares a feed ${id}`)
  return declared
}
