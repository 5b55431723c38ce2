import { quote } from './sql.ts'
import type { Sqlite } from './sqlite-types.ts'

/** Which tables, views and columns exist: another version may have written the database, or people added tables. */

export function hasTable(db: Sqlite, name: string): boolean {
  return hasObject(db, 'table', name)
}

export function hasView(db: Sqlite, name: string): boolean {
  return hasObject(db, 'view', name)
}

export function hasColumn(db: Sqlite, table: string, column: string): boolean {
  const sql = 'SELECT 1 FROM pragma_table_info(?) WHERE name = ?'
  return db.prepare(sql).get(table, column) !== undefined
}

/** The names of all tables, without views. */
export function tableNames(db: Sqlite): ReadonlySet<string> {
  const names = db.prepare<unknown[], string>("SELECT name FROM sqlite_master WHERE type = 'table'")
  return new Set(names.pluck().all())
}

function hasObject(db: Sqlite, type: 'table' | 'view', name: string): boolean {
  const sql = 'SELECT 1 FROM sqlite_master WHERE type = ? AND name = ?'
  return db.prepare(sql).get(type, name) !== undefined
}

/**
 * Renames a table without checking or changing views. A view may select columns of another table that had this name, or
 * be broken, and SQLite would refuse the rename because of it.
 */
export function renameTable(db: Sqlite, from: string, to: string): void {
  db.pragma('legacy_alter_table = ON')
  try {
    db.exec(`ALTER TABLE ${quote(from)} RENAME TO ${quote(to)}`)
  } finally {
    db.pragma('legacy_alter_table = OFF')
  }
}
