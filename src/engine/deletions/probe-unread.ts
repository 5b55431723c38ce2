import type { TimelineFeed } from '../../catalog/resource.ts'
import { isoInstant } from '../../clock.ts'
import type { EngineContext } from '../context.ts'
import { UUID_GLOB } from '../parse/uuid.ts'
import { newForMs } from './denial.ts'

/** Rows that are asked for each time that a span is stepped over: thousands may share one instant. */
const MOST_AT_ONCE = 50

/** A span of event time, both ends included, and the keys that its list has shown all the same. */
interface UnreadSpan {
  from: string | null
  to: string | null
  but: readonly string[]
}

/**
 * One row keeps a list from showing what else lies in its span, so rows of ours there are asked for by other requests.
 * None is suspected, since no list has passed it by. A row that has been asked for is asked for again after a week, as
 * what no list shows, and makes room for others.
 */
export function probeUnread(
  context: EngineContext,
  listId: string,
  feed: TimelineFeed,
  span: UnreadSpan,
): void {
  const { store, clock } = context
  const probe = `${listId}.probe`
  const now = context.now()
  const rows = store.rowTimes.unasked(feed, probe, {
    ...span,
    keys: feed.evidence.by === 'ids' ? UUID_GLOB : '*',
    before: isoInstant(clock.now() - newForMs(context)),
    now,
    limit: MOST_AT_ONCE,
  })
  for (const { key, at } of rows) store.tasks.demand({ feed: probe, key, sortAt: at, dueAt: now })
}
