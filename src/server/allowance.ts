import type { Clock } from '../clock.ts'

/** How many times something may happen: so often in a second, and so often at once after a pause. */
export interface Allowance {
  /** True when it may happen now, which is then counted. */
  take(): boolean
}

export interface AllowanceOptions {
  perSecond: number
  burst: number
  clock: Clock
}

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
