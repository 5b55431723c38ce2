import type { Sent } from '../../api/client.ts'
import type { ResourceName } from '../../catalog/resource.ts'
import type { EngineContext } from '../context.ts'
import type { Unreachable } from './reachability.ts'

/** What a run has asked so far, and how it was answered. */
export interface SchedulerProgress {
  requests: number
  throttled: number
  /** Those that got an HTTP response that is no failure of the server, 429 included. */
  answered: number
  accepted: number
  /** 403 and 404 where no declaration expects them. */
  turnedAway: number
  inFlight: number
  /** Unexpected 403 and 404 since the last answer. */
  turnedAwayInARow: number
  /** While the API cannot be asked: since when, why, and when the next try is. */
  trouble(): Unreachable | undefined
}

export function noProgress(): SchedulerProgress {
  return {
    requests: 0,
    throttled: 0,
    answered: 0,
    accepted: 0,
    turnedAway: 0,
    inFlight: 0,
    turnedAwayInARow: 0,
    trouble: () => undefined,
  }
}

/** Counts a request whose outcome is known, for the run and for its resource. */
export function count(
  context: Pick<EngineContext, 'counts'>,
  progress: SchedulerProgress,
  resource: ResourceName,
  sent: Sent,
): void {
  const counts = context.counts(resource)
  counts.requests += 1
  progress.requests += 1
  if (sent.kind === 'answer') progress.accepted += 1
  if (sent.kind !== 'retry' || sent.cause === 'throttled') progress.answered += 1
  if (sent.kind === 'retry' && sent.cause === 'throttled') {
    counts.throttled += 1
    progress.throttled += 1
  }
}
