import { PAGING, readPage } from '../../../api/paging.ts'
import { tableNamed } from '../../../catalog/catalog.ts'
import type { Resource, TimelineFeed } from '../../../catalog/resource.ts'
import type { Cell, ParsedItem } from '../../../catalog/row.ts'
import { isoInstant } from '../../../clock.ts'
import type { StoredItem } from '../../../store/rows/write.ts'
import type { Segment } from '../../../store/sync/segments.ts'
import type { EngineContext } from '../../context.ts'
import { newRowGraceMs } from '../../deletions/denial.ts'
import { probeLater } from '../../deletions/probe-later.ts'
import { isAskable } from '../../deletions/probes.ts'
import { writeRows } from '../../follow-ups/write.ts'
import type { ListOf } from '../../schedule/schedule.ts'
import { createTurns } from '../../schedule/turns.ts'
import type { Job, Reply, Source } from '../../scheduler/job.ts'
import { handleRefusal } from '../expected.ts'
import { fullLimit, narrowSpan, resolveUnread } from '../failed-span.ts'
import { ATTEMPTS_OF_A_PART, FAILURES_OF_ONE_PAGE, isNarrowest, limitAfter } from '../narrowing.ts'
import {
  canCutAtEdge,
  createLoopGuards,
  cutOff,
  type LoopGuards,
  NOT_FAILED,
  type Query,
  recoverFromDeadCursor,
  segmentAfterPass,
  segmentInPass,
  splitPass,
} from '../pass.ts'
import { nextCut } from './cuts.ts'
import { tileByAge } from './tiling.ts'
import { missingUndated, noteUndated } from './undated.ts'

/**
 * Reads newest-first lists that filter only on event time. Segments tile the time axis. A pass reads a segment page by
 * page, and each page shows which stored rows in its span the list no longer has. One source for each lane: the newest
 * end, segments that were never read, and segments that are read again.
 */
export function createTimeline(
  context: EngineContext,
  resource: Resource,
  name: string,
  feed: TimelineFeed,
): Source[] {
  const { store, schedule, backoffs } = context
  const id = `${resource.name}.${name}`
  const where = { resource: resource.name, feed: id }
  const list: ListOf = { resource: resource.name, id, feed }
  const underWay = new Set<number>()
  const guards = createLoopGuards()
  let feedFailures = 0
  const splitter = createPassSplitter(context, list, feed)

  const due = () => store.segments.of(id, '').filter(segment => schedule.isListDue(list, segment))

  const pageJob = (asked: Segment): Job => {
    // The older part of its pass may have been cut off while the request was in flight.
    const current = () => store.segments.find(asked.id) ?? asked
    const base = asked.query ?? baseQuery(feed, asked)
    const query = { ...base, ...asked.cursor }
    return {
      ...where,
      expected: feed.expected,
      request: { resource: resource.name, route: feed.list.path, path: feed.list.path, query },
      ...(isPart(feed, base) ? { attempts: ATTEMPTS_OF_A_PART } : {}),
      answer(value, reply) {
        const segment = current()
        const work = { resource, list, feed, segment, base, query, guards, underWay }
        if (applyPage(context, work, value, reply)) {
          // The whole list had failed and now answers: its other segments need not wait any longer.
          if (feedFailures > FAILURES_OF_ONE_PAGE) store.segments.retryNow(id)
          feedFailures = 0
        }
        splitter.notePage(segment)
      },
      refused(status, message) {
        if (status === 400 && asked.cursor) recoverFromDeadCursor(store.segments, current(), 'refused')
        else handleRefusal(context, where, feed.expected, status, message)
      },
      failed(error) {
        const segment = current()
        // A span that cannot be divided fails because of a row, which says nothing about the list.
        if (!isNarrowest(segment.from, segment.to)) feedFailures += 1
        const queryOf = (rest: Segment) => baseQuery(feed, rest)
        narrowSpan(context, { list, feed, segment, base, error, feedFailures, queryOf })
      },
      over() {
        underWay.delete(asked.id)
        splitter.over()
      },
    }
  }

  return TIMELINE_LANES.map(lane => {
    const turns = createTurns<Segment>(segment => schedule.overdue(list, segment))
    return {
      ...where,
      lane,
      next() {
        if (backoffs.isWaiting(id)) return undefined
        const isMine = (one: Segment) => !underWay.has(one.id) && schedule.laneOf(list, one) === lane
        const segment = turns.take(due().filter(isMine))
        if (!segment) return undefined
        underWay.add(segment.id)
        guards.asking(segment)
        splitter.noteStart(segment)
        return pageJob(segment)
      },
      share: splitter.share,
      finished: () => backoffs.isWaiting(id) || (underWay.size === 0 && due().length === 0),
    }
  })
}

