import { ResourceError, RetryError } from '../errors.ts'
import type { Expected } from '../resource.ts'
import type { EngineContext, FeedName } from './context.ts'

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

/** For lists and documents: a declared refusal makes the resource unavailable, every other one fails it. */
export function expectedOrFault(
  context: EngineContext,
  feed: FeedName,
  expected: Expected | undefined,
  status: number,
  message: string,
): void {
  if (expected?.[status] !== 'unavailable') throw refusal(status, message)
  context.setAside(feed, `The API answers ${status}: ${message}`)
}
