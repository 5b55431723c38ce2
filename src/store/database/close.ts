import { openSqlite } from './sqlite.ts'
import type { Sqlite } from './sqlite-types.ts'

/**
 * Closes the database and keeps its `-wal` and `-shm` files. Without them, a reader that may not write the folder
 * cannot open a WAL database. SQLite removes them unless the last connection to close is a read-only one.
 */
export function closeDatabase(db: Sqlite): void {
  const { readonly, memory } = db
  if (readonly || memory) {
    db.close()
    return
  }
  tryTruncateWal(db)
  closeKeepingWal(db)
}

/**
 * Closes a database whose file was renamed. No second connection is opened: the old name may belong to another file
 * by now. The WAL is emptied first, so that its frames cannot be applied to that file.
 */
export function closeMovedDatabase(db: Sqlite): void {
  tryTruncateWal(db)
  db.close()
}

function tryTruncateWal(db: Sqlite): void {
  try {
    db.pragma('wal_checkpoint(TRUNCATE)')
  } catch {
    // On a full disk the WAL stays. Nothing is lost: the next connection reads it.
  }
}

/** Closes the database and leaves its `-wal` and `-shm` files unchanged. */
export function closeKeepingWal(db: Sqlite): void {
  let last: Sqlite | undefined
  try {
    last = openSqlite(db.name, { readonly: true, fileMustExist: true })
    // SQLite opens the files of a connection at its first read. This one does not parse the schema.
    last.pragma('user_version')
  } catch {
    // A database that cannot be read needs no -wal and -shm for its readers.
  }
  db.close()
  last?.close()
}
