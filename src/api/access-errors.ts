import { connectionTodo } from '../base/connection-faults.ts'
import { EXIT_STATUS, StopError } from '../base/errors.ts'
import type { SettingSource } from '../config/loaded-settings.ts'
import { environmentName } from '../config/settings.ts'

/** Identifies the API, the workspace and the key in error messages. */
export interface ApiAccess {
  baseUrl: string
  workspaceId: string
  /** Where the key was read from. Never the key itself. */
  keySource: SettingSource
}

/** @returns the error for a 401: the API refuses the key */
export function unauthorized({ baseUrl, workspaceId, keySource }: ApiAccess, message: string): StopError {
  return new StopError(
    `The API at ${baseUrl} refuses the key from ${keySource.text} (workspace ${workspaceId}): ${message}`,
    {
      code: 'unauthorized',
      hint: `The key is wrong, expired or revoked, or belongs to another workspace. ${replacement(keySource)}`,
      exitStatus: EXIT_STATUS.refused,
    },
  )
}

/** @returns a sentence that says where to put another key */
function replacement({ by, text }: SettingSource): string {
  if (by === 'credential')
    return 'Write the new key to the file that the unit names (LoadCredential=), and restart the service.'
  if (by === 'environment') return `Set ${environmentName('api.key')} to the new key, and start parley again.`
  return `Write the new key to ${text}.`
}

/** @returns the error when every request gets a 403 or 404: access is lost. No row is deleted because of it. */
export function accessGone({ baseUrl, workspaceId, keySource }: ApiAccess, isForeign: boolean): StopError {
  const found = 'answers every request with 403 or 404'
  const message = isForeign
    ? `${baseUrl} does not answer like the API: it ${found}, and its errors do not have the API's format`
    : `The API at ${baseUrl} ${found} (workspace ${workspaceId}, key from ${keySource.text})`
  const hint = isForeign ? NOT_THIS_API : "Check api.workspace_id and the key's permissions."
  return new StopError(message, {
    code: 'access-gone',
    hint: `${hint} Nothing was marked as deleted.`,
    exitStatus: EXIT_STATUS.refused,
  })
}

/** A port that speaks TLS closes a connection without TLS, or answers with a TLS alert. */
const plainTodo = (baseUrl: string, failure: string): string | undefined =>
  baseUrl.startsWith('http:') && /^The (?:connection was closed|answer is not HTTP)/.test(failure)
    ? 'If the API speaks TLS at this port, use https:// in api.base_url; if not, wait until the API is back.'
    : undefined

const UNREACHABLE =
  'Check api.base_url, the network and the proxy if there is one, or wait until the API is back.'

/**
 * @returns the error when the API has given no usable answer for too long
 * @param failure the last failure, as a sentence
 */
export function noAnswerError({ baseUrl }: ApiAccess, failure: string, isForeign: boolean): StopError {
  return new StopError(
    isForeign
      ? `${baseUrl} does not answer like the API: ${failure}`
      : `No usable answer from ${baseUrl}: ${failure}`,
    {
      code: 'api-silent',
      hint: isForeign
        ? NOT_THIS_API
        : `${connectionTodo(failure) ?? plainTodo(baseUrl, failure) ?? UNREACHABLE} Then run the command again: a backfill continues where it stopped.`,
      exitStatus: EXIT_STATUS.apiUnavailable,
    },
  )
}

export const NOT_THIS_API =
  'Check api.base_url: it is the address that has /v1 and /v2 of the API. If it is right, a proxy, a firewall or a login page answers instead.'
