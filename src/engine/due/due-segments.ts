import type { Segment } from '../../store/sync/segments.ts'
import type { EngineContext } from '../context.ts'
import type { EngineOptions } from '../dependencies.ts'
import { longestWaitMs } from './intervals.ts'
import type { ListOf } from './schedule.ts'

export function isDueInRound({ closed, listedRound }: Segment, round: number): boolean {
  return !closed && listedRound < round
}

/** How long a failed segment still waits, in ms; 0 when it does not. */
export function putOffMs({ retryAt }: Segment, { clock, options }: EngineContext): number {
  const waitMs = retryAt === null ? 0 : Math.max(0, Date.parse(retryAt) - clock.now())
  // A clock that was far ahead stored a longer wait.
  return waitMs <= longestWaitMs(options) ? waitMs : 0
}

/** Segments entirely before `sync.since` are not read. */
export function isNewEnough(
  { feed }: Pick<ListOf, 'feed'>,
  { to }: Segment,
  { since }: Pick<EngineOptions, 'since'>,
): boolean {
  return feed.mode !== 'timeline' || since === null || to === null || to > since
}
