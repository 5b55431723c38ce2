import { PAGING, readPage } from '../../../api/paging.ts'
import { tableNamed } from '../../../catalog/catalog.ts'
import type { Resource, TimelineFeed } from '../../../catalog/resource.ts'
import type { Cell, ParsedItem } from '../../../catalog/row.ts'
import { isoInstant } from '../../../clock.ts'
import { quote } from '../../../store/database/sql.ts'
import type { StoredItem } from '../../../store/store.ts'
import type { Segment } from '../../../store/sync/segments.ts'
import type { EngineContext } from '../../context.ts'
import { newForMs } from '../../deletions/denial.ts'
import { type Missing, probeLater } from '../../deletions/probe-later.ts'
import { isAskable } from '../../deletions/probes.ts'
import { writeRows } from '../../follow-ups/write.ts'
import type { ListOf } from '../../schedule/schedule.ts'
import { createTurns } from '../../schedule/turns.ts'
import type { Job, Reply, Source } from '../../scheduler/job.ts'
import { expectedOrFault } from '../expected.ts'
import { fullLimit, narrowSpan, noteReadable } from '../failed-span.ts'
import { ATTEMPTS_OF_A_PART, FAILURES_OF_ONE_PAGE, isNarrowest, limitAfter } from '../narrowing.ts'
import {
  canCutAtEdge,
  createLoopGuards,
  cutOff,
  cutWhereItStands,
  type LoopGuards,
  leaveRest,
  NOT_FAILED,
  type Query,
  withPassBegun,
  withPassEnded,
} from '../pass.ts'
import { nextCut } from './cuts.ts'
import { tileByAge } from './tiling.ts'
import { missingUndated, noteUndated } from './undated.ts'

/**
 * Newest-first lists that filter on event time alone. Segments tile the time axis; a pass goes down a
 * segment page by page, and finds rows of ours that the list no longer shows as it passes them. One source for each
 * lane: the newest end, what was never read, and what is read again.
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
  const effort = createEffort(context, list, feed)

  const due = () => store.segments.of(id, '').filter(segment => schedule.isListDue(list, segment))

  const pageJob = (asked: Segment): Job => {
    // While it was asked for, the rest of its pass may have been left to another.
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
          // The list failed as a whole: what else of it is put off need not wait any longer.
          if (feedFailures > FAILURES_OF_ONE_PAGE) store.segments.retryNow(id)
          feedFailures = 0
        }
        effort.wasRead(segment)
      },
      refused(status, message) {
        if (status === 400 && asked.cursor) cutWhereItStands(store.segments, current(), 'refused')
        else expectedOrFault(context, where, feed.expected, status, message)
      },
      failed(error) {
        const segment = current()
        // A span that cannot be divided fails because of a row, and says nothing about the list.
        if (!isNarrowest(segment.from, segment.to)) feedFailures += 1
        const queryOf = (rest: Segment) => baseQuery(feed, rest)
        narrowSpan(context, { list, feed, segment, base, error, feedFailures, queryOf })
      },
      over() {
        underWay.delete(asked.id)
        effort.over()
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
        effort.begins(segment)
        return pageJob(segment)
      },
      share: effort.share,
      finished: () => backoffs.isWaiting(id) || (underWay.size === 0 && due().length === 0),
    }
  })
}

/**
 * Has what is left of long passes shared among several, as long as requests could be made that nobody has. Counted
 * from the first pass that somebody waits for until none is left; kept in memory, since what is cut is cut.
 */
function createEffort(
  { store, schedule, server }: EngineContext,
  list: ListOf,
  { table, time }: TimelineFeed,
) {
  const passes = new Set<number>()
  let pages = 0
  let couldBeMore = false

  /** Rows that are dated ahead say nothing about the past. */
  const newest = () => {
    const column = quote(time)
    return store
      .prepare(`SELECT max(${column}) FROM ${quote(table)} WHERE ${column} <= ?`)
      .pluck()
      .get(isoInstant(server.now())) as string | null
  }

  return {
    share: () => {
      couldBeMore = true
    },
    begins(segment: Segment) {
      if (schedule.isAwaited(segment)) passes.add(segment.id)
    },
    /** A page was read, inside its transaction. */
    wasRead(segment: Segment) {
      if (!schedule.isAwaited(segment)) return
      pages += 1
      const open = store.segments
        .of(list.id, '')
        .filter(each => schedule.isListDue(list, each) && schedule.isAwaited(each))
      if (open.length === 0) {
        pages = 0
        passes.clear()
      }
      const at = couldBeMore ? newest() : null
      if (at === null) return
      for (const { id } of open) passes.add(id)
      const cut = nextCut({ open, pages, passes: passes.size, newest: at })
      if (cut) leaveRest(store.segments, cut.segment, cut.at)
    },
    over: () => {
      couldBeMore = false
    },
  }
}

