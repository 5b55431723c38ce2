import { accessSync, chmodSync, constants, existsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import Database from 'better-sqlite3'

/**
 * Opens a file that this process writes as a SQLite database, and creates it where there is none.
 *
 * Only SQLite ever opens a descriptor of such a file. POSIX locks belong to the process, and closing any descriptor of
 * a file drops all of them: a connection of another thread would go on without the lock that it believes it holds,
 * and the next program to close the file would delete the WAL under it (sqlite.org/howtocorrupt.html, 2.2).
 * @throws the error of the system or of SQLite when the file may not be created or written
 */
export function openWritableFile(file: string, mode: number, timeout = 100): Database.Database {
  const isNew = !existsSync(file)
  // The system says why a file cannot be written. SQLite would open it for reading instead.
  accessSync(isNew ? dirname(file) : file, isNew ? constants.W_OK | constants.X_OK : constants.W_OK)
  if (!isNew) return new Database(file, { timeout, fileMustExist: true })
  const db = createForOwnerOnly(() => new Database(file, { timeout }))
  chmodSync(file, mode)
  return db
}

/** A descriptor that others opened before the mode is set would stay valid after it. */
function createForOwnerOnly<T>(create: () => T): T {
  const umask = process.umask(0o077)
  try {
    return create()
  } finally {
    process.umask(umask)
  }
}

/** A file whose mode is not the wanted one. */
export interface ModeChange {
  path: string
  found: number
  wanted: number
  /** False where this user does not own the file. */
  isApplied: boolean
}

/** Gives the files of a database that exist their mode. Returns those that had another one. */
export function applyMode(files: readonly string[], wanted: number): ModeChange[] {
  return files.flatMap(path => {
    const stats = statSync(path, { throwIfNoEntry: false })
    const found = (stats?.mode ?? wanted) & 0o777
    return found === wanted ? [] : [{ path, found, wanted, isApplied: isChanged(path, wanted) }]
  })
}

function isChanged(path: string, mode: number): boolean {
  try {
    chmodSync(path, mode)
    return true
  } catch {
    return false
  }
}
