import { type Backoff, backoffMs } from '../backoff.ts'
import type { RetryCause } from './classify.ts'

/** How often and how far apart a request is repeated, by what went wrong. Pure; the scheduler waits. */

export interface RetryPolicy {
  /** Attempts in all, the first included. */
  attempts: number
  backoff: Backoff
}

const OWN_TROUBLE: RetryPolicy = { attempts: 6, backoff: { firstMs: 500, mostMs: 30_000, jitter: 1 } }

/**
 * A throttled request is repeated as soon as the governor lets one go: it alone keeps the pause. How long an
 * unreachable API is tried is the caller's to end (`api.give_up_seconds`).
 */
export const RETRY_POLICIES: Readonly<Record<RetryCause, RetryPolicy>> = {
  throttled: { attempts: Number.POSITIVE_INFINITY, backoff: { firstMs: 0, mostMs: 0, jitter: 0 } },
  server: OWN_TROUBLE,
  timeout: OWN_TROUBLE,
  transport: OWN_TROUBLE,
  garbled: OWN_TROUBLE,
  unreachable: { attempts: Number.POSITIVE_INFINITY, backoff: { firstMs: 500, mostMs: 10_000, jitter: 1 } },
}

export interface FailedAttempt {
  cause: RetryCause
  /** Attempts made so far: 1 after the first. */
  attempt: number
  /** What the API asked to wait. */
  waitMs?: number | undefined
}

export type RetryDecision = { retry: true; delayMs: number } | { retry: false }

/**
 * Exponential backoff with full jitter, and never before the time that the API asked for (which for a throttled
 * request the governor keeps).
 * @param random a number from 0 up to 1
 */
export function retryDecision(
  { cause, attempt, waitMs = 0 }: FailedAttempt,
  random: () => number,
): RetryDecision {
  const { attempts, backoff } = RETRY_POLICIES[cause]
  if (attempt >= attempts) return { retry: false }
  const asked = cause === 'throttled' ? 0 : waitMs
  return { retry: true, delayMs: Math.round(asked + backoffMs(backoff, attempt, random)) }
}
