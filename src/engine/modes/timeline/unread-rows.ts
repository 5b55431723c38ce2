import { isoInstant } from '../../../base/clock.ts'
import { UUID_GLOB } from '../../../base/uuid.ts'
import type { DeclaredFeed } from '../../../catalog/feeds.ts'
import type { TimelineFeed } from '../../../declare/resource.ts'
import type { EngineContext } from '../../context/context.ts'
import { newRowGraceMs } from '../../deletions/denial.ts'

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
export function probeUnread(
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
