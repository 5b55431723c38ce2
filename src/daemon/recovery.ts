import { longestBackoffMs } from '../backoff.ts'
import { MINUTE_MS } from '../clock.ts'
import { EXIT_STATUS, StopError } from '../errors.ts'

export interface WaitBetweenSessions {
  ms: number
  /** The error's message. */
  reason: string
  /** The error's. */
  hint: string | undefined
  /** The error's. */
  code: string
}

/** What the daemon does after a session failed. */
export type Recovery =
  | ({ kind: 'wait' } & WaitBetweenSessions)
  /** The error ends the daemon. */
  | { kind: 'end' }

export interface SessionEnd {
  error: unknown
  /** Whether this or an earlier session opened the database. */
  hasStarted: boolean
  /** Whether the API accepted the key in this session. */
  wasAnswered: boolean
  /** Whether the API answered an earlier session or run on this warehouse. */
  wasAnsweredBefore: boolean
  /** Number of consecutive sessions that lost access, including this one. A session with an answer restarts it at 1. */
  timesLost: number
}

/** The wait before the next session. Access may return at any time, but each attempt costs one request per list. */
const LOST_ACCESS_WAIT = { firstMs: MINUTE_MS, mostMs: 60 * MINUTE_MS }

/** Pure. */
export function recoveryFrom(end: SessionEnd): Recovery {
  const { error, hasStarted, wasAnswered } = end
  if (!(error instanceof StopError)) return { kind: 'end' }
  const wait = (ms = MINUTE_MS): Recovery => ({
    kind: 'wait',
    ms,
    reason: error.message,
    hint: error.hint,
    code: error.code,
  })
  // The API accepted the key earlier in this session, so the workspace may have a new key. The next session reads the
  // key again. When the API refuses that key at once, the daemon ends.
  if (error.code === 'unauthorized') return wasAnswered ? wait() : { kind: 'end' }
  if (isAccessLost(error)) {
    if (!wasAnswered && !end.wasAnsweredBefore) return { kind: 'end' }
    return wait(longestBackoffMs(LOST_ACCESS_WAIT, end.timesLost))
  }
  // Someone may have put the database of another workspace at this path, and may put the right one back.
  const isOther = error.code === 'other-workspace'
  const isRecoverable =
    isOther ||
    error.exitStatus === EXIT_STATUS.databaseUnavailable ||
    error.exitStatus === EXIT_STATUS.unfinished
  return isRecoverable && hasStarted ? wait() : { kind: 'end' }
}

export function isAccessLost(error: unknown): boolean {
  return error instanceof StopError && error.code === 'access-gone'
}
