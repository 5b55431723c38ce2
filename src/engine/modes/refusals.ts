import { ResourceError, RetryError } from '../../base/errors.ts'
import type { DeclaredFeed, ListFeed } from '../../catalog/feeds.ts'
import type { EngineContext } from '../context/context.ts'
import { markUnavailable } from '../due/back-off.ts'

/** Handles refusals of a whole list or document, and undeclared ones. refused-scope.ts handles those of one scope. */

/** The error for a refusal that no declaration expects. Pure. */
export function refusalError(status: number, message: string): ResourceError {
  return new ResourceError(`The API refused the request with ${status}: ${message}`, {
    code: `refused-${status}`,
    hint: REFUSAL_HINTS[status] ?? 'See the API description for what this status means.',
  })
}

const REFUSAL_HINTS: Readonly<Record<number, string>> = {
  400: 'The API may have changed. `parley doctor` shows which requests the API accepts.',
  403: 'Ask an administrator of the workspace to let the key read this, or leave the resource out (sync.resources).',
  404: 'Check api.base_url and api.workspace_id. If they are right, the workspace may not offer this resource.',
}

/** The error for an answer with a record other than the one requested. The request is retried. */
export function wrongIdentityError(): RetryError {
  return new RetryError('The API returned a record other than the one requested', {
    code: 'wrong-identity',
    hint: 'Check whether a proxy or cache between parley and the API mixes up answers.',
  })
}

/**
 * Handles the refusal of a list, of one scope of it, or of a document. If this was read before, a 403 or 404 is a
 * fault, declared or not: the key has lost a permission, or the API fails. Any other refusal makes the feed unavailable
 * if its status is declared so, and is a fault if not.
 */
export function handleRefusal(
  context: EngineContext,
  list: DeclaredFeed<ListFeed>,
  status: number,
  message: string,
  { scope }: { scope?: string } = {},
): void {
  const wasRead = context.store.segments.of(list.id, scope).some(({ listedAt }) => listedAt !== null)
  if (wasRead && status in REMEDIES) throw accessLostError(status, message)
  if (list.feed.expected?.[status] !== 'unavailable') throw refusalError(status, message)
  markUnavailable(context, list, `The API answers ${status}: ${message}`)
}

/**
 * The message includes the remedy, since `parley status` and the summary of a backfill show only the message.
 * @param what the refused part of the resource; empty for the whole resource
 */
export function accessLostError(status: number, message: string, what = ''): ResourceError {
  const part = what === '' ? '' : `${what}: `
  const found = `The API answers ${status} for data that it returned before: ${message.replace(/\.$/, '')}`
  const remedy = REMEDIES[status] ?? 'Check what the key may read'
  return new ResourceError(`${part}${found}. ${remedy}; stored rows are kept.`, {
    code: `lost-${status}`,
  })
}

const REMEDIES: Readonly<Record<number, string>> = {
  403: 'Grant the key this permission again',
  404: 'Check that the workspace still offers this and that the key may read it',
}
