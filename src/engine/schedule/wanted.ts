import type { Segment } from '../../store/sync/segments.ts'
import type { EngineContext } from '../context.ts'
import type { EngineOptions } from '../options.ts'
import { longestWaitMs } from './intervals.ts'
import type { ListOf } from './schedule.ts'

export function isDueInRound({ closed, listedRound }: Segment, round: number): boolean {
  return !closed && listedRound < round
}

/** How long until what could not be read is asked for again, in ms. */
export function putOffMs({ retryAt }: Segment, { clock, options }: EngineContext): number {
  const waitMs = retryAt === null ? 0 : Math.max(0, Date.parse(retryAt) - clock.now())
  // A longer one was noted by a clock that was far ahead.
  return waitMs <= longestWaitMs(options) ? waitMs : 0
}

/** What lies before the owner's bound is not read. */
export function isWanted(
  { feed }: Pick<ListOf, 'feed'>,
  { to }: Segment,
  { since }: Pick<EngineOptions, 'since'>,
): boolean {
  return feed.mode !== 'timeline' || since === null || to === null || to > since
}
