import { quote } from './sql.ts'
import type { Sqlite } from './sqlite-types.ts'

/**
 * Finds out which tables, views and columns exist: another version may have written the database, or people may have
 * added tables.
 */

export function hasTable(db: Sqlite, name: string): boolean {
  return hasObject(db, 'table', name)
}

export function hasView(db: Sqlite, name: string): boolean {
  return hasObject(db, 'view', name)
}

export const hasColumn = (db: Sqlite, table: string, column: string): boolean =>
  columnNames(db, table).has(column)

/** The columns of a table or view in their order; none when there is no such table. */
export function columnNames(db: Sqlite, table: string): ReadonlySet<string> {
  return new Set(db.prepare<unknown[], string>('SELECT name FROM pragma_table_info(?)').pluck().all(table))
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
 * Renames a table without checking or changing views. SQLite would refuse the rename because of a broken view, or of a
 * view that selects columns which another table of this name had.
 */
export function renameTable(db: Sqlite, from: string, to: string): void {
  db.pragma('legacy_alter_table = ON')
  try {
    db.exec(`ALTER TABLE ${quote(from)} RENAME TO ${quote(to)}`)
  } finally {
    db.pragma('legacy_alter_table = OFF')
  }
}
