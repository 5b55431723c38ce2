import { MAX_LIMITS } from '../../../api/paging.ts'
import type { Query } from '../../../api/request.ts'
import type { TimelineFeed } from '../../../declare/resource.ts'
import type { Segment } from '../../../store/sync/segments.ts'

/** Rows in a page of the usual size. */
export function fullLimit({ list }: TimelineFeed): number {
  return MAX_LIMITS[list.paging] ?? 1
}

/** The query of a new pass over a segment. */
export function baseQuery({ list, bounds }: TimelineFeed, { from, to }: Pick<Segment, 'from' | 'to'>): Query {
  return {
    limit: String(MAX_LIMITS[list.paging]),
    ...(from === null ? {} : { [bounds.from]: from }),
    ...(to === null || to >= LAST_INSTANT ? {} : { [bounds.to]: nextMillisecond(to) }),
  }
}

/** The query that also shows the rows without an event time, which no bound of time does. */
export const unboundedQuery = (feed: TimelineFeed): Query => ({ limit: String(fullLimit(feed)) })

export function isUnbounded({ bounds }: TimelineFeed, query: Query): boolean {
  return query[bounds.from] === undefined && query[bounds.to] === undefined
}

/** True for a pass with smaller pages than usual, which follows a failed page. */
export function hasSmallerPages(feed: TimelineFeed, base: Query): boolean {
  return Number(base['limit']) < fullLimit(feed)
}

/** No row is later. The next year has five digits, which the API refuses. */
const LAST_INSTANT = '9999-12-31T23:59:59.999Z'

/** The API cuts bounds to the millisecond, but event times are finer. So a query rounds its upper bound up. */
export function nextMillisecond(instant: string): string {
  return new Date(Date.parse(instant) + 1).toISOString()
}
