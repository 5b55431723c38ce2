import type { Query } from '../../../api/request.ts'
import { isoInstant } from '../../../base/clock.ts'
import { columnAt, keyAt } from '../../../catalog/catalog.ts'
import type { DeclaredFeed } from '../../../catalog/feeds.ts'
import type { Cell, ParsedItem } from '../../../declare/parsed-item.ts'
import type { TimelineFeed } from '../../../declare/resource.ts'
import type { Segment } from '../../../store/sync/segments.ts'
import type { EngineContext } from '../../context/context.ts'
import { MONTH_MS } from '../../context/intervals.ts'
import type { Reply } from '../../context/job.ts'
import { newRowGraceMs } from '../../deletions/denial.ts'
import { endProbes, type MissingRow, probeLater } from '../../deletions/probe-later.ts'
import { isHead } from '../../due/segment-conditions.ts'
import { wantSegment } from '../../due/wants.ts'
import { storeRows, writeFollowUps } from '../../follow-ups/write.ts'
import { continuePass, type ListPage, requireParsed, segmentAfterPage } from '../apply-page.ts'
import { noteArrivals } from '../arrivals.ts'
import { isAskable } from '../keys/key-requests.ts'
import { isNarrowest, limitAfter } from '../narrowing.ts'
import type { PageGuard } from '../page-guard.ts'
import { canCutAtEdge, cutOff, endPassOf, passOfRest, recoverFromDeadCursor } from '../pass.ts'
import { resolveUnread } from '../put-off.ts'
import { baseQuery, fullLimit, hasSmallerPages, isUnbounded, nextMillisecond } from './query.ts'
import { tileByAge } from './tiling.ts'

/** What the steps of a page need besides the page itself. */
export interface TimelineWork {
  list: DeclaredFeed<TimelineFeed>
  /** The query of the pass, without its cursor. */
  base: Query
  guard: PageGuard
  /** Segments with a request in flight, which must stay as they are. */
  underWay: ReadonlySet<number>
}

/**
 * Stores a page (`apply-page.ts` says why in this order). Returns whether the pass made progress. It makes none if the
 * API ignores bounds and repeats rows.
 */
export function applyTimelinePage(context: EngineContext, work: TimelineWork, read: ListPage): boolean {
  const { page, reply, segment } = read
  const { resource, id, feed } = work.list
  const parse = context.parsing.parser(feed.table)
  const report = context.parsing.report(work.list, '')
  const items = page.items.flatMap(item => parse(item, report) ?? [])
  requireParsed(page, items)
  const options = { ticket: reply.ticket, now: context.now() }
  const stored = storeRows(context, resource, feed.table, items, options)
  if (segment.listedAt !== null) noteArrivals(context, work.list, stored)
  noteUndated(context, work.list, items)
  writeFollowUps(context, feed.table, stored, feed.followUps)
  const edge = passEdge(work, read, items)
  endProbes(context, { resource, probe: `${id}.probe`, scope: '' }, [...edge.seen])
  context.missedRows.note(segment.id, denyMissing(context, work, edge, reply))
  return advance(context, work, read, edge)
}

function advance(
  context: EngineContext,
  work: TimelineWork,
  { segment, page }: ListPage,
  edge: Edge,
): boolean {
  const { segments } = context.store
  const { list, base, guard } = work
  const { hasNew } = edge
  // A span that cannot be divided counts as failed until it is read to its end, even if its first rows can be read.
  const isAlone = isNarrowest('timeline', segment)
  const reached: Segment = {
    ...segmentAfterPage(segment, page, { rows: page.items.length - edge.beyond, hasNew }),
    ...(hasSmallerPages(list.feed, base) || isAlone ? { attempts: segment.attempts } : {}),
    retryAt: isAlone ? segment.retryAt : null,
    query: base,
    edgeAt: edge.reached,
    edgeKeys: edge.keysAtEdge,
  }
  if (edge.isEnd || canCutAtEdge(reached)) resolveUnread(context, list, segment)
  const limit = limitAfter(reached.pages, Number(base['limit']), fullLimit(list.feed))
  if (edge.isEnd) endTimelinePass(context, work, reached)
  else if (limit > Number(base['limit']) && edge.reached !== null && canCutAtEdge(reached))
    enlargePages(context, list.feed, reached, { at: edge.reached, limit })
  else if (edge.reached !== null && edge.reached > (segment.from ?? '') && context.schedule.isLong(segment)) {
    const rest = cutOff(segments, reached, edge.reached)
    // The rest belongs to the current pass of the newest segment, so it is due at once, even if it was listed recently.
    const { passStartedAt, passRound } = segment
    segments.save({ ...rest, passStartedAt, passRound })
    markFresh(context, list, segment)
  } else
    continuePass(context, list, { reached, guard, hasNew }, () =>
      recoverFromDeadCursor(segments, reached, 'repeated'),
    )
  return edge.isEnd || (canCutAtEdge(reached) && reached.edgeAt !== segment.edgeAt)
}

