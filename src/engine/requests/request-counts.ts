import type { Sent } from '../../api/client.ts'
import type { ResourceName } from '../../declare/resource-names.ts'
import type { RowsWritten } from '../../store/sync/runs.ts'
import type { RunRecords } from '../context/counts-and-failures.ts'
import type { Unreachable } from './reachability.ts'

/** The requests of a run so far and their results. */
export interface SchedulerProgress {
  requests: number
  throttled: number
  /** Requests that failed: server errors, a refused key, unreadable answers, timeouts and broken connections. */
  errors: number
  /** Requests whose result is not retried; a 429 counts too. */
  answered: number
  accepted: number
  /** 403 and 404 that no declaration expects. */
  turnedAway: number
  inFlight: number
  /** Unexpected 403 and 404 since the last answer. */
  turnedAwayInARow: number
  /** Why the API cannot be read now, since when, and when the next try is. */
  trouble(): Unreachable | undefined
}

export function noProgress(): SchedulerProgress {
  return {
    requests: 0,
    throttled: 0,
    errors: 0,
    answered: 0,
    accepted: 0,
    turnedAway: 0,
    inFlight: 0,
    turnedAwayInARow: 0,
    trouble: () => undefined,
  }
}

/** All requests and rows of a backfill or a session so far. */
export interface Traffic extends Pick<SchedulerProgress, 'requests' | 'throttled' | 'errors'> {
  written: ReadonlyMap<ResourceName, RowsWritten>
}

export function trafficOf(
  { requests, throttled, errors }: SchedulerProgress,
  { runs }: { runs: Pick<RunRecords, 'written'> },
): Traffic {
  return { requests, throttled, errors, written: runs.written() }
}

/** Counts a finished request for the run and for its resource. */
export function countRequest(
  context: { runs: Pick<RunRecords, 'counts'> },
  progress: SchedulerProgress,
  resource: ResourceName,
  sent: Sent,
): void {
  const counts = context.runs.counts(resource)
  counts.requests += 1
  progress.requests += 1
  if (sent.kind === 'answer') progress.accepted += 1
  if (sent.kind !== 'retry' || sent.cause === 'throttled') progress.answered += 1
  if (hasFailed(sent)) progress.errors += 1
  if (sent.kind === 'retry' && sent.cause === 'throttled') {
    counts.throttled += 1
    progress.throttled += 1
  }
}

const hasFailed = (sent: Sent): boolean =>
  sent.kind === 'unauthorized' ||
  sent.kind === 'fault' ||
  (sent.kind === 'retry' && sent.cause !== 'throttled')
