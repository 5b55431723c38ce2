import { sqlComment } from '../../dictionary/described-table.ts'
import { describedTable } from '../../dictionary/dictionary.ts'
import { tableNames } from '../database/existing-tables.ts'
import { quote } from '../database/sql.ts'
import type { Sqlite } from '../database/sqlite-types.ts'

/** Creates the views that are missing and replaces those whose SQL differs. Returns whether it wrote any. */
export function replaceViews(db: Sqlite, views: readonly View[]): boolean {
  const present = new Map(
    db
      .prepare<unknown[], [string, string]>("SELECT name, sql FROM sqlite_master WHERE type = 'view'")
      .raw()
      .all(),
  )
  const tables = tableNames(db)
  // A table that parley did not create may have the name of a view. It stays, and that view is not created.
  const outdated = views
    .map(withComment)
    .filter(({ name, sql }) => present.get(name) !== sql && !tables.has(name))
  if (outdated.length === 0) return false
  db.transaction(() => {
    for (const view of outdated) replaceView(db, view)
  }).immediate()
  return true
}

export interface View {
  name: string
  sql: string
}

/** Adds to the SQL a comment on what a row of the view is, for people who read the schema. */
function withComment({ name, sql }: View): View {
  const about = describedTable(name)?.about
  if (about === undefined) return { name, sql }
  return { name, sql: sql.replace(/^CREATE VIEW \S+/, head => `${head} ${sqlComment(about)}`) }
}

/** Replaces a view and keeps its triggers, which parley did not create. */
function replaceView(db: Sqlite, { name, sql }: View): void {
  const triggers = db
    .prepare<unknown[], string>("SELECT sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = ?")
    .pluck()
    .all(name)
  db.exec(`DROP VIEW IF EXISTS ${quote(name)}`)
  db.exec(sql)
  for (const trigger of triggers) db.exec(trigger)
}
