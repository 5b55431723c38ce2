import type { TimelineFeed } from '../../catalog/resource.ts'
import { isoInstant } from '../../clock.ts'
import type { EngineContext } from '../context.ts'
import { UUID_GLOB } from '../parse/uuid.ts'
import { newRowGraceMs } from './denial.ts'

/** Most rows to ask for each time a span is stepped over: thousands may share one instant. */
const MOST_AT_ONCE = 50

interface UnreadSpan {
  /** Both ends are included. */
  from: string | null
  to: string | null
  /** Keys that the list has shown nevertheless. */
  but: readonly string[]
}

/**
 * One unreadable row keeps a list from showing the other rows in its span, so stored rows there are asked for by
 * single requests. None of them is suspected, since no complete pass has missed them. Each is asked for again after a
 * week, which makes room for others.
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
    before: isoInstant(clock.now() - newRowGraceMs(context)),
    now,
    limit: MOST_AT_ONCE,
  })
  for (const { key, at } of rows) store.tasks.demand({ feed: probe, key, sortAt: at, dueAt: now })
}
