import type { ApiRequest } from '../../api/request.ts'
import { ParleyError, ResourceError, RetryError } from '../../errors.ts'
import type { Job } from './job.ts'

/** What is said of a job that failed. Pure. */

/** Ids may be of any length. */
const PATH_LENGTH = 150

/**
 * The error with the request that it is about: method and path, which hold no more than ids. The query is left out,
 * since it may hold names and addresses.
 */
export function ofRequest(error: ParleyError, { path }: ApiRequest): ParleyError {
  const Kind =
    error instanceof RetryError ? RetryError : error instanceof ResourceError ? ResourceError : undefined
  if (Kind === undefined) return error
  const { code, hint, cause, message } = error
  const shown = path.length > PATH_LENGTH ? `${path.slice(0, PATH_LENGTH)}…` : path
  return new Kind(`GET ${shown}: ${message}`, { code, ...(hint !== undefined && { hint }), cause })
}

/** What a handler threw, as an error that fails its job alone: one answer that parley cannot handle stops no other. */
export function faultOf(thrown: unknown, { feed }: Pick<Job, 'feed'>): ParleyError {
  if (thrown instanceof ParleyError) return thrown
  const name = thrown instanceof Error ? thrown.name : typeof thrown
  return new ResourceError(`parley failed to handle the answer (${name})`, {
    code: 'fault',
    hint: `This is a fault of parley in ${feed}: please report it with the stack in the log.`,
    cause: thrown,
  })
}
