import { closeSync } from 'node:fs'
import { createFile, fsyncPath } from '../disk/new-files.ts'
import type { Sqlite } from './sqlite-types.ts'

/** Makes copies of a whole database, and computes their size. Child processes load this file, so it imports little. */

/** The size of a database in bytes, including the pages that are only in the WAL. */
export function databaseBytes(db: Sqlite): number {
  return pragmaNumber(db, 'page_count') * pragmaNumber(db, 'page_size')
}

/** The size in bytes of a copy of this database, which has no free pages. */
export function contentBytes(db: Sqlite): number {
  return (pragmaNumber(db, 'page_count') - pragmaNumber(db, 'freelist_count')) * pragmaNumber(db, 'page_size')
}

function pragmaNumber(db: Sqlite, name: string): number {
  return Number(db.pragma(name, { simple: true }))
}

/**
 * Writes the committed content to a new file that only this user may read (mode 0600), and fsyncs it. The copy is not
 * in WAL mode, so it is a single file, and holds no remains of deleted rows. A read-only connection is enough.
 */
export function writeWholeCopy(db: Sqlite, part: string): void {
  // VACUUM INTO accepts an empty file. Creating it here gives it mode 0600 before the first row is in it.
  closeSync(createFile(part))
  db.prepare('VACUUM INTO ?').run(part)
  fsyncPath(part)
}
