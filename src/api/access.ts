import { EXIT_STATUS, StopError } from '../errors.ts'

/** Where the API is asked, for which workspace, and with which key; and the errors that say that it cannot be. Pure. */
export interface ApiAccess {
  baseUrl: string
  workspaceId: string
  /** Where the key came from, such as `environment PARLEY_API_KEY`. Never the key. */
  keySource: string
}

/** 401: nothing can be asked with this key. */
export function unauthorized({ baseUrl, workspaceId, keySource }: ApiAccess, message: string): StopError {
  return new StopError(
    `The API at ${baseUrl} refuses the key from ${keySource} (workspace ${workspaceId}): ${message}`,
    {
      code: 'unauthorized',
      hint: 'Check api.key: it is wrong, expired or revoked, or belongs to another workspace.',
      exitStatus: EXIT_STATUS.refused,
    },
  )
}

/** When everything answers 403 or 404, it is not the things that are gone. */
export function accessGone({ baseUrl, workspaceId, keySource }: ApiAccess, isForeign: boolean): StopError {
  const found = `answers 403 or 404 to everything`
  const message = isForeign
    ? `${baseUrl} is not this API: it ${found}, and never in the form of the API's errors`
    : `The API at ${baseUrl} ${found} for workspace ${workspaceId} with the key from ${keySource}`
  const hint = isForeign ? NOT_THIS_API : 'Check api.workspace_id, and what the key may read.'
  return new StopError(message, {
    code: 'access-gone',
    hint: `${hint} Nothing was marked as deleted.`,
    exitStatus: EXIT_STATUS.refused,
  })
}

/** Nothing has answered for too long. @param failure the last failure, as a sentence */
export function noAnswer({ baseUrl }: ApiAccess, failure: string, isForeign: boolean): StopError {
  return new StopError(
    isForeign ? `${baseUrl} is not this API: ${failure}` : `No answer from ${baseUrl}: ${failure}`,
    {
      code: 'api-silent',
      hint: isForeign
        ? NOT_THIS_API
        : 'Check api.base_url and the network, then run it again; it goes on where it stopped.',
      exitStatus: EXIT_STATUS.apiUnavailable,
    },
  )
}

export const NOT_THIS_API =
  'Set api.base_url to the address below which the API has /v1 and /v2; a proxy or a login page may stand there.'
