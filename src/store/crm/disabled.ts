import type { NotedChanges } from '../changes/noted-changes.ts'
import type { Prepare, Sqlite } from '../database/sqlite-types.ts'
import { dealViews } from '../views/deals.ts'
import { replaceViews } from '../views/replace.ts'
import { createCrmDictionary } from './dictionary.ts'
import { dropTable, dropViews } from './sql.ts'
import { createCrmTableStates, tablesOf } from './table-state.ts'
import type { CrmTables } from './tables.ts'

/**
 * Switches the typed tables off. Drops those of earlier processes, and removes their names from `crm_objects`,
 * `crm_fields`, the views and the dictionary. Returns CrmTables that do nothing.
 */
export function disableCrmTables(db: Sqlite, prepare: Prepare, changes: NotedChanges): CrmTables {
  db.transaction(() => {
    const states = createCrmTableStates(prepare, changes)
    for (const [object, state] of [...states.all()]) {
      if (state.made) dropViews(db, state.made.table)
      for (const table of tablesOf(state)) dropTable(db, table)
      states.remove(object)
    }
    prepare('UPDATE crm_objects SET table_name = NULL WHERE table_name IS NOT NULL').run()
    prepare('UPDATE crm_fields SET column_name = NULL WHERE column_name IS NOT NULL').run()
    createCrmDictionary(prepare).refresh()
    replaceViews(db, dealViews(db))
    changes.store()
  }).immediate()
  return { follow: () => undefined, finish: async () => undefined, close: () => undefined }
}
