import type { Clock } from '../../base/clock.ts'

/** A token bucket: limits how often something may happen per second, with a burst after a pause. */
export interface Allowance {
  /** Takes one token. @returns false when no token is left */
  take(): boolean
}

export interface AllowanceOptions {
  perSecond: number
  burst: number
  clock: Clock
}

/** The limit of requests without the right access token. */
export const WRONG_TOKENS = { perSecond: 10, burst: 50 }

export function createAllowance({ perSecond, burst, clock }: AllowanceOptions): Allowance {
  let left = burst
  let since = clock.elapsed()
  return {
    take() {
      const now = clock.elapsed()
      left = Math.min(burst, left + ((now - since) / 1000) * perSecond)
      since = now
      if (left < 1) return false
      left -= 1
      return true
    },
  }
}
