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
}

const MINUTE_MS = 60_000

export function recoveryFrom({ error, hadBegun, wasAnswered }: ShiftEnd): Recovery {
  if (!(error instanceof StopError)) return { kind: 'end' }
  const wait = (reason: string): Recovery => ({ kind: 'wait', ms: MINUTE_MS, reason })
  // A key that the API took a moment ago may have been changed: the new one is read, and tried once.
  if (error.code === 'unauthorized') return wasAnswered ? wait('the API refuses the key') : { kind: 'end' }
  // Another file may have been put in the place of the database.
  const isOther = error.code === 'other-workspace'
  const isMendable =
    isOther ||
    error.exitStatus === EXIT_STATUS.databaseUnavailable ||
    error.exitStatus === EXIT_STATUS.unfinished
  return isMendable && hadBegun ? wait(error.message) : { kind: 'end' }
}
