import type { Query } from '../../../api/request.ts'
import { isoInstant } from '../../../base/clock.ts'
import type { ParleyError } from '../../../base/errors.ts'
import { UUID_GLOB } from '../../../base/uuid.ts'
import type { DeclaredFeed } from '../../../catalog/feeds.ts'
import type { TimelineFeed } from '../../../declare/resource.ts'
import { NO_PASS, type Segment } from '../../../store/sync/segments.ts'
import type { EngineContext } from '../../context/context.ts'
import { newRowGraceMs } from '../../deletions/denial.ts'
import { aloneBackoffMs, FAILURES_OF_ONE_PAGE, isSteppedOver, stepAfterFailedPage } from '../narrowing.ts'
import { canCutAtEdge, cutFailed, cutOff, passOfRest } from '../pass.ts'
import { noteUnread, putOffList } from '../put-off.ts'
import { baseQuery } from './query.ts'

/** A span of a timeline in which a page failed. */
export interface FailedSpan {
  list: DeclaredFeed<TimelineFeed>
  segment: Segment
  /** The query of the pass, without the cursor of the failed page. */
  base: Query
  error: ParleyError
  /** Failures of the whole feed in a row, this one included. */
  feedFailures: number
}

/** Carries out the step that `stepAfterFailedPage` chooses. Only `wait` and `step-over` report the failure. */
export function narrowSpan(context: EngineContext, span: FailedSpan): void {
  const { segment, base, error } = span
  const attempts = segment.attempts + 1
  const next = stepAfterFailedPage({
    attempts,
    limit: Number(base['limit']),
    from: segment.from,
    to: canCutAtEdge(segment) ? segment.edgeAt : segment.to,
    now: context.server.now(),
    feedFailures: span.feedFailures,
    rowsAgain: segment.edgeKeys.length,
    pagesRead: segment.pages,
    code: error.code,
    mayPass: context.schedule.isTimed,
  })
  context.log.debug('A page failed', {
    resource: span.list.resource,
    code: error.code,
    reason: next.step,
    attempt: attempts,
  })
  if (next.step === 'wait') {
    putOffList(context, span.list, segment, error, { ofList: span.feedFailures })
    // The whole list fails, so smaller pages help no segment. The failed segments return to whole pages now, since the
    // list may answer only after a restart.
    if (span.feedFailures > FAILURES_OF_ONE_PAGE) context.store.segments.readWholePages(span.list.id)
  } else if (next.step === 'shrink') shrink(context, span, attempts, next.limit)
  else if (next.step === 'cut') cut(context, span, attempts, next)
  else stepOver(context, span, attempts)
}

function shrink(context: EngineContext, span: FailedSpan, attempts: number, limit: number): void {
  const rest = unreadPart(context, span)
  const query = { ...baseQuery(span.list.feed, rest), limit: String(limit) }
  // A new try of a stepped-over span may need several requests. They count as one failure.
  const state = isSteppedOver('timeline', rest) ? {} : { attempts, retryAt: null }
  context.store.segments.save({ ...rest, query, ...state })
}

function cut(
  context: EngineContext,
  span: FailedSpan,
  attempts: number,
  { at, limit }: { at: number; limit: number },
): void {
  const { segments } = context.store
  for (const part of cutFailed(segments, unreadPart(context, span), isoInstant(at))) {
    const query = { ...baseQuery(span.list.feed, part), limit: String(limit) }
    segments.save({ ...part, attempts, retryAt: null, query })
  }
}

function stepOver(context: EngineContext, span: FailedSpan, failures: number): void {
  const { list, segment, error } = span
  const rest = unreadPart(context, span)
  // Failures before the span was first stepped over do not count: the bad row may not have caused them.
  const attempts = isSteppedOver('timeline', segment) ? failures : 1
  const retryAt = context.after(aloneBackoffMs(attempts))
  context.store.segments.save({ ...rest, query: null, attempts, retryAt })
  noteUnread(context, list, rest, error)
  probeUnread(context, list, {
    from: rest.from,
    to: segment.edgeAt ?? rest.to,
    but: segment.edgeKeys,
  })
}

/** The part that the pass has not read, as a segment whose next pass begins at its top. */
function unreadPart({ store: { segments } }: EngineContext, { segment }: FailedSpan): Segment {
  const { edgeAt } = segment
  const isCut = edgeAt !== null && canCutAtEdge(segment)
  const rest = isCut ? cutOff(segments, segment, edgeAt) : { ...segment, ...NO_PASS }
  return { ...rest, ...passOfRest(segment) }
}

/** Probes rows that their list cannot show, because requests for their span fail. */

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
