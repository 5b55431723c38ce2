import { EXIT_STATUS, StopError } from '../../base/errors.ts'
import { runProgram } from '../database/child-program.ts'
import { openSqlite } from '../database/sqlite.ts'
import type { StatusRow } from '../status/status.ts'
import { META, readMeta } from '../sync/meta.ts'

/**
 * Runs a child process that copies a database, for snapshots and restores, or that reads of which warehouse each copy was
 * made.
 */

/** What the child process is to do. */
export type CopyOrder = SnapshotInput | OwnersInput

export interface SnapshotInput {
  database: string
  /** Path of the copy: a new file. */
  part: string
  /** Path of an earlier snapshot, expected to be of the same warehouse. */
  earlier: string | undefined
  /** Query for `WholeCopy.status`. */
  statusSql: string
}

interface OwnersInput {
  paths: readonly string[]
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

/** The compiled program. It is missing when parley runs from its sources, as in tests. */
const PROGRAM = new URL('./worker.js', import.meta.url)

/** @throws StopError 75 when the process ended without an answer */
export function runSnapshotProcess(
  input: SnapshotInput,
  signal: AbortSignal,
  program = PROGRAM,
): Promise<SnapshotAnswer> {
  return runProgram({ program, input, signal, noAnswerError: how => cutOffError(input.database, how) })
}

export const cutOffError = (database: string, how: string): StopError =>
  new StopError(`Cannot copy ${database}: the process that writes the copy ended early (${how})`, {
    code: 'snapshot-cut-off',
    hint: 'Try again. If it fails again, check the memory and process limits of this user or service.',
    exitStatus: EXIT_STATUS.unfinished,
  })

/** The warehouse that a copy was made of. All fields are undefined when the copy cannot be read. */
export interface Owner {
  /** Random id of the warehouse. */
  identity?: string
  /** End of the last maintenance before the copy was made: an RFC 3339 instant. */
  maintainedAt?: string
  /** Last purge before the copy was made: an RFC 3339 instant. The copy still has content that was purged later. */
  purgedAt?: string
}

/**
 * Reads the owners of these copies, in the same order. A child process opens the copies, since their disk may not
 * answer.
 * @throws Error when the child ends without an answer
 */
export function ownersOf(paths: readonly string[], signal: AbortSignal, program = PROGRAM): Promise<Owner[]> {
  const input: OwnersInput = { paths }
  return runProgram({
    program,
    input,
    signal,
    noAnswerError: how => new Error(`Reading old copies failed: ${how}`),
  })
}

/**
 * @returns the owner of a copy; an empty object when the copy is damaged, may not be read, or is of a version without
 * the keys
 */
export function ownerOfCopy(path: string): Owner {
  try {
    const db = openSqlite(path, { readonly: true, fileMustExist: true })
    try {
      const owner: Owner = {}
      for (const key of ['identity', 'maintainedAt', 'purgedAt'] as const) {
        const value = readMeta(db, META[key])
        if (value !== undefined) owner[key] = value
      }
      return owner
    } finally {
      db.close()
    }
  } catch {
    return {}
  }
}

/**
 * Whether this warehouse may remove a copy. Two warehouses whose files have the same name may share a folder, so the
 * identity decides. When one of the two identities is unknown, `isInOwnFolder` decides. It is true for a copy in a
 * folder that is named after this database.
 * @param own identity of this warehouse
 */
export function mayRemoveCopy(
  { identity, isInOwnFolder }: { identity: string | undefined; isInOwnFolder: boolean },
  own: string | undefined,
): boolean {
  return identity === undefined || own === undefined ? isInOwnFolder : identity === own
}

/**
 * Whether content was purged between two copies of the same warehouse, so that only the earlier copy has it. False when
 * one of the copies cannot be read.
 */
export function hasPurgedSince(earlier: Owner | undefined, later: Owner | undefined): boolean {
  if (earlier?.identity === undefined || later?.purgedAt === undefined) return false
  return earlier.identity === later.identity && (earlier.purgedAt ?? '') < later.purgedAt
}
