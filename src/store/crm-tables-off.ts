import { dropTable, dropViews } from './crm-sql.ts'
import { createCrmTableStates, tablesOf } from './crm-table-state.ts'
import type { CrmTables } from './crm-tables.ts'
import { dealViews } from './deal-views.ts'
import { createCrmDictionary } from './dictionary.ts'
import type { Sqlite } from './open.ts'
import type { Prepare } from './statements.ts'
import { replaceViews } from './views.ts'

/** Typed tables are not wanted: those that an earlier process kept are dropped, and nothing says that there are any. */
export function withoutCrmTables(db: Sqlite, prepare: Prepare): CrmTables {
  db.transaction(() => {
    const states = createCrmTableStates(prepare)
    for (const [object, state] of [...states.all()]) {
      if (state.made) dropViews(db, state.made.table)
      for (const table of tablesOf(state)) dropTable(db, table)
      states.remove(object)
    }
    prepare('UPDATE crm_objects SET table_name = NULL WHERE table_name IS NOT NULL').run()
    prepare('UPDATE crm_fields SET column_name = NULL WHERE column_name IS NOT NULL').run()
    createCrmDictionary(prepare).refresh()
    replaceViews(db, dealViews(db))
  }).immediate()
  return { follow: () => undefined, finish: async () => undefined, close: () => undefined }
}
