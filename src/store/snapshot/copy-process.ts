import { EXIT_STATUS, StopError } from '../../base/errors.ts'
import { runProgram } from '../database/child-program.ts'
import type { StatusRow } from '../status/status.ts'

/** Runs the child process that copies a database, for snapshots and for restores. */

/** Input of the child process. */
export interface SnapshotInput {
  database: string
  /** Path of the copy: a new file. */
  part: string
  /** Path of an earlier snapshot, expected to be of the same warehouse. */
  earlier: string | undefined
  /** Query for `WholeCopy.status`. */
  statusSql: string
}

/**
 * The answer of the child process. The `code` of a failure is one of SQLite or of the system, `unsound` when the copy
 * failed verification, `other` when the earlier snapshot is of another warehouse, or `unknown`.
 */
export type SnapshotAnswer = WholeCopy | { failed: { about: 'database' | 'snapshot'; code: string } }

export interface WholeCopy {
  bytes: number
  /** Rows of `statusSql`, read from the copy. */
  status: readonly StatusRow[]
}

/** @throws StopError 75 when the process ended without an answer */
export function runSnapshotProcess(
  program: URL,
  input: SnapshotInput,
  signal: AbortSignal,
): Promise<SnapshotAnswer> {
  return runProgram({ program, input: input, signal, noAnswerError: how => cutOffError(input.database, how) })
}

export const cutOffError = (database: string, how: string): StopError =>
  new StopError(`Cannot copy ${database}: the process that writes the copy ended early (${how})`, {
    code: 'snapshot-cut-off',
    hint: 'Try again. If it fails again, check the memory and process limits of this user or service.',
    exitStatus: EXIT_STATUS.unfinished,
  })
