import type { HealthCheck } from '../../api/reach.ts'
import type { Query } from '../../api/request.ts'
import { feedsOf } from '../../catalog/feeds.ts'
import type { Feed, Resource } from '../../declare/resource.ts'

/**
 * One cheap request for each chosen list that needs no ids. The access log is left out: its request needs a period, and
 * many workspaces do not offer it.
 */
export function healthChecksOf(resources: readonly Resource[]): HealthCheck[] {
  return resources.flatMap(feedsOf).flatMap(({ resource, id, feed }) => {
    const list = requestOf(feed)
    if (list === undefined) return []
    const { path, query } = list
    return [{ resource, feed: id, request: { route: path, path, ...(query && { query }) } }]
  })
}

function requestOf(feed: Feed): { path: string; query?: Query } | undefined {
  if (feed.mode === 'singleton') return { path: feed.read.path }
  if (feed.mode !== 'timeline' && feed.mode !== 'snapshot') return undefined
  if (feed.mode === 'snapshot' && feed.scope) return undefined
  const { path, paging } = feed.list
  // A list of unknown paging is requested without a limit, since it may not accept one.
  return paging === 'any' ? { path } : { path, query: { limit: '1' } }
}
