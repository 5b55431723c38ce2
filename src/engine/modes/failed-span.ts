import { PAGING } from '../../api/paging.ts'
import type { TimelineFeed } from '../../catalog/resource.ts'
import { isoInstant } from '../../clock.ts'
import type { ParleyError } from '../../errors.ts'
import { NO_PASS, type Segment } from '../../store/sync/segments.ts'
import type { EngineContext } from '../context.ts'
import { probeUnread } from '../deletions/probe-unread.ts'
import { failList, putOffList } from '../due/put-off.ts'
import type { ListOf } from '../due/schedule.ts'
import type { FeedName } from '../feeds.ts'
import { aloneBackoffMs, isSteppedOver, nextForPage } from './narrowing.ts'
import { canCutAtEdge, cutOff, type Query } from './pass.ts'

/** A span of a timeline in which a page failed. */
export interface FailedSpan {
  list: ListOf
  feed: TimelineFeed
  segment: Segment
  /** The query of the pass, without the cursor of the failed page. */
  base: Query
  error: ParleyError
  /** Failures of the whole feed in a row, this one included. */
  feedFailures: number
  queryOf(segment: Segment): Query
}

/** Carries out the step that `nextForPage` chooses. Only `wait` and `step-over` report the failure. */
export function narrowSpan(context: EngineContext, span: FailedSpan): void {
  const { segment, base, error } = span
  const attempts = segment.attempts + 1
  const next = nextForPage({
    attempts,
    limit: Number(base['limit']),
    from: segment.from,
    to: canCutAtEdge(segment) ? segment.edgeAt : segment.to,
    now: context.server.now(),
    feedFailures: span.feedFailures,
    rowsAgain: segment.edgeKeys.length,
    code: error.code,
    mayPass: context.schedule.isTimed,
  })
  context.log.debug('A page failed', {
    resource: span.list.resource,
    code: error.code,
    reason: next.step,
    attempt: attempts,
  })
  if (next.step === 'wait') putOffList(context, whereOf(span), span.segment, error)
  else if (next.step === 'shrink') shrink(context, span, attempts, next.limit)
  else if (next.step === 'cut') cut(context, span, attempts, next.at)
  else stepOver(context, span, attempts)
}

function shrink(context: EngineContext, span: FailedSpan, attempts: number, limit: number): void {
  const rest = unreadPart(context, span)
  const query = { ...span.queryOf(rest), limit: String(limit) }
  // A new try of a stepped-over span may need several requests. They count as one failure.
  const state = isSteppedOver('timeline', rest) ? {} : { attempts, retryAt: null }
  context.store.segments.save({ ...rest, query, ...state })
}

function cut(context: EngineContext, span: FailedSpan, attempts: number, at: number): void {
  const { segments } = context.store
  const rest = unreadPart(context, span)
  const older = segments.cut(rest, isoInstant(at))
  const { listedAt, listedRound, passStartedAt, passRound } = rest
  const state = { listedAt, listedRound, passStartedAt, passRound, attempts, retryAt: null }
  for (const part of [{ ...rest, from: isoInstant(at) }, older]) {
    const query = { ...span.queryOf(part), limit: '1' }
    segments.save({ ...part, ...state, query })
  }
}

function stepOver(context: EngineContext, span: FailedSpan, failures: number): void {
  const { list, feed, segment, error } = span
  const rest = unreadPart(context, span)
  // Failures before the span was first stepped over do not count: the bad row may not have caused them.
  const attempts = isSteppedOver('timeline', segment) ? failures : 1
  const retryAt = context.after(aloneBackoffMs(attempts))
  context.store.segments.save({ ...rest, query: null, attempts, retryAt })
  noteUnread(context, list, rest, error)
  probeUnread(context, list.id, feed, {
    from: rest.from,
    to: segment.edgeAt ?? rest.to,
    but: segment.edgeKeys,
  })
}

const whereOf = ({ list }: FailedSpan): FeedName => ({ resource: list.resource, feed: list.id })

/** The part that the pass has not read, as a segment whose next pass begins at its top. */
function unreadPart({ store: { segments } }: EngineContext, { segment }: FailedSpan): Segment {
  const { passStartedAt, passRound, edgeAt } = segment
  const isCut = edgeAt !== null && canCutAtEdge(segment)
  const rest = isCut ? cutOff(segments, segment, edgeAt) : { ...segment, ...NO_PASS }
  // A span that was listed before is due at once only while it belongs to the current pass.
  return { ...rest, ...(segment.listedAt !== null && { passStartedAt, passRound }) }
}

/** The rejects of stepped-over spans have a separate feed name, so that a complete round does not resolve them. */
const unreadFeed = ({ id }: ListOf) => `${id}.unread`

const spanName = ({ from, to }: Segment) => `${from} ${to}`

/** Reports a span that is stepped over. */
export function noteUnread(context: EngineContext, list: ListOf, span: Segment, error: ParleyError): void {
  const { from, to } = span
  const where = { resource: list.resource, feed: unreadFeed(list) }
  const reason = `The API fails to list this span, and a later run requests it again: ${error.message}`
  context.store.rejects.note({ ...where, scope: spanName(span), item: { from, to }, reason }, context.now())
  failList(context, { resource: list.resource, feed: list.id }, error)
}

/** Resolves the reject of a span that could now be read. */
export function resolveUnread({ store, now }: EngineContext, list: ListOf, segment: Segment): void {
  if (segment.attempts > 0) store.rejects.resolve(unreadFeed(list), spanName(segment), '~', now())
}

/** Rows in a page of the usual size. */
export function fullLimit({ list }: TimelineFeed): number {
  return PAGING[list.paging].maxLimit ?? 1
}
