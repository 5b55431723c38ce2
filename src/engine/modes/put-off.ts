import type { ParleyError } from '../../base/errors.ts'
import type { FeedName } from '../../catalog/feeds.ts'
import { NO_PASS, type Segment } from '../../store/sync/segments.ts'
import type { Task } from '../../store/sync/tasks/task.ts'
import type { EngineContext } from '../context/context.ts'
import { aloneBackoffMs, pageBackoffMs } from './narrowing.ts'
import { isDeadCursor } from './page-guard.ts'

/**
 * Puts off keys that could not be read, and reports the failure. Each key stays a task with its own backoff, so a
 * restart does not lose it, and other keys do not wait for it.
 */
export function putOff(
  context: EngineContext,
  feed: FeedName,
  tasks: readonly Task[],
  error: ParleyError,
): void {
  for (const task of tasks) {
    context.store.tasks.putOff(task, {
      round: context.rounds.number(feed.resource),
      dueAt: context.after(aloneBackoffMs(task.failures + 1)),
      sortAt: task.sortAt,
    })
  }
  const isUnread = () => tasks.some(task => (context.store.tasks.find(task)?.failures ?? 0) > 0)
  context.runs.fail(feed, error, { isUnread })
}

/**
 * Puts off a segment that could not be read, and reports the failure. The wait is stored in the segment, so other
 * segments of the list do not wait for it. The checkpoint stays unless its cursor is dead, so the pass continues there.
 */
export function putOffList(
  context: EngineContext,
  list: FeedName,
  segment: Segment,
  error: ParleyError,
): void {
  const { store, schedule } = context
  const attempts = segment.attempts + 1
  // In a backfill the wait is hours long, so usually the next run reads the segment again, not this one.
  const retryAt = schedule.isTimed
    ? store.dueClock.after(pageBackoffMs(attempts))
    : context.after(aloneBackoffMs(attempts))
  // With a dead cursor, every later run would fail.
  const kept = isDeadCursor(error.code) ? { ...segment, ...NO_PASS, restarts: 0 } : segment
  store.segments.save({ ...kept, ...(kept.cursor === null && { query: null }), attempts, retryAt })
  failList(context, list, error)
}

/** Reports that a part of a list could not be read. */
function failList(context: EngineContext, list: FeedName, error: ParleyError): void {
  const isUnread = () => context.store.segments.of(list.id).some(({ retryAt }) => retryAt !== null)
  context.runs.fail(list, error, { isUnread })
}

/** The rejects of stepped-over spans have a separate feed name, so that a complete round does not resolve them. */
const unreadFeed = ({ id }: FeedName) => `${id}.unread`

const spanName = ({ from, to }: Segment) => `${from} ${to}`

/** Reports a span that is stepped over. */
export function noteUnread(context: EngineContext, list: FeedName, span: Segment, error: ParleyError): void {
  const { from, to } = span
  const where = { resource: list.resource, feed: unreadFeed(list) }
  const reason = `The API fails to list this span, and a later run requests it again: ${error.message}`
  context.store.rejects.note({ ...where, scope: spanName(span), item: { from, to }, reason }, context.now())
  failList(context, list, error)
}

/** Resolves the reject of a span that could now be read. */
export function resolveUnread({ store, now }: EngineContext, list: FeedName, segment: Segment): void {
  if (segment.attempts > 0) store.rejects.resolve(unreadFeed(list), spanName(segment), '~', now())
}
