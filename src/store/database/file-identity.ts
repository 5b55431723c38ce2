import { statSync } from 'node:fs'
import type { Clock } from '../../clock.ts'
import { EXIT_STATUS, StopError } from '../../errors.ts'

/** A file as the system knows it, whatever its name is. */
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
 * Whether an open database still has its name. SQLite goes on writing a file that was moved away, and no one who opens
 * the name sees what it writes.
 */
export interface FileWatch {
  isMoved(): boolean
  /** Looks at most once a second. @throws StopError (73) when another file, or none, has the name */
  requireUnmoved(): void
}

const LOOK_MS = 1000

export function watchFile(file: string, { elapsed }: Pick<Clock, 'elapsed'>): FileWatch {
  const opened = identityOf(file)
  const isMoved = () => !isSameFile(opened, identityOf(file))
  let lookedAt = elapsed()
  return {
    isMoved,
    requireUnmoved() {
      if (elapsed() - lookedAt < LOOK_MS) return
      if (isMoved()) throw moved(file)
      lookedAt = elapsed()
    },
  }
}

/** @throws StopError (73) when the file of this name is gone */
export function requireStillThere(file: string): void {
  if (identityOf(file) === undefined) throw moved(file)
}

function moved(file: string): StopError {
  return new StopError(`${file} was moved away or replaced while parley was writing it`, {
    code: 'database-moved',
    hint: 'Stop parley before moving or restoring a database. The daemon goes on with the file of this name once there is one.',
    exitStatus: EXIT_STATUS.databaseUnavailable,
  })
}