/**
 * Reads the rest of a span with larger pages, after some smaller ones. A cursor is valid only with its own query, so
 * the rest becomes a separate segment with a new query.
 */
function enlargePages(
  { store: { segments } }: EngineContext,
  feed: TimelineFeed,
  reached: Segment,
  { at, limit }: { at: string; limit: number },
): void {
  const rest = cutOff(segments, reached, at)
  const query = limit < fullLimit(feed) ? { ...baseQuery(feed, rest), limit: String(limit) } : null
  segments.save({
    ...rest,
    ...passOfRest(reached),
    query,
    attempts: query === null ? 0 : reached.attempts,
  })
}

function endTimelinePass(
  context: EngineContext,
  { list, base, underWay }: TimelineWork,
  reached: Segment,
): void {
  const { store, schedule, log } = context
  endPassOf(store.segments, reached)
  if (reached.from === null) noteUnboundedPass(context, list, isUnbounded(list.feed, base))
  const againMs = context.missedRows.passEnded(reached.id, { isEmpty: reached.rows === 0 })
  if (againMs !== undefined) wantSegment(context, reached, againMs)
  if (isHead(reached, context.server.now())) markFresh(context, list, reached)
  log.debug('A span of event time was listed to its end', {
    resource: list.resource,
    pages: reached.pages,
    rows: reached.rows,
    from: reached.from,
    to: reached.to,
  })
  if (!schedule.isTimed) return
  const busy = new Set(underWay)
  busy.delete(reached.id)
  tileByAge(context, list, busy)
}

function markFresh({ store }: EngineContext, { resource }: DeclaredFeed, { passStartedAt }: Segment): void {
  if (passStartedAt) store.state.fresh(resource, passStartedAt)
}

/** The span of event time that a page covers completely, and the keys that were seen in it. */
interface Edge {
  /** The newer end of the span; null for the newest end of the time axis. */
  above: string | null
  aboveIncluded: boolean
  /** The older end of the span; null for the oldest end of the time axis. */
  below: string | null
  belowIncluded: boolean
  seen: ReadonlySet<string>
  /** Time of the oldest row that the pass has read so far. */
  reached: string | null
  keysAtEdge: readonly string[]
  /** Whether the page has rows beyond `edgeAt` and `edgeKeys` of the checkpoint, or rows without a time. */
  hasNew: boolean
  /** The pass has read its whole segment. */
  isEnd: boolean
  /** Number of rows on the page that belong to other segments. */
  beyond: number
}

/**
 * The rows at the exact instant where a page ends may continue on the next page. So the span includes that instant only
 * after the next page has passed it. The span includes the lower bound of its segment, even when times are cut to the
 * millisecond. It excludes the upper bound: a row of the same millisecond may be newer, and the newer segment lists it.
 */
function passEdge(
  { list: { feed }, base }: TimelineWork,
  { segment, page }: ListPage,
  items: readonly ParsedItem[],
): Edge {
  const [timeIndex, keyIndex] = [columnAt(feed.table, feed.time), keyAt(feed.table)]
  const times = items.flatMap(({ cells }) => (typeof cells[timeIndex] === 'string' ? [cells[timeIndex]] : []))
  const [oldest] = [...times, ...(segment.edgeAt === null ? [] : [segment.edgeAt])].sort()
  const reached = oldest ?? null
  // Rows without a time cover no span, so the span of the next page begins at the top of the segment too.
  const isTop = segment.pages === 0 || segment.edgeAt === null
  // After a split, the query reaches back beyond its segment. The pass ends at the first row older than the segment.
  const bound = base[feed.bounds.from] === segment.from ? null : segment.from
  const isBeyond = (time: Cell | undefined) => bound !== null && typeof time === 'string' && time < bound
  const isAbove = (time: Cell | undefined) =>
    segment.to !== null && typeof time === 'string' && time > nextMillisecond(segment.to)
  const isEnd = page.next === null || isBeyond(reached)
  const atEdge = items
    .filter(({ cells }) => cells[timeIndex] === reached)
    .map(({ cells }) => String(cells[keyIndex]))
  const keysAtEdge = reached === segment.edgeAt ? [...new Set([...segment.edgeKeys, ...atEdge])] : atEdge
  return {
    above: isTop ? segment.to : segment.edgeAt,
    aboveIncluded: !isTop,
    below: isEnd ? segment.from : reached,
    belowIncluded: isEnd,
    seen: new Set([...items.map(({ cells }) => String(cells[keyIndex])), ...segment.edgeKeys]),
    reached,
    keysAtEdge,
    hasNew:
      reached !== segment.edgeAt ||
      keysAtEdge.length > segment.edgeKeys.length ||
      times.length < items.length,
    isEnd,
    beyond: items.filter(({ cells }) => isBeyond(cells[timeIndex]) || isAbove(cells[timeIndex])).length,
  }
}

