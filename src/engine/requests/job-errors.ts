import type { ApiRequest } from '../../api/request.ts'
import { ParleyError, ResourceError, RetryError } from '../../base/errors.ts'
import type { Job } from '../context/job.ts'

/** The errors of failed jobs. Pure. */

/** Longer paths are cut: ids may have any length. */
const PATH_LENGTH = 150

/**
 * Adds the method and path of the request to the error. A path holds only ids; the query is left out, since it may hold
 * names and addresses.
 */
export function withRequest(error: ParleyError, { path }: ApiRequest): ParleyError {
  const Kind =
    error instanceof RetryError ? RetryError : error instanceof ResourceError ? ResourceError : undefined
  if (Kind === undefined) return error
  const { code, hint, cause, message } = error
  const shown = path.length > PATH_LENGTH ? `${path.slice(0, PATH_LENGTH)}…` : path
  return new Kind(`GET ${shown}: ${message}`, { code, ...(hint !== undefined && { hint }), cause })
}

/** Converts an exception of a handler into an error that fails only its job: other jobs continue. */
export function handlerError(thrown: unknown, { feed }: Pick<Job, 'feed'>): ParleyError {
  if (thrown instanceof ParleyError) return thrown
  const name = thrown instanceof Error ? thrown.name : typeof thrown
  return new ResourceError(`parley failed to handle the answer (${name})`, {
    code: 'fault',
    hint: `This is a bug in parley (${feed}): please report it with the stack trace from the log.`,
    cause: thrown,
  })
}
