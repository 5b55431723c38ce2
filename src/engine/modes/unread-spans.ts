import type { ParleyError } from '../../base/errors.ts'
import type { DeclaredFeed } from '../../catalog/feeds.ts'
import type { Segment } from '../../store/sync/segments.ts'
import type { EngineContext } from '../context/context.ts'
import { failList } from './put-off.ts'

/** The rejects of stepped-over spans have a separate feed name, so that a complete round does not resolve them. */
const unreadFeed = ({ id }: DeclaredFeed) => `${id}.unread`

const spanName = ({ from, to }: Segment) => `${from} ${to}`

/** Reports a span that is stepped over. */
export function noteUnread(
  context: EngineContext,
  list: DeclaredFeed,
  span: Segment,
  error: ParleyError,
): void {
  const { from, to } = span
  const where = { resource: list.resource, feed: unreadFeed(list) }
  const reason = `The API fails to list this span, and a later run requests it again: ${error.message}`
  context.store.rejects.note({ ...where, scope: spanName(span), item: { from, to }, reason }, context.now())
  failList(context, { resource: list.resource, feed: list.id }, error)
}

/** Resolves the reject of a span that could now be read. */
export function resolveUnread({ store, now }: EngineContext, list: DeclaredFeed, segment: Segment): void {
  if (segment.attempts > 0) store.rejects.resolve(unreadFeed(list), spanName(segment), '~', now())
}
