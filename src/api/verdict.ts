import type { Outcome } from './classify.ts'
import type { Sent } from './client.ts'
import type { PermitResult } from './governor.ts'

/** What an outcome means beyond the request that it answers: for the governor, and for people. Pure. */

/** What a request tells the governor. */
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

/** The same within a sentence that says since when the API fails. */
export function failureCause({ status, message }: Failed): string {
  return status === undefined ? message : `HTTP ${status}: ${message}`
}
