import type { Feed, ItemFeed, TimelineFeed } from '../../catalog/resource.ts'
import type { Segment } from '../../store/sync/segments.ts'
import type { EngineOptions } from '../options.ts'

/** Lengths of time, in ms, and the owner's scale for them. */

export const MINUTE = 60_000
export const HOUR = 60 * MINUTE
export const DAY = 24 * HOUR
/** No interval is longer: the bound within which the warehouse is true. */
export const WEEK = 7 * DAY

/** An interval with the owner's scale, never below a second. */
export function scaled(ms: number, { intervalScale }: { intervalScale: number }): number {
  return Math.max(1000, ms * intervalScale)
}

/** How far ahead a due time may lie, in ms: a week, or what a retry may wait where the owner has shortened that. */
export function longestWaitMs(options: Pick<EngineOptions, 'intervalScale'>): number {
  return Math.max(scaled(WEEK, options), HOUR)
}

/**
 * When a span of event time is listed again: an eighth of its age, so that what appears late is found the sooner the
 * younger it is, and at most a week. Pure. Both in ms.
 */
export function auditInterval(ageMs: number): number {
  return Math.min(Math.max(ageMs / 8, SHORTEST_AUDIT_MS), WEEK)
}

const SHORTEST_AUDIT_MS = 5 * MINUTE

/** Passes over the whole of a list take no more of the time than this. */
const MOST_SHARE = 1 / 20

/** How long after one pass over a whole list the next begins: the longer the pass took, the longer; in ms. Pure. */
export function passInterval(
  usualMs: number,
  { passMs }: Pick<Segment, 'passMs'>,
  options: Pick<EngineOptions, 'intervalScale'>,
): number {
  return Math.max(usualMs, Math.min((passMs ?? 0) / MOST_SHARE, scaled(WEEK, options)))
}

type ListFeed = Exclude<Feed, TimelineFeed | ItemFeed>

/** How often what has no order of time is read as a whole, in ms, unless the feed says otherwise. */
const LIST_INTERVALS: Readonly<Record<ListFeed['mode'], number>> = {
  snapshot: 6 * HOUR,
  periodic: HOUR,
  singleton: 6 * HOUR,
}

/** In ms, without the owner's scale. */
export function usualIntervalMs(feed: ListFeed): number {
  return (feed.mode === 'snapshot' ? feed.intervalMs : undefined) ?? LIST_INTERVALS[feed.mode]
}
