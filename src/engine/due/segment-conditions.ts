import type { DeclaredFeed } from '../../catalog/feeds.ts'
import type { Segment } from '../../store/sync/segments.ts'
import type { EngineOptions } from '../context/engine-options.ts'

export function isDueInRound({ closed, listedRound }: Segment, round: number): boolean {
  return !closed && listedRound < round
}

/** False for a segment that lies entirely before `sync.since`. It is not read. */
export function isNewEnough(
  { feed }: DeclaredFeed,
  { to }: Segment,
  { since }: Pick<EngineOptions, 'since'>,
): boolean {
  return feed.mode !== 'timeline' || since === null || to === null || to > since
}
