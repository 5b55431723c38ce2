import type { Outcome } from './classify.ts'
import type { Sent } from './client.ts'
import type { PermitResult } from './governor/in-flight.ts'

/** Converts the outcome of a request into a result for the governor, and into texts for messages. Pure. */

export function permitResult(sent: Sent): PermitResult {
  if (sent.kind !== 'retry') return { kind: 'accepted' }
  return sent.cause === 'throttled' ? { kind: 'throttled', waitMs: sent.waitMs } : { kind: 'other' }
}

/** The result of a request that a stop cut off. The request counts for the day, since the API may have received it. */
export const CUT_OFF: PermitResult = { kind: 'other' }

type Failed = Pick<Extract<Outcome, { kind: 'retry' }>, 'status' | 'message'>

/** A failed request as a sentence. */
export function failureText({ status, message }: Failed): string {
  return status === undefined ? message : `The API answers ${status}: ${message}`
}

/** A failed request as part of a sentence about the API. */
export function failureCause({ status, message }: Failed): string {
  return status === undefined ? message : `HTTP ${status}: ${message}`
}