/**
 * Denies stored rows within the span that the list did not show, and plans a probe for each, if they were stored long
 * enough before the request (`newRowGraceMs`). A row whose first-seen time is in the future was stored under a clock
 * that was ahead, so it is denied too. Returns how many rows are newly suspected.
 */
function denyMissing(context: EngineContext, { list }: TimelineWork, edge: Edge, reply: Reply): number {
  const { store, now } = context
  const { resource, id, feed } = list
  if (edge.reached === null && !edge.isEnd) return 0
  const knownBefore = isoInstant(Date.parse(reply.sentAt) - newRowGraceMs(context))
  const candidates = store.rowTimes.within(feed, edge, { before: knownBefore, now: now() })
  const isOldestEnd = edge.isEnd && edge.below === null
  const undated = isOldestEnd ? missingUndated(context, list, knownBefore) : []
  return probeLater(
    context,
    { resource, table: feed.table, probe: `${id}.probe`, scope: '' },
    [...candidates, ...undated].filter(({ key }) => !edge.seen.has(key) && isAskable(feed.evidence, key)),
  )
}

/**
 * An undated row of a timeline has no time, or one that cannot be parsed. It belongs to no segment, so its key is noted
 * whenever a page shows it. Between two passes over the oldest segment, every other segment is read at least once. So
 * an undated row whose key is not noted when a pass over the oldest segment ends is missing.
 */

function noteUndated(
  { store }: EngineContext,
  { id, feed: { table, time } }: DeclaredFeed<TimelineFeed>,
  items: readonly ParsedItem[],
): void {
  const [timeIndex, keyIndex] = [columnAt(table, time), keyAt(table)]
  for (const { cells } of items) {
    if (cells[timeIndex] === null) store.seen.note(id, '', String(cells[keyIndex]))
  }
}

/** How many noted keys one statement removes. There are few undated rows. */
const FORGOTTEN_AT_ONCE = 1000

const unboundedPassOf = ({ id }: DeclaredFeed) => ({ feed: `${id}.walk`, key: '' })

/**
 * Plans the next unbounded pass after a pass over the oldest segment. It is needed only while an undated row is stored.
 */
function noteUnboundedPass(
  context: EngineContext,
  list: DeclaredFeed<TimelineFeed>,
  wasUnbounded: boolean,
): void {
  const { tasks, rowTimes } = context.store
  if (!rowTimes.hasUndated(list.feed)) tasks.remove(unboundedPassOf(list))
  else if (wasUnbounded)
    tasks.done(unboundedPassOf(list), {
      round: context.rounds.number(list.resource),
      dueAt: context.after(MONTH_MS),
    })
}

/**
 * Whether the pass over the oldest segment lists the whole axis this time, without bounds: once in 30 days while any
 * row without a time is stored. More such rows may have appeared, and no other pass shows them. The task of a feed that
 * no source reads stores its due time.
 */
export function isUnboundedPassDue(
  { store }: EngineContext,
  list: DeclaredFeed<TimelineFeed>,
  { from, to }: Segment,
): boolean {
  if (from !== null || to === null) return false
  const planned = store.tasks.find(unboundedPassOf(list))
  const isDue = planned === undefined || planned.dueAt <= store.dueClock.now()
  return isDue && store.rowTimes.hasUndated(list.feed)
}

/** Call it when a pass over the oldest segment ends. It removes all notes, so later notes count for the next pass. */
function missingUndated(
  { store, now }: EngineContext,
  { id, feed }: DeclaredFeed<TimelineFeed>,
  sentAt: string,
): MissingRow[] {
  const keys = store.rowTimes.undated(feed, id, { before: sentAt, now: now() })
  while (store.seen.forget(id, '', FORGOTTEN_AT_ONCE));
  return keys.map(key => ({ key, at: null }))
}
