import type { Sqlite } from './sqlite-types.ts'

/** Sizes by the pages of a database, in bytes. */

/** The size of a database, including the pages that are only in the WAL. */
export function databaseBytes(db: Sqlite): number {
  return pragmaNumber(db, 'page_count') * pragmaNumber(db, 'page_size')
}

/** The size of a copy of this database: as `databaseBytes`, without the free pages. */
export function contentBytes(db: Sqlite): number {
  return (pragmaNumber(db, 'page_count') - pragmaNumber(db, 'freelist_count')) * pragmaNumber(db, 'page_size')
}

function pragmaNumber(db: Sqlite, name: string): number {
  return Number(db.pragma(name, { simple: true }))
}
