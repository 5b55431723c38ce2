import type { Query } from '../../api/request.ts'
import { isoInstant } from '../../base/clock.ts'
import type { ParleyError } from '../../base/errors.ts'
import type { DeclaredFeed } from '../../catalog/feeds.ts'
import type { PeriodicFeed, TimelineFeed } from '../../declare/resource.ts'
import { NO_PASS, type Segment } from '../../store/sync/segments.ts'
import type { EngineContext } from '../context/context.ts'
import type { ListFailures } from './lists.ts'
import {
  aloneBackoffMs,
  FAILURES_OF_ONE_PAGE,
  isNarrowest,
  isSteppedOver,
  stepAfterFailedPage,
} from './narrowing.ts'
import { canCutAtEdge, cutFailed, cutOff, passOfRest } from './pass.ts'
import { noteUnread, putOffList } from './put-off.ts'

/** A span of event time in which a page failed: a segment of a timeline, or a period of a log. */
export interface FailedSpan {
  list: DeclaredFeed<TimelineFeed | PeriodicFeed>
  segment: Segment
  /** Rows requested; 0 for a list that takes no smaller pages. */
  limit: number
  error: ParleyError
  failures: ListFailures
  /** False while no request of the list has succeeded in this process, which a cut requires. */
  isAnswered: boolean
  /** The query of the rest of the span with smaller pages; null for a list that takes none. */
  smallerPages(rest: Segment, limit: number): Query | null
  /** Called when the span is stepped over, with the part that the pass has not read. */
  steppedOver?(rest: Segment): void
}

/** Carries out the step that `stepAfterFailedPage` chooses. Only `wait` and `step-over` report the failure. */
export function narrowSpan(context: EngineContext, span: FailedSpan): void {
  const { list, segment, error, limit, failures, isAnswered } = span
  const { mode } = list.feed
  // A span that cannot be divided fails because of a row, which says nothing about the list.
  if (!isNarrowest(mode, segment)) failures.note(segment)
  const listFailures = failures.count()
  const attempts = segment.attempts + 1
  const next = stepAfterFailedPage({
    mode,
    attempts,
    limit,
    from: segment.from,
    to: edgeOf(span) ?? segment.to,
    now: context.server.now(),
    listFailures,
    isAnswered,
    rowsAgain: segment.edgeKeys.length,
    pagesRead: segment.pages,
    code: error.code,
    mayPass: context.schedule.isTimed,
  })
  context.log.debug('A page failed', {
    resource: list.resource,
    code: error.code,
    reason: next.step,
    attempt: attempts,
  })
  const { segments } = context.store
  if (next.step === 'wait') {
    putOffList(context, list, segment, error)
    failures.closeList()
    // The whole list fails, so smaller pages help no segment. The failed segments return to whole pages now, since the
    // list may answer only after a restart.
    if (listFailures > FAILURES_OF_ONE_PAGE) segments.readWholePages(list.id)
    return
  }
  const rest = unreadPart(context, span)
  if (next.step === 'shrink') {
    // A new try of a stepped-over span may need several requests. They count as one failure.
    const state = isSteppedOver(mode, rest) ? {} : { attempts, retryAt: null }
    segments.save({ ...rest, query: span.smallerPages(rest, next.limit), ...state })
  } else if (next.step === 'cut') {
    for (const part of cutFailed(segments, rest, isoInstant(next.at)))
      segments.save({ ...part, attempts, retryAt: null, query: span.smallerPages(part, next.limit) })
  } else stepOver(context, span, rest)
}

function stepOver(context: EngineContext, span: FailedSpan, rest: Segment): void {
  const { list, segment, error } = span
  // Failures before the span was first stepped over do not count: the bad row may not have caused them.
  const attempts = isSteppedOver(list.feed.mode, segment) ? segment.attempts + 1 : 1
  const retryAt = context.after(aloneBackoffMs(attempts))
  context.store.segments.save({ ...rest, query: null, attempts, retryAt })
  noteUnread(context, list, rest, error)
  span.steppedOver?.(rest)
}

/** The part that the pass has not read, as a segment whose next pass begins at its top. */
function unreadPart({ store: { segments } }: EngineContext, span: FailedSpan): Segment {
  const { segment } = span
  const edge = edgeOf(span)
  const rest = edge === null ? { ...segment, ...NO_PASS } : cutOff(segments, segment, edge)
  return { ...rest, ...passOfRest(segment) }
}

/** The instant down to which the pass has read the span. A log may list its entries in any order. */
const edgeOf = ({ list, segment }: FailedSpan): string | null =>
  list.feed.mode === 'timeline' && canCutAtEdge(segment) ? segment.edgeAt : null
