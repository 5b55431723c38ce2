import { DAY_MS, HOUR_MS, isoInstant, MINUTE_MS } from '../../../base/clock.ts'
import type { DeclaredFeed } from '../../../catalog/feeds.ts'
import type { TimelineFeed } from '../../../declare/resource.ts'
import type { Segment } from '../../../store/sync/segments.ts'
import type { EngineContext } from '../../context/context.ts'
import { isFuture, isHead, isNewEnough } from '../../due/segment-conditions.ts'
import { cutOff } from '../pass.ts'

/**
 * Cuts and joins the segments of a timeline. A segment falls due by the age of its newest end, so its oldest end should
 * not be much older. The newest segment should fit on one page. Ends do not move as they age, so that a poll that finds
 * nothing new changes no segment.
 */

/** An end of a segment that is younger than this counts as this old. */
const YOUNG_MS = 10 * MINUTE_MS
/** Segments older than this are never cut, and are joined: all of them fall due after the longest interval. */
const OLD_MS = 56 * DAY_MS
/** The oldest end should be at most this many times as old as the newest; at twice that, the segment is cut. */
const SPAN = 3

/** Rows in the newest segment: half a page, so that a poll needs one page even if it finds some new rows. */
const HEAD_ROWS = 50
/** The newest segment reaches back at least this far, even if rows are dated in the future. */
const HEAD_MS = MINUTE_MS

/**
 * Rows that are dated further ahead than this get a separate segment, which is not polled, while they do not all fit
 * into the newest segment. The separate segment begins at most twice as far ahead.
 */
const FUTURE_MS = HOUR_MS

/** @param busy segments with a request in flight, which stay as they are */
export function tileByAge(
  context: EngineContext,
  list: DeclaredFeed<TimelineFeed>,
  busy: ReadonlySet<number>,
): void {
  const { segments } = context.store
  const { id, feed } = list
  const now = context.server.now()
  const movable = (segment: Segment) =>
    isNewEnough(list, segment, context.options) &&
    segment.listedAt !== null &&
    segment.passStartedAt === null &&
    segment.attempts === 0 &&
    !busy.has(segment.id)

  tileFuture(context, list, movable)
  const isPolled = (segment: Segment) => segment.to === null || isHead(segment, now)
  let [head, ...older] = segments.of(id, '').filter(segment => !isFuture(segment, now))
  const begins = head && headBegins(context, feed, head)
  // A newest segment that was cut because a page failed grows back.
  for (const next of older) {
    const isShort = head && head.from !== null && head.from > (begins ?? '')
    if (!head || !isShort || !movable(head) || !movable(next)) break
    head = segments.join(head, next)
  }
  if (head && movable(head) && begins !== undefined && begins > (head.from ?? '')) {
    cutOff(segments, head, begins)
  }
  for (const segment of segments.of(id, '')) {
    if (isPolled(segment)) continue
    let rest = segment
    for (let at = cutAt(rest, now); at !== undefined && movable(rest); at = cutAt(rest, now)) {
      rest = cutOff(segments, rest, at)
    }
  }
  let newer: Segment | undefined
  for (const segment of segments.of(id, '')) {
    const joins = newer && !isPolled(newer) && fits(newer, segment, now) && movable(newer) && movable(segment)
    newer = newer && joins ? segments.join(newer, segment) : segment
  }
}

/** Separates the rows that are dated in the future from the segment that is polled, and joins them again. */
function tileFuture(
  { store, server }: EngineContext,
  { id, feed }: DeclaredFeed<TimelineFeed>,
  movable: (segment: Segment) => boolean,
): void {
  const { segments, rowTimes } = store
  const now = server.now()
  const [newest, next] = segments.of(id, '')
  if (newest?.to !== null || !movable(newest)) return
  const bound = isoInstant(now + 2 * FUTURE_MS)
  const isMany = rowTimes.isMoreThan(feed, HEAD_ROWS, { from: isoInstant(now + FUTURE_MS), to: null })
  if (!isFuture(newest, now)) {
    if (isMany) cutOff(segments, newest, bound)
  } else if (next && movable(next)) {
    if (!isMany) segments.join(newest, next)
    else if ((newest.from ?? '') < isoInstant(now + FUTURE_MS))
      segments.join(cutOff(segments, newest, bound), next)
  }
}

/** Where to cut a segment that spans too much; undefined for other segments. Pure. */
export function cutAt({ from, to }: Pick<Segment, 'from' | 'to'>, now: number): string | undefined {
  if (to === null) return undefined
  const newest = ageOf(to, now)
  const oldest = from === null ? Number.POSITIVE_INFINITY : ageOf(from, now)
  if (newest >= OLD_MS || oldest <= 2 * SPAN * newest) return undefined
  return new Date(now - SPAN * newest).toISOString()
}

/** Whether two neighbours may be joined: together they would not span too much. Pure. */
export function fits(newer: Pick<Segment, 'to'>, older: Pick<Segment, 'from'>, now: number): boolean {
  if (newer.to === null) return false
  const newest = ageOf(newer.to, now)
  return newest >= OLD_MS || (older.from !== null && ageOf(older.from, now) <= SPAN * newest)
}

function ageOf(at: string, now: number): number {
  return Math.max(now - Date.parse(at), YOUNG_MS)
}

/**
 * The oldest instant of the newest segment; undefined while the table has no more than `HEAD_ROWS` rows. If too many
 * rows share this instant, the newest segment would not fit on a page, and each poll would list all these rows. Then
 * the instant goes to the older segment alone.
 */
function headBegins(
  { store, server }: EngineContext,
  feed: TimelineFeed,
  { from, to }: Segment,
): string | undefined {
  const at = store.rowTimes.afterNewest(feed, HEAD_ROWS, to)
  if (at === undefined) return undefined
  const isCrowded = store.rowTimes.isMoreThan(feed, 2 * HEAD_ROWS, { from: at, to })
  const begins = isCrowded ? isoInstant(Date.parse(at) + 1) : at
  const now = server.now()
  const latest = isoInstant(now - HEAD_MS)
  if (begins <= latest) return begins
  // `latest` moves with each pass, so a young bound stays where it is.
  return from !== null && from > isoInstant(now - YOUNG_MS) ? from : latest
}
