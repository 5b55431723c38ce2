import { quote } from '../../src/store/database/sql.ts'
import { openSqlite } from '../../src/store/database/sqlite.ts'
import type { Sqlite } from '../../src/store/database/sqlite-types.ts'

/** Every row of every table but those about runs, as text: two equal results mean that nothing was rewritten. */
export function contentOf(file: string): Map<string, string[]> {
  return withDatabase(file, db => {
    const tables = db
      .prepare(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sync_%' AND name NOT LIKE 'search_%' AND name NOT LIKE '\\_\\_%' ESCAPE '\\'",
      )
      .pluck()
      .all()
      .map(String)
    return new Map(
      tables.map(table => [
        table,
        db
          .prepare(`SELECT * FROM ${quote(table)}`)
          .raw()
          .all()
          .map(row => JSON.stringify(row)),
      ]),
    )
  })
}

export function query(file: string, sql: string, ...values: string[]): Record<string, unknown>[] {
  return withDatabase(file, db => db.prepare(sql).all(...values) as Record<string, unknown>[])
}

function withDatabase<T>(file: string, read: (db: Sqlite) => T): T {
  const db = openSqlite(file, { readonly: true })
  try {
    return read(db)
  } finally {
    db.close()
  }
}