/**
 * Splits long passes while more requests could be made than there are segments to read. Counts pages and passes from
 * the first awaited pass until none is left. Kept in memory: the cuts themselves are stored.
 */
function createPassSplitter(
  { store, schedule, server }: EngineContext,
  list: ListOf,
  { table, time }: TimelineFeed,
) {
  const passes = new Set<number>()
  let pages = 0
  let hasSpareRequests = false

  /** Time of the newest row. Rows dated in the future say nothing about the past. */
  const newest = () => store.rowTimes.newest({ table, time }, isoInstant(server.now()))

  return {
    share: () => {
      hasSpareRequests = true
    },
    noteStart(segment: Segment) {
      if (schedule.isAwaited(segment)) passes.add(segment.id)
    },
    /** A page was read. Call it inside its transaction. */
    notePage(segment: Segment) {
      if (!schedule.isAwaited(segment)) return
      pages += 1
      const open = store.segments
        .of(list.id, '')
        .filter(each => schedule.isListDue(list, each) && schedule.isAwaited(each))
      if (open.length === 0) {
        pages = 0
        passes.clear()
      }
      const at = hasSpareRequests ? newest() : null
      if (at === null) return
      for (const { id } of open) passes.add(id)
      const cut = nextCut({ open, pages, passes: passes.size, newest: at })
      if (cut) splitPass(store.segments, cut.segment, cut.at)
    },
    over: () => {
      hasSpareRequests = false
    },
  }
}

const TIMELINE_LANES = ['head', 'history', 'audit'] as const

/** Adds one segment for the whole axis at first, and cuts the segments at the owner's bound. */
export function tileAxis(context: EngineContext, feed: string): void {
  const { store, options } = context
  if (store.segments.of(feed, '').length === 0) store.segments.add({ feed, scope: '', from: null, to: null })
  const { since } = options
  if (since === null) return
  for (const segment of store.segments.of(feed, '')) {
    if (!hasWithin(segment, since)) continue
    // A cursor is valid only with its query, so a current pass is first cut where it stands, then below at the bound.
    const rest = segment.edgeAt === null ? segment : cutOff(store.segments, segment, segment.edgeAt)
    if (hasWithin(rest, since)) cutOff(store.segments, rest, since)
  }
}

function hasWithin({ from, to }: Segment, at: string): boolean {
  return (from === null || from < at) && (to === null || to > at)
}

function baseQuery({ list, bounds }: TimelineFeed, { from, to }: Segment): Query {
  return {
    ...list.query,
    limit: String(PAGING[list.paging].maxLimit),
    ...(from === null ? {} : { [bounds.from]: from }),
    ...(to === null ? {} : { [bounds.to]: nextMillisecond(to) }),
  }
}

/** True for a pass with smaller pages than usual, after one failed. */
function isPart(feed: TimelineFeed, base: Query): boolean {
  return Number(base['limit']) < fullLimit(feed)
}

/** The API cuts bounds to the millisecond but its times are finer, so a query rounds the upper bound up. */
function nextMillisecond(instant: string): string {
  return new Date(Date.parse(instant) + 1).toISOString()
}

interface PageWork {
  resource: Resource
  list: ListOf
  feed: TimelineFeed
  segment: Segment
  base: Query
  query: Query
  guards: LoopGuards
  /** Segments with a request in flight, which must stay as they are. */
  underWay: ReadonlySet<number>
}

