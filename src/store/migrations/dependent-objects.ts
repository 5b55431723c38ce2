import { tableNames } from '../database/existing-tables.ts'
import { quote } from '../database/sql.ts'
import type { Sqlite } from '../database/sqlite-types.ts'
import type { OwnObjects } from './own-objects.ts'

/** Any view, any trigger, or an index that parley did not create. */
interface SchemaObject {
  type: 'view' | 'trigger' | 'index'
  name: string
  /** The table or view that it belongs to. */
  table: string
  sql: string
}

/** An object that could not be created again on the upgraded tables. */
export interface LeftOut extends SchemaObject {
  /** SQLite's error message. */
  reason: string
}

/**
 * Drops every view, every trigger, and those indices on parley's tables that parley did not create. SQLite may refuse
 * to rename a table that a view or trigger names, and dropping a table or view drops its triggers and indices too.
 * @returns a function that creates the dropped objects again and returns those that failed
 */
export function dropDependentObjects(db: Sqlite, own: OwnObjects): () => LeftOut[] {
  const all = db
    .prepare<unknown[], SchemaObject>(
      `SELECT type, name, tbl_name AS "table", sql FROM sqlite_master
         WHERE type IN ('view', 'trigger', 'index') AND sql IS NOT NULL ORDER BY rowid`,
    )
    .all()
    .filter(({ type, name, table }) => type !== 'index' || (own.tables.has(table) && !own.indices.has(name)))
  const ofType = (type: SchemaObject['type']) => all.filter(object => object.type === type)
  const [views, triggers, indices] = [ofType('view'), ofType('trigger'), ofType('index')]
  // Triggers first: dropping a view drops its triggers, and a second DROP would fail.
  for (const { type, name } of [...triggers, ...indices, ...views]) {
    db.exec(`DROP ${type.toUpperCase()} ${quote(name)}`)
  }
  return () => {
    const tables = tableNames(db)
    // A migration may have replaced a view by a table of the same name.
    const wanted = [...views.filter(({ name }) => !tables.has(name)), ...indices, ...triggers]
    return wanted.flatMap(object => recreate(db, object))
  }
}

function recreate(db: Sqlite, object: SchemaObject): LeftOut[] {
  try {
    db.transaction(() => db.exec(object.sql))()
    return []
  } catch (error) {
    // A full disk rolls back the whole transaction.
    if (!db.inTransaction || !(error instanceof Error)) throw error
    return [{ ...object, reason: error.message }]
  }
}
