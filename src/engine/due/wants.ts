import { feedNamed } from '../../catalog/feeds.ts'
import type { Segment } from '../../store/sync/segments.ts'
import type { EngineContext } from '../context/context.ts'
import { isHead } from './segment-conditions.ts'

/**
 * A want makes a list due before its interval is over. It is a column of the segment, so a restart keeps it. The first
 * pass that begins after the want ends it. Single reads are wanted by their tasks (`demand` in
 * `store/sync/tasks/tasks.ts`).
 */

/** The segments of a list that are read repeatedly. */
export const openSegments = ({ store }: Pick<EngineContext, 'store'>, list: string): Segment[] =>
  store.segments.of(list).filter(({ closed }) => !closed)

/** Makes a segment due in `ms`. Call it in a transaction. */
export function wantSegment({ store }: Pick<EngineContext, 'store'>, { id }: Segment, ms: number): void {
  store.segments.want(id, store.dueClock.after(ms))
}

/**
 * In the daemon, makes a list due at once: the polled segment of a timeline, every segment of another list. A backfill
 * reads each list once in any case. Call it in a transaction.
 */
export function wantList(context: EngineContext, list: string): void {
  if (!context.schedule.isTimed) return
  for (const segment of openSegments(context, list))
    if (feedNamed(list).feed.mode !== 'timeline' || isHead(segment, context.server.now()))
      wantSegment(context, segment, 0)
}
