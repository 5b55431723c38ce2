/**
 * Every error that parley raises on purpose, sorted by what can be done about it, and the exit statuses.
 * The cause tells people what happened; the recovery tells the program what to do.
 */

import { harmlessLines } from './harmless.ts'

/** The promises of the command line to scripts and service managers; the numbers follow sysexits(3). */
export const EXIT_STATUS = {
  done: 0,
  fault: 1,
  usage: 64,
  apiUnavailable: 69,
  databaseUnavailable: 73,
  unfinished: 75,
  refused: 77,
  settings: 78,
} as const

export type ExitStatus = (typeof EXIT_STATUS)[keyof typeof EXIT_STATUS]

export interface ErrorDetails {
  /** A stable word for scripts and tests, such as `broken-envelope`. */
  code: string
  /** What a person can do about it, as one sentence. */
  hint?: string
  cause?: unknown
}

/** Message and hint may quote names from outside: they are harmless to logs and terminals. */
export class ParleyError extends Error {
  readonly code: string
  readonly hint: string | undefined

  constructor(message: string, { code, hint, cause }: ErrorDetails) {
    super(harmlessLines(message), cause === undefined ? undefined : { cause })
    this.name = new.target.name
    this.code = code
    this.hint = hint === undefined ? undefined : harmlessLines(hint)
  }
}

/** Recovery: the same request may succeed later. Raised for answers that are no answers, such as a broken envelope. */
export class RetryError extends ParleyError {}

/** Recovery: this resource cannot go on in this run; the others do. */
export class ResourceError extends ParleyError {}

/** Recovery: none in this process. Ends it with the exit status given. */
export class StopError extends ParleyError {
  readonly exitStatus: ExitStatus

  constructor(message: string, details: ErrorDetails & { exitStatus: ExitStatus }) {
    super(message, details)
    this.exitStatus = details.exitStatus
  }
}

/** With which the process ends when nothing handles the error. */
export function exitStatusOf(error: unknown): ExitStatus {
  if (error instanceof StopError) return error.exitStatus
  const isFromTheApi = error instanceof RetryError || error instanceof ResourceError
  return isFromTheApi ? EXIT_STATUS.apiUnavailable : EXIT_STATUS.fault
}

/** What may be stored and shown of an error: the message of any other error may hold anyone's words. */
export function reasonOf(error: unknown): string {
  return error instanceof ParleyError ? error.message : 'a fault of the program'
}
