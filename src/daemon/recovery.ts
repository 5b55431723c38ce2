import { longestBackoffMs } from '../backoff.ts'
import { EXIT_STATUS, StopError } from '../errors.ts'

/** What the daemon does when a shift could not go on. Pure. */
export type Recovery =
  | { kind: 'wait'; ms: number; reason: string }
  /** The error ends the daemon. */
  | { kind: 'end' }

export interface ShiftEnd {
  error: unknown
  /** True when an earlier shift, or this one, had begun its work. */
  hadBegun: boolean
  /** True when the API had taken the key in this shift. */
  wasAnswered: boolean
  /** True when the API had answered an earlier shift or run on this warehouse. */
  wasAnsweredBefore: boolean
  /** How many shifts in a row access was lost in, this one included. */
  timesLost: number
}

const MINUTE_MS = 60_000

/** Access may come back at any moment, and each try costs a request for each list. */
const LOST = { firstMs: MINUTE_MS, mostMs: 60 * MINUTE_MS }

export function recoveryFrom(end: ShiftEnd): Recovery {
  const { error, hadBegun, wasAnswered } = end
  if (!(error instanceof StopError)) return { kind: 'end' }
  const wait = (reason: string, ms = MINUTE_MS): Recovery => ({ kind: 'wait', ms, reason })
  // A key that the API took a moment ago may have been changed: the new one is read, and tried once.
  if (error.code === 'unauthorized') return wasAnswered ? wait('the API refuses the key') : { kind: 'end' }
  if (isAccessLost(error)) {
    if (!wasAnswered && !end.wasAnsweredBefore) return { kind: 'end' }
    return wait('the API answers 403 or 404 to everything', longestBackoffMs(LOST, end.timesLost))
  }
  // Another file may have been put in the place of the database.
  const isOther = error.code === 'other-workspace'
  const isMendable =
    isOther ||
    error.exitStatus === EXIT_STATUS.databaseUnavailable ||
    error.exitStatus === EXIT_STATUS.unfinished
  return isMendable && hadBegun ? wait(error.message) : { kind: 'end' }
}

export function isAccessLost(error: unknown): boolean {
  return error instanceof StopError && error.code === 'access-gone'
}