/** Returns whether the pass made progress: an API that ignores bounds may return the same rows again. */
function applyPage(context: EngineContext, work: PageWork, value: unknown, reply: Reply): boolean {
  const { store } = context
  const { resource, list, feed, base, query } = work
  const where = { resource: resource.name, feed: list.id }
  const page = readPage(feed.list.paging, value, query)
  // A span that cannot be divided counts as failed until it is read to its end: its first rows may be readable.
  const isAlone = isNarrowest(work.segment.from, work.segment.to)
  const segment = {
    ...segmentInPass(work.segment, context, where, reply),
    ...(isAlone ? {} : { retryAt: null }),
  }
  const report = context.report(where, '')
  const parse = context.parser(feed.table)
  const items = page.items.flatMap(item => parse(item, report) ?? [])
  const stored = writeRows(
    context,
    where,
    feed.table,
    items,
    { ticket: reply.ticket, now: context.now() },
    feed.followUps,
  )
  if (segment.listedAt !== null) noteArrivals(context, work, stored)
  noteUndated(context, list.id, feed, items)
  const edge = passEdge(work, segment, items, page.next === null)
  store.tasks.removeAll(`${list.id}.probe`, '', [...edge.seen])
  context.missedRows.note(segment.id, denyMissing(context, work, edge, reply))
  const reached: Segment = {
    ...segment,
    query: base,
    ...(isPart(feed, base) || isAlone ? {} : NOT_FAILED),
    cursor: page.next,
    pages: segment.pages + 1,
    rows: (segment.pages === 0 ? 0 : segment.rows) + page.items.length - edge.beyond,
    edgeAt: edge.reached,
    edgeKeys: edge.keysAtEdge,
  }
  if (edge.isEnd || canCutAtEdge(reached)) resolveUnread(context, list, segment)
  const limit = limitAfter(reached.pages, Number(base['limit']), fullLimit(feed))
  if (edge.isEnd) endTimelinePass(context, work, reached)
  else if (limit > Number(base['limit']) && edge.reached !== null && canCutAtEdge(reached)) {
    const rest = cutOff(store.segments, reached, edge.reached)
    const { passStartedAt, passRound } = segment
    const query = limit < fullLimit(feed) ? { ...baseQuery(feed, rest), limit: String(limit) } : null
    store.segments.save({
      ...rest,
      ...(rest.listedAt !== null && { passStartedAt, passRound }),
      query,
      attempts: query === null ? 0 : segment.attempts,
    })
  } else if (work.guards.repeats(segment, page.next))
    recoverFromDeadCursor(store.segments, reached, 'repeated')
  else if (edge.reached !== null && edge.reached > (segment.from ?? '') && context.schedule.isLong(segment)) {
    const rest = cutOff(store.segments, reached, edge.reached)
    // The rest belongs to the current pass of the head, so it is due at once, whenever it was last listed.
    const { passStartedAt, passRound } = segment
    store.segments.save({ ...rest, passStartedAt, passRound })
    markFresh(context, resource, segment)
  } else store.segments.save(reached)
  return edge.isEnd || (canCutAtEdge(reached) && reached.edgeAt !== segment.edgeAt)
}

/** A new row in a span that was listed before shows how long after its event time rows may appear. */
function noteArrivals(
  { store, server }: EngineContext,
  { resource, feed }: PageWork,
  stored: readonly StoredItem[],
): void {
  const timeAt = Object.keys(tableNamed(feed.table).columns).indexOf(feed.time)
  for (const { item, written } of stored) {
    const time = item.cells[timeAt]
    if (written.status !== 'inserted' || typeof time !== 'string') continue
    store.arrivals.note(resource.name, server.now() - Date.parse(time))
  }
}

