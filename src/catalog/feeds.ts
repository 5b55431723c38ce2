import type { Feed, ItemFeed, Resource } from '../declare/resource.ts'
import type { ResourceName } from '../declare/resource-names.ts'
import { CATALOG } from './catalog.ts'

export interface FeedName {
  resource: ResourceName
  /** `resource.feed` */
  id: string
}

export interface DeclaredFeed<F extends Feed = Feed> extends FeedName {
  feed: F
}

export type ListFeed = Exclude<Feed, ItemFeed>

export function feedsOf({ name, feeds }: Resource): DeclaredFeed[] {
  return Object.entries(feeds).map(([feed, declared]) => ({
    resource: name,
    id: `${name}.${feed}`,
    feed: declared,
  }))
}

export function listsOf(resource: Resource): DeclaredFeed<ListFeed>[] {
  return feedsOf(resource).filter(isList)
}

export function itemsOf(resource: Resource): DeclaredFeed<ItemFeed>[] {
  return feedsOf(resource).filter(isItem)
}

function isList(declared: DeclaredFeed): declared is DeclaredFeed<ListFeed> {
  return !isItem(declared)
}

export function isItem(declared: DeclaredFeed): declared is DeclaredFeed<ItemFeed> {
  return declared.feed.mode === 'item'
}

/** Every feed, in the order of the catalogue. */
export const FEEDS: readonly DeclaredFeed[] = CATALOG.flatMap(feedsOf)
export const LISTS: readonly DeclaredFeed<ListFeed>[] = FEEDS.filter(isList)
export const ITEM_FEEDS: readonly DeclaredFeed<ItemFeed>[] = FEEDS.filter(isItem)

const BY_ID = new Map(FEEDS.map(declared => [declared.id, declared]))

/** @param id `resource.feed` */
export function feedNamed(id: string): DeclaredFeed {
  const declared = BY_ID.get(id)
  if (!declared) throw new TypeError(`No resource declares a feed ${id}`)
  return declared
}
