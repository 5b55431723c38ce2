/**
 * The errors that parley raises on purpose, one class for each way of recovery, and the exit statuses. The message
 * tells people what happened. The class tells the program what to do.
 */

import { safeMultilineText } from './safe-text.ts'

/** Scripts and service managers rely on these numbers, which follow sysexits(3). */
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

/** The statuses of `parley status --check`, which are those of monitoring plug-ins: fine, warning, critical. */
export type CheckStatus = 0 | 1 | 2

export type ExitStatus = (typeof EXIT_STATUS)[keyof typeof EXIT_STATUS]

export interface ErrorDetails {
  /** A stable identifier for scripts and tests, such as `broken-envelope`. */
  code: string
  /** What a person can do about the error, as one sentence. */
  hint?: string
  cause?: unknown
}

/** Message and hint may quote text from outside, so both are made safe for logs and terminals. */
export class ParleyError extends Error {
  readonly code: string
  readonly hint: string | undefined

  constructor(message: string, { code, hint, cause }: ErrorDetails) {
    super(safeMultilineText(message), cause === undefined ? undefined : { cause })
    this.name = new.target.name
    this.code = code
    this.hint = hint === undefined ? undefined : safeMultilineText(hint)
  }
}

/** Recovery: send the same request again later. Raised for unusable responses, such as a broken envelope. */
export class RetryError extends ParleyError {}

/** Recovery: stop reading this resource in this run and go on with the others. */
export class ResourceError extends ParleyError {}

/**
 * Recovery: none. A command ends with the exit status. The daemon ends, or waits and starts a new session
 * (`daemon/recovery.ts`).
 */
export class StopError extends ParleyError {
  readonly exitStatus: ExitStatus

  constructor(message: string, details: ErrorDetails & { exitStatus: ExitStatus }) {
    super(message, details)
    this.exitStatus = details.exitStatus
  }
}

export function exitStatusOf(error: unknown): ExitStatus {
  if (error instanceof StopError) return error.exitStatus
  const isFromTheApi = error instanceof RetryError || error instanceof ResourceError
  return isFromTheApi ? EXIT_STATUS.apiUnavailable : EXIT_STATUS.fault
}

/**
 * The error to report: the reason of the signal in place of an AbortError, with which requests in flight end after the
 * signal.
 */
export function reportedError(error: unknown, signal: AbortSignal): unknown {
  const isStopped = signal.aborted && error instanceof Error && error.name === 'AbortError'
  return isStopped ? signal.reason : error
}

/** Message and hint as one text, for places without room for a separate hint, such as `sync_status`. */
export function reasonWithHint({ message, hint }: { message: string; hint?: string | undefined }): string {
  if (hint === undefined) return message
  return `${/[.?!]$/.test(message) ? message : `${message}.`} ${hint}`
}

/**
 * The text to store and show for an error. The message of any error but a ParleyError is left out: it may quote private
 * text.
 */
export function reasonOf(error: unknown): string {
  return error instanceof ParleyError ? error.message : 'Internal error'
}

/** The hint of an error to store, as a field; no field for an error without one. */
export const hintOf = (error: unknown): { hint?: string } =>
  error instanceof ParleyError && error.hint !== undefined ? { hint: error.hint } : {}

/** The code of an error, such as `ENOENT` or `SQLITE_BUSY`; undefined for anything without a code. */
export function errorCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined
}

/** Whether the error says that there is no file or folder of that path. */
export function isMissingFile(error: unknown): boolean {
  const code = errorCode(error)
  return code === 'ENOENT' || code === 'ENOTDIR'
}
