import { accessSync, chmodSync, constants, existsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { openSqlite } from '../database/sqlite.ts'
import type { Sqlite } from '../database/sqlite-types.ts'

/**
 * Opens a file as a SQLite database for writing, and creates it when it does not exist.
 *
 * Never open such a file by other means than SQLite. POSIX locks belong to the process, and closing any descriptor of
 * a file releases all of them. A connection of another thread would go on without its lock, and the next program that
 * closes the file would delete the WAL in use (sqlite.org/howtocorrupt.html, 2.2).
 * @throws the error of the system or of SQLite when the file may not be created or written
 */
export function openWritableFile(file: string, mode: number, timeout = 100): Sqlite {
  const isNew = !existsSync(file)
  // Reports why a file cannot be written. SQLite would silently open it read-only.
  accessSync(isNew ? dirname(file) : file, isNew ? constants.W_OK | constants.X_OK : constants.W_OK)
  if (!isNew) return openSqlite(file, { timeout, fileMustExist: true })
  const db = createForOwnerOnly(() => openSqlite(file, { timeout }))
  chmodSync(file, mode)
  return db
}

/** Creates a file with mode 0600. With more rights, another user could open it before the chmod and keep it open. */
function createForOwnerOnly<T>(create: () => T): T {
  const umask = process.umask(0o077)
  try {
    return create()
  } finally {
    process.umask(umask)
  }
}

/** A file whose permission bits differed from the wanted ones. */
export interface ModeChange {
  path: string
  found: number
  wanted: number
  /** False when this user may not change the mode, because another user owns the file. */
  isApplied: boolean
}

/** A file mode as chmod(1) takes it, such as `0640`. */
export function octalMode(mode: number): string {
  return mode.toString(8).padStart(4, '0')
}

/** Sets the mode of the files that exist. Returns those that had another mode. */
export function applyMode(files: readonly string[], wanted: number): ModeChange[] {
  return files.flatMap(path => {
    const stats = statSync(path, { throwIfNoEntry: false })
    const found = (stats?.mode ?? wanted) & 0o777
    return found === wanted ? [] : [{ path, found, wanted, isApplied: trySetMode(path, wanted) }]
  })
}

function trySetMode(path: string, mode: number): boolean {
  try {
    chmodSync(path, mode)
    return true
  } catch {
    return false
  }
}