const TIMELINE_LANES = ['head', 'history', 'audit'] as const

/** Makes the axis one segment at first, and cuts what was never listed where the owner's bound lies. */
export function tileAxis(context: EngineContext, feed: string): void {
  const { store, options } = context
  if (store.segments.of(feed, '').length === 0) store.segments.add({ feed, scope: '', from: null, to: null })
  const { since } = options
  if (since === null) return
  for (const segment of store.segments.of(feed, '')) {
    if (!spans(segment, since)) continue
    // A cursor belongs to its query, so what is under way is cut where it stands, and what is below at the bound.
    const rest = segment.edgeAt === null ? segment : cutOff(store.segments, segment, segment.edgeAt)
    if (spans(rest, since)) cutOff(store.segments, rest, since)
  }
}

function spans({ from, to }: Segment, at: string): boolean {
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

/** Bounds are cut to the millisecond while real times have finer digits, so an upper bound is asked for rounded up. */
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

/** Returns whether the pass got any further: an API that minds no bounds answers, and yet shows the same rows again. */
function applyPage(context: EngineContext, work: PageWork, value: unknown, reply: Reply): boolean {
  const { store } = context
  const { resource, list, feed, base, query } = work
  const where = { resource: resource.name, feed: list.id }
  const page = readPage(feed.list.paging, value, query)
  // A span that cannot be divided has failed until it is read to its end, since its first rows may well be readable.
  const isAlone = isNarrowest(work.segment.from, work.segment.to)
  const segment = {
    ...withPassBegun(work.segment, context, where, reply),
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
  context.doubts.missed(segment.id, denyMissing(context, work, edge, reply))
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
  if (edge.isEnd || canCutAtEdge(reached)) noteReadable(context, list, segment)
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
  } else if (work.guards.repeats(segment, page.next)) cutWhereItStands(store.segments, reached, 'repeated')
  else if (edge.reached !== null && edge.reached > (segment.from ?? '') && context.schedule.isLong(segment)) {
    const rest = cutOff(store.segments, reached, edge.reached)
    // What the head owes, its rest owes as well: it is due at once, whenever it was last listed.
    const { passStartedAt, passRound } = segment
    store.segments.save({ ...rest, passStartedAt, passRound })
    markFresh(context, resource, segment)
  } else store.segments.save(reached)
  return edge.isEnd || (canCutAtEdge(reached) && reached.edgeAt !== segment.edgeAt)
}

/** Rows that appear where all had been listed before came so long after they happened. */
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
  store.segments.save(withPassEnded(reached))
  guards.ended(reached)
  context.doubts.passEnded(reached.id)
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

/** The span of event time that a page has settled, and which keys were seen in it. */
interface Edge {
  /** Rows at this instant and older than `below` are settled; null for the end of the axis. */
  above: string | null
  aboveIncluded: boolean
  below: string | null
  belowIncluded: boolean
  seen: ReadonlySet<string>
  reached: string | null
  keysAtEdge: readonly string[]
  /** The pass has had all of its segment. */
  isEnd: boolean
  /** So many rows of the page belong to the segment below. */
  beyond: number
}

/**
 * Rows at the very instant of a page's end may go on on the next one, so they are settled once that has passed it.
 * The lower bound of a segment is inclusive also when times are cut to the millisecond; the upper is not, since a
 * row within that millisecond may lie above it, where the neighbour lists it.
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
  // A query that goes on below the segment is left once all at the very bound was seen.
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
 * Rows of ours within the span that the list did not show, and that were there before it was asked; what seems to
 * come from the future was stored while this machine's clock was ahead. Returns how many are newly suspected.
 */
function denyMissing(context: EngineContext, { list, feed }: PageWork, edge: Edge, reply: Reply): number {
  const { store, now } = context
  const time = quote(feed.time)
  const above = edge.aboveIncluded ? '<=' : '<'
  const below = edge.belowIncluded ? '>=' : '>'
  const knownBefore = isoInstant(Date.parse(reply.sentAt) - newForMs(context))
  const candidates = store
    .prepare(
      `SELECT id AS key, ${time} AS at FROM ${quote(feed.table)}
       WHERE ${time} ${above} ? AND ${time} ${below} ? AND _deleted_at IS NULL
         AND (_first_seen_at < ? OR _first_seen_at > ?)`,
    )
    .all(edge.above ?? '~', edge.below ?? '', knownBefore, now()) as Missing[]
  const isOldestEnd = edge.isEnd && edge.below === null
  const undated = isOldestEnd ? missingUndated(context, list.id, feed, knownBefore) : []
  return probeLater(
    context,
    { table: feed.table, probe: `${list.id}.probe`, scope: '' },
    [...candidates, ...undated].filter(({ key }) => !edge.seen.has(key) && isAskable(feed.evidence, key)),
  )
}
