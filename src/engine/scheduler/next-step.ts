import type { HealthCheck, NextStep } from '../../api/reach-events.ts'

/** Decides whether a request is sent now. Pure: the scheduler only carries it out. `lanes.ts` chooses the request. */

export interface SchedulerState {
  /** What may be sent while the API is silent or refuses requests. */
  reach: NextStep
  /** True when the API has been silent for longer than the run may wait. */
  isSilentForGood: boolean
  /** True in the daemon until the first request of the session has ended: the key may be refused. */
  isFirst: boolean
  /** Requests without a stored answer. */
  inFlight: number
  /** The requests in flight whose answer has not arrived. */
  unanswered: number
}

export type Decision =
  | { step: 'end'; because: 'silence' | 'lost-access' }
  /** Wait until a request has ended, at most for `ms`. A retry that falls due does not end the wait. */
  | { step: 'wait'; ms?: number }
  | { step: 'health-check'; check: HealthCheck }
  /** One request, as soon as the governor allows it. */
  | { step: 'send' }

/**
 * The most answers that may wait in memory to be stored. During a usual checkpoint of the WAL some 200 gather; while
 * the disk is busy for seconds there would be thousands.
 */
export const MOST_UNSTORED = 256

/** While the API is in trouble, and at the daemon's start, one request is sent at a time. */
export function decide({ reach, isSilentForGood, isFirst, inFlight, unanswered }: SchedulerState): Decision {
  if (isSilentForGood) return { step: 'end', because: 'silence' }
  if (reach.kind === 'lost') return { step: 'end', because: 'lost-access' }
  if (reach.kind === 'wait') return { step: 'wait', ms: reach.ms }
  const mustBeAlone = isFirst || reach.kind !== 'any'
  if (mustBeAlone && inFlight > 0) return { step: 'wait' }
  if (reach.kind === 'health-check') return { step: 'health-check', check: reach.check }
  return inFlight - unanswered >= MOST_UNSTORED ? { step: 'wait' } : { step: 'send' }
}

export interface UnusedPermit {
  inFlight: number
  unanswered: number
  /** Whether a source waits for its route, or in a backfill a failed request for its next try. */
  isDueLater: boolean
  /** True in the daemon, which continues when no work is left. */
  isEndless: boolean
}

/**
 * What to do with a permit that no job can use now:
 *
 * - `keep`: an answer is about to be stored and may create the next request, which then uses the permit.
 * - `wait`: until something changes.
 * - `rest`: nothing is under way. The daemon waits until something is due.
 * - `finish`: nothing is under way, and a backfill is done unless a source finds more.
 */
export type PermitUse = 'keep' | 'wait' | 'rest' | 'finish'

export function decideWithoutJob({ inFlight, unanswered, isDueLater, isEndless }: UnusedPermit): PermitUse {
  if (unanswered < inFlight) return 'keep'
  if (inFlight > 0 || isDueLater) return 'wait'
  return isEndless ? 'rest' : 'finish'
}
