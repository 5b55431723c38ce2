import { type Backoff, backoffMs } from '../base/backoff.ts'
import type { RetryCause } from './classify.ts'

/** Decides whether and when a failed request is retried, by the cause of the failure. Pure; the caller waits. */

export interface RetryPolicy {
  /** Total number of attempts, including the first. */
  attempts: number
  backoff: Backoff
}

const SERVER_FAULT: RetryPolicy = { attempts: 6, backoff: { firstMs: 500, mostMs: 30_000, jitter: 1 } }

/**
 * `throttled` has no backoff here, since the governor pauses all requests after a 429. `unreachable` has no limit of
 * attempts here, since the caller decides when to give up (`api.give_up_seconds`).
 */
const RETRY_POLICIES: Readonly<Record<RetryCause, RetryPolicy>> = {
  throttled: { attempts: Number.POSITIVE_INFINITY, backoff: { firstMs: 0, mostMs: 0, jitter: 0 } },
  server: SERVER_FAULT,
  timeout: SERVER_FAULT,
  transport: SERVER_FAULT,
  garbled: SERVER_FAULT,
  unreachable: { attempts: Number.POSITIVE_INFINITY, backoff: { firstMs: 500, mostMs: 10_000, jitter: 1 } },
}

export interface FailedAttempt {
  cause: RetryCause
  /** Attempts made so far: 1 after the first. */
  attempt: number
  /** The wait that the API asked for. */
  waitMs?: number | undefined
}

export type RetryDecision = { retry: true; delayMs: number } | { retry: false }

/**
 * Limits the wait that a server or a gateway asked for with one failed request, since a long wait may be a mistake. A
 * short wait is kept. Of a long one, the first retry waits `FIRST_TRIAL_MS`, and each later retry `LONG_WAIT_MS`.
 */
function believedMs(waitMs: number, attempt: number): number {
  if (waitMs <= LONG_WAIT_MS) return waitMs
  return attempt === 1 ? FIRST_TRIAL_MS : LONG_WAIT_MS
}

const FIRST_TRIAL_MS = 5000
const LONG_WAIT_MS = 20_000

/**
 * The delay is the wait that the API asked for, limited by `believedMs`, plus an exponential backoff with full jitter.
 * For a throttled request the delay is 0, since the governor waits instead.
 * @param random returns a number from 0 to below 1
 */
export function retryDecision(
  { cause, attempt, waitMs = 0 }: FailedAttempt,
  random: () => number,
): RetryDecision {
  const { attempts, backoff } = RETRY_POLICIES[cause]
  if (attempt >= attempts) return { retry: false }
  const asked = cause === 'throttled' ? 0 : believedMs(waitMs, attempt)
  return { retry: true, delayMs: Math.round(asked + backoffMs(backoff, attempt, random)) }
}
