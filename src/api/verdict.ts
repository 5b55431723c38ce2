import { EXIT_STATUS, StopError } from '../errors.ts'
import type { Outcome } from './classify.ts'
import type { Sent } from './client.ts'
import type { PermitResult } from './governor.ts'

/** What an outcome means beyond the request that it answers: for the governor, and for the whole run. Pure. */

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

/** 401: nothing can be asked with this key. */
export function unauthorized(message: string): StopError {
  return new StopError(`The API refuses the key: ${message}`, {
    code: 'unauthorized',
    hint: 'Check api.key (or PARLEY_API_KEY, or the file in PARLEY_API_KEY_FILE): it is wrong, expired or revoked.',
    exitStatus: EXIT_STATUS.refused,
  })
}
