import type { DeclaredFeed } from '../../catalog/feeds.ts'
import type { Segment } from '../../store/sync/segments.ts'
import type { EngineContext } from '../context/context.ts'
import type { EngineOptions } from '../context/engine-options.ts'
import { longestWaitMs } from '../context/intervals.ts'

export function isDueInRound({ closed, listedRound }: Segment, round: number): boolean {
  return !closed && listedRound < round
}

/** How long a segment still waits after a failure, in ms; 0 when it does not wait. */
export function putOffMs({ retryAt }: Segment, { clock, options }: EngineContext): number {
  const waitMs = retryAt === null ? 0 : Math.max(0, Date.parse(retryAt) - clock.now())
  // Only a clock that was far ahead stores a longer wait. Such a wait does not count.
  return waitMs <= longestWaitMs(options) ? waitMs : 0
}

/** False for a segment that lies entirely before `sync.since`. It is not read. */
export function isNewEnough(
  { feed }: DeclaredFeed,
  { to }: Segment,
  { since }: Pick<EngineOptions, 'since'>,
): boolean {
  return feed.mode !== 'timeline' || since === null || to === null || to > since
}
