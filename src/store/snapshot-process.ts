import { EXIT_STATUS, StopError } from '../errors.ts'
import { askProgram } from './child-program.ts'

/** The process that makes a snapshot, as the one that asks for it sees it. */

/** What it is told. */
export interface SnapshotOrder {
  database: string
  /** Where it writes: a new file. */
  part: string
  /** One that should be of the same warehouse. */
  earlier: string | undefined
  statusSql: string
}

/**
 * What it answers; the code is SQLite's or the system's, or `unsound` for a copy that is not as it should be, or
 * `other` where the earlier one is of another warehouse.
 */
export type SnapshotAnswer = WholeCopy | { failed: { about: 'database' | 'snapshot'; code: string } }

export interface WholeCopy {
  bytes: number
  /** What the order's statement finds in it. */
  status: readonly unknown[]
}

/** @throws StopError 75 when it ended without an answer */
export function askProcess(program: URL, order: SnapshotOrder, signal: AbortSignal): Promise<SnapshotAnswer> {
  return askProgram({ program, order, signal, cutOff: how => cutOff(order.database, how) })
}

export const cutOff = (database: string, how: string): StopError =>
  new StopError(`The snapshot of ${database} failed: the process that makes it was cut off (${how})`, {
    code: 'snapshot-cut-off',
    hint: 'Try it again; if it stays so, look for a limit on memory or on processes.',
    exitStatus: EXIT_STATUS.unfinished,
  })
