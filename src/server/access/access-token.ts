import { isLoopback } from '../../base/loopback.ts'
import type { Listen } from '../../config/kinds.ts'
import { createSecretCheck } from './secret-check.ts'

/** The header of a response with status 401. Browsers then ask for a name and a password; any name will do. */
export const ASK_FOR_TOKEN = { 'www-authenticate': 'Basic realm="parley", charset="UTF-8"' }

/** Whether other machines may reach the address, so that the server asks for a token there or does not run. */
export function needsToken(listen: Listen): listen is Extract<Listen, { at: 'port' }> {
  return listen.at === 'port' && !isLoopback(listen.host)
}

/**
 * The returned function says whether an `Authorization` header has the token, as `Bearer` or as the password of
 * `Basic`.
 */
export function createTokenCheck(token: string): (header: string | undefined) => boolean {
  const isToken = createSecretCheck(token)
  return header => isToken(tokenIn(header ?? ''))
}

function tokenIn(header: string): string | undefined {
  const [, scheme = '', value = ''] = /^(\S+) +(\S+)$/.exec(header) ?? []
  if (scheme.toLowerCase() === 'bearer') return value
  if (scheme.toLowerCase() !== 'basic') return undefined
  return /^[^:]*:(.*)$/s.exec(Buffer.from(value, 'base64').toString('utf8'))?.[1]
}
