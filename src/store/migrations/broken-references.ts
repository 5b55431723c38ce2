import { errorCode } from '../../base/errors.ts'
import { quote } from '../database/sql.ts'
import type { Sqlite } from '../database/sqlite-types.ts'
import type { OwnObjects } from './own-objects.ts'

/** A table with foreign keys that refer to missing rows. */
export interface BrokenReferences {
  table: string
  /**
   * False for a table that parley did not create. Such a table can have broken references, because SQLite does not
   * enforce foreign keys on a connection that leaves them off.
   */
  isOwn: boolean
  /** Rows with a broken reference. Undefined when the foreign key names columns without a unique index. */
  rows: number | undefined
}

export function brokenReferences(db: Sqlite, own: OwnObjects): BrokenReferences[] {
  const tables = db
    .prepare<unknown[], string>(
      "SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE '%REFERENCES%' ORDER BY name",
    )
    .pluck()
    .all()
  return tables.flatMap(table => {
    const isOwn = own.tables.has(table)
    const rows = countBroken(db, table, isOwn)
    return rows === 0 ? [] : [{ table, isOwn, rows }]
  })
}

function countBroken(db: Sqlite, table: string, isOwn: boolean): number | undefined {
  try {
    return db.prepare(`PRAGMA foreign_key_check(${quote(table)})`).all().length
  } catch (error) {
    if (isOwn || errorCode(error) !== 'SQLITE_ERROR') throw error
    return undefined
  }
}
