import { longestBackoffMs } from '../base/backoff.ts'
import { MINUTE_MS } from '../base/clock.ts'
import { EXIT_STATUS, StopError } from '../base/errors.ts'
import { DATABASE_BUSY } from '../store/database/sqlite-errors.ts'
import { FOREIGN_OBJECT } from '../store/migrations/foreign-objects.ts'
import { SEARCH_REBUILT } from '../store/search/index-marks.ts'

export interface WaitBetweenSessions {
  ms: number
  /** The error's message. */
  reason: string
  /** The hint of the error. */
  hint: string | undefined
  /** The code of the error. */
  code: string
}

/** What the daemon does after a session failed. */
export type Recovery =
  | ({ kind: 'wait' } & WaitBetweenSessions)
  /** The next session starts at once. */
  | { kind: 'continue' }
  /** The error ends the daemon. */
  | { kind: 'end' }

export interface SessionEnd {
  /** Undefined when the session ended to begin again with other settings. */
  error: unknown
  /** Whether this or an earlier session opened the database. */
  hasStarted: boolean
  /** Whether the API accepted the key in this session. */
  wasAnswered: boolean
  /** Whether the API answered an earlier session or run on this warehouse. */
  wasAnsweredBefore: boolean
  /**
   * Whether a refusal of the key is waited out once. True if the API has accepted a key since the last refusal, in this
   * or an earlier session, or if a person has replaced the key and asked for a reload.
   */
  isKeyTrusted: boolean
  /** Number of consecutive sessions that lost access, including this one. A session with an answer restarts it at 1. */
  timesLost: number
}

/** What the end of a session passes on to the next one, also after a reload without an error. */
export type SessionsBefore = Omit<SessionEnd, 'error' | 'wasAnswered'>

/** The input for the next session. Pure. */
export function sessionsUntil(end: SessionEnd): SessionsBefore {
  return {
    hasStarted: end.hasStarted,
    wasAnsweredBefore: end.wasAnswered || end.wasAnsweredBefore,
    isKeyTrusted: end.isKeyTrusted && !isKeyRefused(end.error),
    timesLost: end.timesLost,
  }
}

/** The wait before the next session. Access may return at any time, but each attempt costs one request per list. */
const LOST_ACCESS_WAIT = { firstMs: MINUTE_MS, mostMs: 60 * MINUTE_MS }

/**
 * Codes of errors whose cause other people remove from the database. No one notifies this process, so it tries again.
 */
const OF_OTHERS = [DATABASE_BUSY, FOREIGN_OBJECT]

/** Decides what the daemon does next. Pure. */
export function recoveryFrom(end: SessionEnd): Recovery {
  const { error, hasStarted, wasAnswered } = end
  if (error === undefined) return { kind: 'continue' }
  if (!(error instanceof StopError)) return { kind: 'end' }
  const wait = (ms = MINUTE_MS): Recovery => ({
    kind: 'wait',
    ms,
    reason: error.message,
    hint: error.hint,
    code: error.code,
  })
  // The workspace may have a new key. The next session reads the key again. When the API refuses that key too, the
  // daemon ends.
  if (isKeyRefused(error)) return end.isKeyTrusted ? wait() : { kind: 'end' }
  if (isAccessLost(error)) {
    if (!wasAnswered && !end.wasAnsweredBefore) return { kind: 'end' }
    return wait(longestBackoffMs(LOST_ACCESS_WAIT, end.timesLost))
  }
  if (error.code === SEARCH_REBUILT) return { kind: 'continue' }
  if (OF_OTHERS.includes(error.code)) return wait()
  // Someone may have put the database of another workspace at this path, and may put the right one back.
  const isOther = error.code === 'other-workspace'
  const isRecoverable =
    isOther ||
    error.exitStatus === EXIT_STATUS.databaseUnavailable ||
    error.exitStatus === EXIT_STATUS.unfinished
  return isRecoverable && hasStarted ? wait() : { kind: 'end' }
}

/** The code of the error when the API refuses the key. */
export const KEY_REFUSED = 'unauthorized'

const isKeyRefused = (error: unknown) => error instanceof StopError && error.code === KEY_REFUSED

export function isAccessLost(error: unknown): boolean {
  return error instanceof StopError && error.code === 'access-gone'
}
