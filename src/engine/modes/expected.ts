import type { Expected } from '../../catalog/resource.ts'
import { ResourceError, RetryError } from '../../errors.ts'
import type { EngineContext } from '../context.ts'
import type { FeedName } from '../feeds.ts'

/** What a refusal is called when nothing declares it to be an answer. Pure. */
export function refusal(status: number, message: string): ResourceError {
  return new ResourceError(`The API refused the request with ${status}: ${message}`, {
    code: `refused-${status}`,
    hint: REFUSAL_HINTS[status] ?? 'See the API description for what this status means.',
  })
}

const REFUSAL_HINTS: Readonly<Record<number, string>> = {
  400: 'The API finds the request wrong; it may have changed. `parley doctor` shows which requests it takes.',
  403: 'Ask the administrators of the workspace which permissions the key has.',
  404: 'Check api.base_url and api.workspace_id; the API may not offer this here.',
}

/** An answer for something else than was asked for is no answer. */
export function wrongIdentity(): RetryError {
  return new RetryError('The answer is for something else than was asked for', {
    code: 'wrong-identity',
    hint: 'The API, or something in front of it, mixes up its answers.',
  })
}

/**
 * For lists and documents: 403 or 404 for what was read before is a fault, declared or not: the key has lost a
 * permission, or the API fails. A declared refusal of what was never read makes the resource unavailable.
 */
export function expectedOrFault(
  context: EngineContext,
  feed: FeedName,
  expected: Expected | undefined,
  status: number,
  message: string,
): void {
  const wasRead = context.store.segments.of(feed.feed).some(({ listedAt }) => listedAt !== null)
  if (wasRead && status in REMEDIES) throw accessLost(status, message)
  if (expected?.[status] !== 'unavailable') throw refusal(status, message)
  context.markUnavailable(feed, `The API answers ${status}: ${message}`)
}

/**
 * The message says what to do, since it is all that `parley status` and the summary of a backfill show.
 * @param what the part of the resource that is refused, where it is not the whole
 */
export function accessLost(status: number, message: string, what = ''): ResourceError {
  const part = what === '' ? '' : `${what}: `
  const found = `The API answers ${status} for what it gave before: ${message.replace(/\.$/, '')}`
  const remedy = REMEDIES[status] ?? 'Check what the key may read'
  return new ResourceError(`${part}${found}. ${remedy}; the rows stay meanwhile.`, {
    code: `lost-${status}`,
  })
}

const REMEDIES: Readonly<Record<number, string>> = {
  403: 'Give the key this permission back',
  404: 'Check that the workspace still offers this and that the key may read it',
}
