import { CATALOG } from '../catalog/catalog.ts'
import type { Feed } from '../catalog/resource.ts'
import type { ResourceName } from '../catalog/resource-names.ts'

export interface FeedName {
  resource: ResourceName
  /** `resource.feed` */
  feed: string
}

export interface DeclaredFeed {
  resource: ResourceName
  /** `resource.feed` */
  id: string
  feed: Feed
}

/** Every feed, in the order of the catalogue. */
export const FEEDS: readonly DeclaredFeed[] = CATALOG.flatMap(({ name: resource, feeds }) =>
  Object.entries(feeds).map(([name, feed]) => ({ resource, id: `${resource}.${name}`, feed })),
)

const BY_ID = new Map(FEEDS.map(declared => [declared.id, declared]))

/** @param id `resource.feed` */
export function feedNamed(id: string): DeclaredFeed {
  const declared = BY_ID.get(id)
  if (!declared) throw new TypeError(`No resource declares a feed ${id}`)
  return declared
}
