import { EXIT_STATUS, StopError } from '../errors.ts'

/** Identifies the API, the workspace and the key in error messages. */
export interface ApiAccess {
  baseUrl: string
  workspaceId: string
  /** Where the key came from, such as `environment PARLEY_API_KEY`. Never the key. */
  keySource: string
}

/** 401: the API refuses the key. */
export function unauthorized({ baseUrl, workspaceId, keySource }: ApiAccess, message: string): StopError {
  return new StopError(
    `The API at ${baseUrl} refuses the key from ${keySource} (workspace ${workspaceId}): ${message}`,
    {
      code: 'unauthorized',
      hint: 'Replace this key: it is wrong, expired or revoked, or belongs to another workspace.',
      exitStatus: EXIT_STATUS.refused,
    },
  )
}

/** 403 or 404 to every request: access is lost. No row is deleted because of it. */
export function accessGone({ baseUrl, workspaceId, keySource }: ApiAccess, isForeign: boolean): StopError {
  const found = 'answers every request with 403 or 404'
  const message = isForeign
    ? `${baseUrl} does not answer like the API: it ${found}, and its errors do not have the API's format`
    : `The API at ${baseUrl} ${found} (workspace ${workspaceId}, key from ${keySource})`
  const hint = isForeign ? NOT_THIS_API : "Check api.workspace_id and the key's permissions."
  return new StopError(message, {
    code: 'access-gone',
    hint: `${hint} Nothing was marked as deleted.`,
    exitStatus: EXIT_STATUS.refused,
  })
}

/** The API has given no usable answer for too long. @param failure the last failure, as a sentence */
export function noAnswer({ baseUrl }: ApiAccess, failure: string, isForeign: boolean): StopError {
  return new StopError(
    isForeign
      ? `${baseUrl} does not answer like the API: ${failure}`
      : `No usable answer from ${baseUrl}: ${failure}`,
    {
      code: 'api-silent',
      hint: isForeign
        ? NOT_THIS_API
        : 'Check api.base_url and the network, or wait until the API is back, then run the command again. A backfill continues where it stopped.',
      exitStatus: EXIT_STATUS.apiUnavailable,
    },
  )
}

export const NOT_THIS_API =
  'Check api.base_url: it is the address that has /v1 and /v2 of the API. If it is right, a proxy, a firewall or a login page answers instead.'
