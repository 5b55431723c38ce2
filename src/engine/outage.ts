import type { Sent } from '../api/client.ts'
import { type Backoff, backoffMs } from '../backoff.ts'
import type { Clock } from '../clock.ts'

/**
 * Notices when the API is away altogether. Then one request is made for each step of a growing wait, whatever else
 * is due, instead of several for each resource.
 */
export interface Outage {
  heard(sent: Sent): void
  isOn(): boolean
  /** Time until the next try, in ms; 0 when it may be made. */
  waitMs(): number
  /** Since when, by this machine's clock, and what the last try met. */
  since(): { at: number; reason: string } | undefined
}

/** So many requests in a row without an answer, and it is not the things that were asked for. */
const FAILURES_IN_A_ROW = 5
const BACKOFF: Backoff = { firstMs: 1000, mostMs: 60_000, jitter: 0.5 }

export function createOutage(clock: Clock, random: () => number): Outage {
  let failures = 0
  let begun: number | undefined
  let reason = ''
  let nextTry = Number.NEGATIVE_INFINITY
  return {
    heard(sent) {
      if (sent.kind !== 'retry' || sent.cause === 'throttled') {
        failures = 0
        begun = undefined
        return
      }
      reason = sent.message
      // What was under way when it began, or when the last try was made, is no further step.
      if (begun !== undefined && clock.elapsed() < nextTry) return
      failures += 1
      if (failures < FAILURES_IN_A_ROW) return
      begun ??= clock.now()
      nextTry = clock.elapsed() + backoffMs(BACKOFF, failures - FAILURES_IN_A_ROW + 1, random)
    },
    isOn: () => begun !== undefined,
    waitMs: () => (begun === undefined ? 0 : Math.max(0, nextTry - clock.elapsed())),
    since: () => (begun === undefined ? undefined : { at: begun, reason }),
  }
}
