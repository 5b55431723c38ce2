import { isoInstant } from '../../../base/clock.ts'
import { UUID_GLOB } from '../../../base/uuid.ts'
import type { DeclaredFeed } from '../../../catalog/feeds.ts'
import type { TimelineFeed } from '../../../declare/resource.ts'
import type { Segment } from '../../../store/sync/segments.ts'
import type { EngineContext } from '../../context/context.ts'
import type { Source } from '../../context/job.ts'
import { newRowGraceMs } from '../../deletions/denial.ts'
import { dueSegments } from '../../due/due.ts'
import { listPage } from '../apply-page.ts'
import { narrowSpan } from '../failed-span.ts'
import { createListSources, type ListMode } from '../lists.ts'
import { FAILURES_OF_ONE_PAGE } from '../narrowing.ts'
import { cutOff, isCursorRefusal, recoverFromDeadCursor, splitPass } from '../pass.ts'
import { handleRefusal } from '../refusals.ts'
import { nextCut } from './cuts.ts'
import { applyTimelinePage, isUnboundedPassDue } from './page.ts'
import { baseQuery, hasSmallerPages, unboundedQuery } from './query.ts'

/**
 * Reads lists that return the newest rows first and filter only on event time. Segments cover the time axis without
 * gaps. A pass reads a segment page by page. Each page shows which stored rows in its span the list no longer has.
 * There is one source for each lane. In the daemon, `head` reads the newest segment, `history` segments that were never
 * read, `audit` segments that are read again.
 */
export function createTimeline(context: EngineContext, list: DeclaredFeed<TimelineFeed>): Source[] {
  const { store } = context
  const { id, feed } = list
  const splitter = createPassSplitter(context, list)

  const ask: ListMode['ask'] = (asked, { guard, underWay, failures }) => {
    // A split may have moved the older part of this pass to another segment while the request was in flight.
    const current = () => store.segments.find(asked.id) ?? asked
    const base =
      asked.query ??
      (isUnboundedPassDue(context, list, asked) ? unboundedQuery(feed) : baseQuery(feed, asked))
    const query = { ...base, ...asked.cursor }
    splitter.noteStart(asked)
    return {
      request: { route: feed.list.path, path: feed.list.path, query },
      isPart: hasSmallerPages(feed, base),
      answer(value, reply) {
        const segment = { ...current(), wantedAt: asked.wantedAt }
        const page = listPage(context, list, { query, segment }, { value, reply })
        if (applyTimelinePage(context, { list, base, guard, underWay }, page)) {
          // The whole list had failed and can be read again, so no row of the other segments was at fault.
          if (failures.count() > FAILURES_OF_ONE_PAGE) store.segments.retryWhole(id)
          failures.end()
        }
        splitter.notePage(segment)
      },
      refused(status, message) {
        if (isCursorRefusal(status, asked.cursor)) recoverFromDeadCursor(store.segments, current(), 'refused')
        else handleRefusal(context, list, status, message)
      },
      failed(error) {
        const segment = current()
        narrowSpan(context, {
          list,
          segment,
          limit: Number(base['limit']),
          error,
          failures,
          isAnswered: true,
          smallerPages: (rest, limit) => ({ ...baseQuery(feed, rest), limit: String(limit) }),
          steppedOver({ from, to }) {
            probeUnread(context, list, { from, to: segment.edgeAt ?? to, but: segment.edgeKeys })
          },
        })
      },
      over: splitter.over,
    }
  }

  return createListSources(context, {
    list,
    lanes: ['head', 'history', 'audit'],
    prepare: () => true,
    ask,
    share: splitter.share,
  })
}

/**
 * Splits long passes while the API would take more requests than there are segments to read. To decide, it counts pages
 * and passes from the first awaited pass until no segment is awaited. The counts are in memory; the cuts are stored.
 */
function createPassSplitter(context: EngineContext, list: DeclaredFeed<TimelineFeed>) {
  const { store, schedule, server } = context
  const { table, time } = list.feed
  const passes = new Set<number>()
  let pages = 0
  let hasSpareRequests = false

  /** Time of the newest row, without rows dated in the future: they would distort the estimate. */
  const newest = () => store.rowTimes.newest({ table, time }, isoInstant(server.now()))

  return {
    share: () => {
      hasSpareRequests = true
    },
    noteStart(segment: Segment) {
      if (schedule.isAwaited(segment)) passes.add(segment.id)
    },
    /** Counts a page that was read. Call it inside the page's transaction. */
    notePage(segment: Segment) {
      if (!schedule.isAwaited(segment)) return
      pages += 1
      const open = dueSegments(context, list).filter(schedule.isAwaited)
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

/** The most rows to probe each time a span is stepped over: thousands of rows may have the same instant. */
const MOST_AT_ONCE = 50

interface UnreadSpan {
  /** Both ends are included. */
  from: string | null
  to: string | null
  /** Keys to leave out, since the list has shown them. */
  but: readonly string[]
}

/**
 * Writes probes for stored rows in a span that is stepped over, because one unreadable row keeps the list from showing
 * the other rows there. The probed rows do not become suspected, since no complete pass has missed them. A row that its
 * probe finds is due again after a week. Meanwhile further calls probe other rows.
 */
function probeUnread(
  context: EngineContext,
  { id, feed }: DeclaredFeed<TimelineFeed>,
  span: UnreadSpan,
): void {
  const { store, clock } = context
  const probe = `${id}.probe`
  const now = context.now()
  const rows = store.rowTimes.unasked(feed, probe, {
    ...span,
    keys: feed.evidence.by === 'ids' ? UUID_GLOB : '*',
    before: isoInstant(clock.now() - newRowGraceMs(context)),
    now,
    limit: MOST_AT_ONCE,
  })
  for (const { key, at } of rows)
    store.tasks.demand({ feed: probe, key, sortAt: at, dueAt: store.dueClock.after(0) })
}

/** Adds a segment for the whole time axis if there is none, and cuts the segments at `sync.since`. */
export function addFirstSegment(context: EngineContext, feed: string): void {
  const { store, options } = context
  if (store.segments.of(feed, '').length === 0) store.segments.add({ feed, scope: '', from: null, to: null })
  const { since } = options
  if (since === null) return
  for (const segment of store.segments.of(feed, '')) {
    if (!hasWithin(segment, since)) continue
    // A cursor is valid only with its own query. So a pass in progress is cut at its last row first, then at the bound.
    const rest = segment.edgeAt === null ? segment : cutOff(store.segments, segment, segment.edgeAt)
    if (hasWithin(rest, since)) cutOff(store.segments, rest, since)
  }
}

function hasWithin({ from, to }: Segment, at: string): boolean {
  return (from === null || from < at) && (to === null || to > at)
}
