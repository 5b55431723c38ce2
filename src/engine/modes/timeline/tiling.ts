import type { TimelineFeed } from '../../../catalog/resource.ts'
import { isoInstant } from '../../../clock.ts'
import type { Segment } from '../../../store/sync/segments.ts'
import type { EngineContext } from '../../context.ts'
import { DAY, MINUTE } from '../../schedule/intervals.ts'
import { isWanted } from '../../schedule/wanted.ts'
import { cutOff } from '../pass.ts'

/**
 * Keeps the segments of a timeline such that none spans much older times than its newest, by whose age it falls due,
 * and that the newest holds no more than a page. Ends of segments stay where they are while they grow older, so that
 * a quiet poll moves nothing.
 */

/** Below this age all segments are alike. */
const YOUNG_MS = 10 * MINUTE
/** Above it as well: nothing is listed more rarely. */
const OLD_MS = 56 * DAY
/** The oldest of a segment's span is at most so many times as old as its newest; it is cut when it is twice that. */
const SPAN = 3

/** So many rows are left to the newest segment: half a page, so that a quiet poll is one. */
const HEAD_ROWS = 50
/** The newest segment reaches back at least so far, also where rows are dated ahead. */
const HEAD_MS = MINUTE

/** @param busy segments with a request in flight: they are left as they are */
export function tileByAge(
  context: EngineContext,
  id: string,
  feed: TimelineFeed,
  busy: ReadonlySet<number>,
): void {
  const { segments } = context.store
  const now = context.server.now()
  const movable = (segment: Segment) =>
    isWanted({ feed }, segment, context.options) &&
    segment.listedAt !== null &&
    segment.passStartedAt === null &&
    segment.attempts === 0 &&
    !busy.has(segment.id)

  const begins = headBegins(context, feed)
  let [head, ...older] = segments.of(id, '')
  // Where it was cut because a page failed, it grows back.
  for (const next of older) {
    const isShort = head && head.from !== null && head.from > (begins ?? '')
    if (!head || !isShort || !movable(head) || !movable(next)) break
    head = segments.join(head, next)
  }
  if (head && movable(head) && begins !== undefined && begins > (head.from ?? '')) {
    cutOff(segments, head, begins)
  }
  for (const segment of segments.of(id, '')) {
    let rest = segment
    for (let at = cutAt(rest, now); at !== undefined && movable(rest); at = cutAt(rest, now)) {
      rest = cutOff(segments, rest, at)
    }
  }
  let newer: Segment | undefined
  for (const segment of segments.of(id, '')) {
    const joins = newer && fits(newer, segment, now) && movable(newer) && movable(segment)
    newer = newer && joins ? segments.join(newer, segment) : segment
  }
}

/** Where a segment that spans too much is cut; undefined for one that does not. Pure. */
export function cutAt({ from, to }: Pick<Segment, 'from' | 'to'>, now: number): string | undefined {
  if (to === null) return undefined
  const newest = ageOf(to, now)
  const oldest = from === null ? Number.POSITIVE_INFINITY : ageOf(from, now)
  if (newest >= OLD_MS || oldest <= 2 * SPAN * newest) return undefined
  return new Date(now - SPAN * newest).toISOString()
}

/** Whether two neighbours would span no more than one segment should. Pure. */
export function fits(newer: Pick<Segment, 'to'>, older: Pick<Segment, 'from'>, now: number): boolean {
  if (newer.to === null) return false
  const newest = ageOf(newer.to, now)
  return newest >= OLD_MS || (older.from !== null && ageOf(older.from, now) <= SPAN * newest)
}

function ageOf(at: string, now: number): number {
  return Math.max(now - Date.parse(at), YOUNG_MS)
}

/**
 * Undefined while there are so few rows that one page holds them all. Where more than a page lies at the instant, it
 * is left to the older neighbour, or each poll would list all of it.
 */
function headBegins({ store, server }: EngineContext, feed: TimelineFeed): string | undefined {
  const at = store.rowTimes.afterNewest(feed, HEAD_ROWS)
  if (at === undefined) return undefined
  const isCrowded = store.rowTimes.isMoreThan(feed, 2 * HEAD_ROWS, at)
  const begins = isCrowded ? isoInstant(Date.parse(at) + 1) : at
  const latest = isoInstant(server.now() - HEAD_MS)
  return [begins, latest].sort()[0]
}
