import type { Outcome } from './classify.ts'
import type { Sent } from './client.ts'
import type { PermitResult } from './governor/governor.ts'

/** Converts the outcome of a request for the governor and for messages. Pure. */

export function permitResult(sent: Sent): PermitResult {
  const { durationMs } = sent
  if (sent.kind !== 'retry') return { kind: 'accepted', durationMs }
  if (sent.cause !== 'throttled') return { kind: 'other', durationMs }
  return { kind: 'throttled', durationMs, waitMs: sent.waitMs }
}

type Failed = Pick<Extract<Outcome, { kind: 'retry' }>, 'status' | 'message'>

/** A failed request as a sentence. */
export function failureText({ status, message }: Failed): string {
  return status === undefined ? message : `The API answers ${status}: ${message}`
}

/** A failed request as part of a sentence about the API. */
export function failureCause({ status, message }: Failed): string {
  return status === undefined ? message : `HTTP ${status}: ${message}`
}
