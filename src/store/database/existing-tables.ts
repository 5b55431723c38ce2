import { quote } from './sql.ts'
import type { Sqlite } from './sqlite-types.ts'

/**
 * Finds out which tables, views, columns and other objects exist: another version may have written the database, or
 * people may have added objects.
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

/** A view, a trigger or an index. */
export interface SchemaObject {
  type: 'view' | 'trigger' | 'index'
  name: string
  /** The table or view that it belongs to. */
  table: string
  sql: string
}

/** @returns all views and triggers, and the indices that do not belong to a constraint */
export function schemaObjects(db: Sqlite, order: 'name' | 'rowid'): SchemaObject[] {
  return db
    .prepare<unknown[], SchemaObject>(
      `SELECT type, name, tbl_name AS "table", sql FROM sqlite_master
         WHERE type IN ('view', 'trigger', 'index') AND sql IS NOT NULL ORDER BY ${order}`,
    )
    .all()
}

/** An object that could not be created again on a table that parley has changed. */
export interface LeftOut extends SchemaObject {
  /** SQLite's error message. */
  reason: string
}

/** Creates a dropped object again, inside a transaction. Returns the object if it does not fit its table any more. */
export function createAgain(db: Sqlite, object: SchemaObject): LeftOut[] {
  try {
    db.transaction(() => db.exec(object.sql))()
    return []
  } catch (error) {
    // A full disk rolls back the whole transaction.
    if (!db.inTransaction || !(error instanceof Error)) throw error
    return [{ ...object, reason: error.message }]
  }
}
