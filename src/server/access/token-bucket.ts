import type { Clock } from '../../base/clock.ts'

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
