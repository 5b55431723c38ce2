import type { Sqlite } from '../open.ts'
import { quote } from '../sql.ts'
import type { OwnObjects } from './own-objects.ts'

/** A view, a trigger or an index that is not parley's. */
export interface SchemaObject {
  type: 'view' | 'trigger' | 'index'
  name: string
  /** The table or view that it is about. */
  table: string
  sql: string
}

/** One that no longer fits the tables, and why, in SQLite's words. */
export interface LeftOut extends SchemaObject {
  reason: string
}

/**
 * Drops every view, every trigger and every index that is not parley's: SQLite refuses to rename a table while a view
 * or a trigger names it, and drops the triggers and indices of a table or view with it.
 * @returns what makes them again, and tells which could not be made
 */
export function setAside(db: Sqlite, own: OwnObjects): () => LeftOut[] {
  const all = (
    db
      .prepare(
        `SELECT type, name, tbl_name AS "table", sql FROM sqlite_master
         WHERE type IN ('view', 'trigger', 'index') AND sql IS NOT NULL ORDER BY rowid`,
      )
      .all() as SchemaObject[]
  ).filter(({ type, name, table }) => type !== 'index' || (own.tables.has(table) && !own.indices.has(name)))
  const ofType = (type: SchemaObject['type']) => all.filter(object => object.type === type)
  const [views, triggers, indices] = [ofType('view'), ofType('trigger'), ofType('index')]
  // A trigger would go with its view.
  for (const { type, name } of [...triggers, ...indices, ...views]) {
    db.exec(`DROP ${type.toUpperCase()} ${quote(name)}`)
  }
  return () => {
    const tables = new Set(db.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").pluck().all())
    // Where a table has taken the place of a view, the migrations have made what the view showed.
    const wanted = [...views.filter(({ name }) => !tables.has(name)), ...indices, ...triggers]
    return wanted.flatMap(object => made(db, object))
  }
}

/** Replaces a view, and keeps the triggers that others have put on it. */
export function replaceView(db: Sqlite, { name, sql }: { name: string; sql: string }): void {
  const triggers = db
    .prepare("SELECT sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = ?")
    .pluck()
    .all(name) as string[]
  db.exec(`DROP VIEW IF EXISTS ${quote(name)}`)
  db.exec(sql)
  for (const trigger of triggers) db.exec(trigger)
}

function made(db: Sqlite, object: SchemaObject): LeftOut[] {
  try {
    db.transaction(() => db.exec(object.sql))()
    return []
  } catch (error) {
    // A full disk ends the whole transaction.
    if (!db.inTransaction || !(error instanceof Error)) throw error
    return [{ ...object, reason: error.message }]
  }
}
