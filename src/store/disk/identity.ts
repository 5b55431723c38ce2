import { statSync } from 'node:fs'
import type { Clock } from '../../base/clock.ts'
import { EXIT_STATUS, StopError } from '../../base/errors.ts'

/** Device and inode of a file. They stay the same when the file is renamed. */
export interface FileIdentity {
  dev: number
  ino: number
}

export function identityOf(file: string): FileIdentity | undefined {
  const stats = statSync(file, { throwIfNoEntry: false })
  return stats && { dev: stats.dev, ino: stats.ino }
}

export const isSameFile = (one: FileIdentity | undefined, other: FileIdentity | undefined): boolean =>
  one !== undefined && one.dev === other?.dev && one.ino === other.ino

/**
 * Detects that an open database file was moved or replaced. SQLite would go on writing to the moved file, and readers
 * that open the path would not see these writes.
 */
export interface FileWatch {
  isMoved(): boolean
  /** Checks at most once a second. @throws StopError (73) when the path names another file or none */
  requireUnmoved(): void
}

const CHECK_INTERVAL_MS = 1000

export function watchFile(file: string, { elapsed }: Pick<Clock, 'elapsed'>): FileWatch {
  const opened = identityOf(file)
  const isMoved = () => !isSameFile(opened, identityOf(file))
  let checkedAt = elapsed()
  return {
    isMoved,
    requireUnmoved() {
      if (elapsed() - checkedAt < CHECK_INTERVAL_MS) return
      if (isMoved()) throw movedError(file)
      checkedAt = elapsed()
    },
  }
}

/** @throws StopError (73) when there is no file at this path */
export function requireStillThere(file: string): void {
  if (identityOf(file) === undefined) throw movedError(file)
}

function movedError(file: string): StopError {
  return new StopError(`${file} was moved, deleted or replaced while parley was using it`, {
    code: 'database-moved',
    hint: 'Make sure that the right database is at this path. Stop parley before you move a database.',
    exitStatus: EXIT_STATUS.databaseUnavailable,
  })
}
