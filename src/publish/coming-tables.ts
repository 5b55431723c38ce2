import { chosenTable, isSameName } from '../export/chosen-tables.ts'
import { exportedCrmTables, folderOfTable } from '../export/crm-tables.ts'
import { type ExportTable, presentTables } from '../export/export-tables.ts'
import { nameFor } from '../store/crm/sql.ts'
import type { Sqlite } from '../store/database/sqlite-types.ts'

/**
 * Tables that may be named before they exist: the typed table of a CRM object appears once its records were read. Until
 * the list of objects was read to its end, any name with `crm_` may be one of them.
 */

export const tablesIn = (db: Sqlite): readonly ExportTable[] => [
  ...presentTables(db),
  ...exportedCrmTables(db),
]

/** Whether a table may appear under a name. */
export function isComingIn(db: Sqlite): (name: string) => boolean {
  if (!areObjectsKnown(db)) return name => /^crm_/i.test(name)
  const objects = db.prepare<unknown[], string>('SELECT name FROM crm_objects').pluck().all()
  const names = objects.map(nameFor).flatMap(table => [table, folderOfTable(table)])
  return name => names.some(one => isSameName(one, name))
}

const areObjectsKnown = (db: Sqlite): boolean =>
  db
    .prepare("SELECT 1 FROM sync_resources WHERE resource = 'crm_objects' AND first_complete_at IS NOT NULL")
    .get() !== undefined

/** Those of the names that no table has. */
export function namesWithoutTable(db: Sqlite, names: readonly string[]): readonly string[] {
  const all = tablesIn(db)
  return names.filter(name => chosenTable(name, all) === undefined)
}
