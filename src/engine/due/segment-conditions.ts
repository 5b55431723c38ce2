import type { DeclaredFeed } from '../../catalog/feeds.ts'
import type { Segment } from '../../store/sync/segments.ts'
import type { EngineOptions } from '../context/engine-options.ts'

export function isDueInRound({ closed, listedRound }: Segment, round: number): boolean {
  return !closed && listedRound < round
}

/** False for a segment that lies entirely before `sync.since`. Such a segment is not read. */
export function isNewEnough(
  { feed }: DeclaredFeed,
  { to }: Segment,
  { since }: Pick<EngineOptions, 'since'>,
): boolean {
  return feed.mode !== 'timeline' || since === null || to === null || to > since
}

/** Whether a span has only rows that are dated in the future. @param now by the API's clock */
export const isFuture = ({ from }: Pick<Segment, 'from'>, now: number): boolean =>
  from !== null && Date.parse(from) > now

/** Whether a span includes the present moment. The span that does is the one that is polled. */
export const isHead = (span: Pick<Segment, 'from' | 'to'>, now: number): boolean =>
  !isFuture(span, now) && (span.to === null || Date.parse(span.to) > now)
