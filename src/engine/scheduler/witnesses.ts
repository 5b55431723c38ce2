import type { Witness } from '../../api/reach.ts'
import type { Feed, Resource, ResourceName } from '../../catalog/resource.ts'

export interface ListWitness extends Witness {
  resource: ResourceName
}

/**
 * One cheap request for each chosen list that can be asked for without knowing anything else. The access log is left
 * out: its request needs a period, and many workspaces do not offer it.
 */
export function witnessesOf(resources: readonly Resource[]): ListWitness[] {
  return resources.flatMap(({ name, feeds }) =>
    Object.entries(feeds).flatMap(([feed, declared]) => {
      const asked = requestOf(declared)
      if (asked === undefined) return []
      const { path, query } = asked
      return [
        {
          resource: name,
          feed: `${name}.${feed}`,
          request: { resource: name, route: path, path, ...(query && { query }) },
        },
      ]
    }),
  )
}

function requestOf(feed: Feed): { path: string; query?: Readonly<Record<string, string>> } | undefined {
  if (feed.mode === 'singleton') return { path: feed.read.path }
  if (feed.mode !== 'timeline' && feed.mode !== 'snapshot') return undefined
  if (feed.mode === 'snapshot' && feed.scope) return undefined
  const { path, paging, query } = feed.list
  // A list whose paging is not stated is asked with no assumption.
  return paging === 'any' ? { path, ...(query && { query }) } : { path, query: { ...query, limit: '1' } }
}
