import type { Sqlite } from '../open.ts'
import { quote } from '../sql.ts'
import type { OwnObjects } from './own-objects.ts'

/** Rows of a table that refer to rows which are not there. */
export interface BrokenReferences {
  table: string
  /** False for a table that someone else has made: SQLite does not check these for every program. */
  isOwn: boolean
  /** Undefined where the table refers to columns that are no key, so that they cannot be counted. */
  rows: number | undefined
}

export function brokenReferences(db: Sqlite, own: OwnObjects): BrokenReferences[] {
  const tables = db
    .prepare("SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE '%REFERENCES%' ORDER BY name")
    .pluck()
    .all() as string[]
  return tables.flatMap(table => {
    const isOwn = own.tables.has(table)
    const rows = rowsOf(db, table, isOwn)
    return rows === 0 ? [] : [{ table, isOwn, rows }]
  })
}

function rowsOf(db: Sqlite, table: string, isOwn: boolean): number | undefined {
  try {
    return db.prepare(`PRAGMA foreign_key_check(${quote(table)})`).all().length
  } catch (error) {
    const isMismatch = error instanceof Error && 'code' in error && error.code === 'SQLITE_ERROR'
    if (isOwn || !isMismatch) throw error
    return undefined
  }
}
