import { createHash, timingSafeEqual } from 'node:crypto'
import type { Clock } from '../base/clock.ts'
import { isLoopback } from '../base/loopback.ts'
import type { Listen } from '../config/kinds.ts'

/** The header of a response with status 401. Browsers then ask for a name and a password; any name will do. */
export const ASK_FOR_TOKEN = { 'www-authenticate': 'Basic realm="parley", charset="UTF-8"' }

/** Whether other machines may reach the address, so that the server asks for a token there or does not run. */
export function needsToken(listen: Listen): listen is Extract<Listen, { at: 'port' }> {
  return listen.at === 'port' && !isLoopback(listen.host)
}

/** The token in an `Authorization` header: that of `Bearer`, or the password of `Basic`. */
export function tokenIn(header = ''): string | undefined {
  const [, scheme = '', value = ''] = /^(\S+) +(\S+)$/.exec(header) ?? []
  if (scheme.toLowerCase() === 'bearer') return value
  if (scheme.toLowerCase() !== 'basic') return undefined
  return /^[^:]*:(.*)$/s.exec(Buffer.from(value, 'base64').toString('utf8'))?.[1]
}

export type GateVerdict = 'admitted' | 'wrong-secret' | 'too-many'

/**
 * The returned function decides by the secret in a request. Guesses have an allowance, and do not use up that of the
 * right sender. The time that a decision takes reveals nothing about the secret.
 */
export function createGate(secret: string, clock: Clock): (given: string | undefined) => GateVerdict {
  const wanted = digest(secret)
  const mayGuess = createAllowance(clock)
  return (given = '') => {
    if (timingSafeEqual(digest(given), wanted)) return 'admitted'
    return mayGuess() ? 'wrong-secret' : 'too-many'
  }
}

/** Digests have one length, so that the comparison does not reveal the secret's length. */
const digest = (text: string): Buffer => createHash('sha256').update(text).digest()

/** The limit for webhooks with the secret, for those without it, and for requests without the right access token. */
const PER_SECOND = 10
const BURST = 50

/**
 * A token bucket: limits how often something may happen per second, with a burst after a pause. The returned function
 * takes one token, and returns false when none is left.
 */
export function createAllowance({ elapsed }: Pick<Clock, 'elapsed'>): () => boolean {
  let left = BURST
  let since = elapsed()
  return () => {
    const now = elapsed()
    left = Math.min(BURST, left + ((now - since) / 1000) * PER_SECOND)
    since = now
    if (left < 1) return false
    left -= 1
    return true
  }
}