function endTimelinePass(
  context: EngineContext,
  { resource, list, feed, underWay, segment, guards }: PageWork,
  reached: Segment,
): void {
  const { store, schedule, log } = context
  store.segments.save(segmentAfterPass(reached))
  guards.ended(reached)
  context.missedRows.passEnded(reached.id)
  if (reached.to === null) markFresh(context, resource, reached)
  log.debug('A span of event time was listed to its end', {
    resource: resource.name,
    pages: reached.pages,
    rows: reached.rows,
    from: reached.from,
    to: reached.to,
  })
  if (!schedule.isTimed) return
  const busy = new Set(underWay)
  busy.delete(segment.id)
  tileByAge(context, list.id, feed, busy)
}

function markFresh({ store }: EngineContext, { name }: Resource, { passStartedAt }: Segment): void {
  if (passStartedAt) store.state.fresh(name, passStartedAt)
}

/** The span of event time that a page covers completely, and the keys that were seen in it. */
interface Edge {
  /** The newer end of the span; null for the end of the axis. */
  above: string | null
  aboveIncluded: boolean
  /** The older end. */
  below: string | null
  belowIncluded: boolean
  seen: ReadonlySet<string>
  /** Time of the oldest row so far. */
  reached: string | null
  keysAtEdge: readonly string[]
  /** The pass has read its whole segment. */
  isEnd: boolean
  /** Number of rows on the page that belong to the older segment. */
  beyond: number
}

/**
 * Rows at the exact instant of a page's end may continue on the next page, so that instant is covered only once the
 * next page has passed it. The lower bound of a segment is inclusive even when times are cut to the millisecond. The
 * upper bound is not: a row within that millisecond may lie above it, where the neighbour lists it.
 */
function passEdge(
  { feed, base }: PageWork,
  segment: Segment,
  items: readonly ParsedItem[],
  isLast: boolean,
): Edge {
  const columns = Object.keys(tableNamed(feed.table).columns)
  const [timeAt, keyAt] = [columns.indexOf(feed.time), columns.indexOf('id')]
  const times = items.flatMap(({ cells }) => (typeof cells[timeAt] === 'string' ? [cells[timeAt]] : []))
  const [oldest] = [...times, ...(segment.edgeAt === null ? [] : [segment.edgeAt])].sort()
  const reached = oldest ?? null
  const first = segment.pages === 0
  // A query that goes on below the segment ends once all rows at the exact bound were seen.
  const bound = base[feed.bounds.from] === segment.from ? null : segment.from
  const isBeyond = (time: Cell | undefined) => bound !== null && typeof time === 'string' && time < bound
  const isEnd = isLast || isBeyond(reached)
  const atEdge = items
    .filter(({ cells }) => cells[timeAt] === reached)
    .map(({ cells }) => String(cells[keyAt]))
  return {
    above: first ? segment.to : segment.edgeAt,
    aboveIncluded: !first,
    below: isEnd ? segment.from : reached,
    belowIncluded: isEnd,
    seen: new Set([...items.map(({ cells }) => String(cells[keyAt])), ...segment.edgeKeys]),
    reached,
    keysAtEdge: reached === segment.edgeAt ? [...new Set([...segment.edgeKeys, ...atEdge])] : atEdge,
    isEnd,
    beyond: items.filter(({ cells }) => isBeyond(cells[timeAt])).length,
  }
}

/**
 * Suspects stored rows within the span that the list did not show, if they were stored before the request. Rows that
 * seem to be from the future were stored under a clock that was ahead. Returns how many are newly suspected.
 */
function denyMissing(context: EngineContext, { list, feed }: PageWork, edge: Edge, reply: Reply): number {
  const { store, now } = context
  const knownBefore = isoInstant(Date.parse(reply.sentAt) - newRowGraceMs(context))
  const candidates = store.rowTimes.within(feed, edge, { before: knownBefore, now: now() })
  const isOldestEnd = edge.isEnd && edge.below === null
  const undated = isOldestEnd ? missingUndated(context, list.id, feed, knownBefore) : []
  return probeLater(
    context,
    { table: feed.table, probe: `${list.id}.probe`, scope: '' },
    [...candidates, ...undated].filter(({ key }) => !edge.seen.has(key) && isAskable(feed.evidence, key)),
  )
}
