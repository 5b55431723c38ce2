import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../base/clock.ts'
import type { ListFeed } from '../../catalog/feeds.ts'
import type { TimelineFeed } from '../../declare/resource.ts'
import type { Segment } from '../../store/sync/segments.ts'
import type { EngineOptions } from './engine-options.ts'

/**
 * The intervals of lists, in ms, and their scaling by `sync.interval_scale`. Those of single reads are in
 * `modes/items/item-handler.ts`.
 */

/** The longest interval between two reads of a list, and of a row that can be read. */
export const WEEK_MS = 7 * DAY_MS
/** The longest interval between two reads of what could not be read. */
export const MONTH_MS = 30 * DAY_MS

/** An interval scaled by `intervalScale`; at least a second. */
export function scaled(ms: number, { intervalScale }: { intervalScale: number }): number {
  return Math.max(1000, ms * intervalScale)
}

/** How far ahead a list may be due, in ms: a scaled week, but at least an hour, since some backoffs are not scaled. */
export function longestWaitMs(options: Pick<EngineOptions, 'intervalScale'>): number {
  return Math.max(scaled(WEEK_MS, options), HOUR_MS)
}

/**
 * How long until a span of event time is listed again: an eighth of its age, but at least 5 minutes and at most a week.
 * Rows that appear late are mostly in recent spans, so these are listed more often. Times in ms. Pure.
 */
export function auditInterval(ageMs: number): number {
  return Math.min(Math.max(ageMs / 8, SHORTEST_AUDIT_MS), WEEK_MS)
}

const SHORTEST_AUDIT_MS = 5 * MINUTE_MS

/**
 * `auditInterval`, scaled, from the age of the span at its last listing. The span falls due when the time since that
 * listing is an eighth of the span's age by then. So passing time changes no due time. Pure.
 */
export function auditIntervalFrom(
  listedAgeMs: number,
  options: Pick<EngineOptions, 'intervalScale'>,
): number {
  const { intervalScale } = options
  const dueAgeMs = intervalScale < 8 ? (8 * listedAgeMs) / (8 - intervalScale) : Number.POSITIVE_INFINITY
  return scaled(auditInterval(dueAgeMs), options)
}

/** Passes over a whole list may take at most this share of the time. */
const MOST_SHARE = 1 / 20

/** How long after one pass over a whole list the next begins, in ms. It grows with the duration of the pass. Pure. */
export function passInterval(
  usualMs: number,
  { passMs }: Pick<Segment, 'passMs'>,
  options: Pick<EngineOptions, 'intervalScale'>,
): number {
  return Math.max(usualMs, Math.min((passMs ?? 0) / MOST_SHARE, scaled(WEEK_MS, options)))
}

type IntervalFeed = Exclude<ListFeed, TimelineFeed>

/** How often a list that is not a timeline is read again, in ms. A snapshot may declare another interval. */
const LIST_INTERVALS: Readonly<Record<IntervalFeed['mode'], number>> = {
  snapshot: 6 * HOUR_MS,
  periodic: HOUR_MS,
  singleton: 6 * HOUR_MS,
}

/** In ms, before `intervalScale`. */
export function usualIntervalMs(feed: IntervalFeed): number {
  return (feed.mode === 'snapshot' ? feed.intervalMs : undefined) ?? LIST_INTERVALS[feed.mode]
}
