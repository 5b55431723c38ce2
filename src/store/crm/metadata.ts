import { hasTable } from '../database/existing-tables.ts'
import type { Prepare, Sqlite } from '../database/sqlite-types.ts'
import { dealViews } from '../views/deals.ts'
import { replaceViews } from '../views/replace.ts'
import { type CrmColumn, columnsOf, identifier } from './columns.ts'
import { createCrmDictionary } from './dictionary.ts'
import { createCrmFieldReader, createTable, dropTable, dropViews, namesInUse, viewsOf } from './sql.ts'
import { type CrmTableState, type CrmTableStates, tablesOf } from './table-state.ts'

/** Creates typed tables from the CRM metadata, and publishes their names for people. */
export interface CrmTableMetadata {
  /**
   * Creates an empty next table when an object has no table yet or its columns have changed. Drops the tables of an
   * object that no longer exists.
   */
  plan(object: string): void
  /** Writes the names of an object's table and columns to `crm_objects`, `crm_fields`, the views and the dictionary. */
  publish(object: string): void
  /** Drops all tables and views of an object. */
  drop(object: string): void
}

export interface CrmTableMetadataDeps {
  db: Sqlite
  prepare: Prepare
  states: CrmTableStates
}

export function createCrmTableMetadata({ db, prepare, states }: CrmTableMetadataDeps): CrmTableMetadata {
  const objectExists = prepare('SELECT 1 FROM crm_objects WHERE name = ?')
  const fieldsOf = createCrmFieldReader(prepare)
  const publish = createPublisher({ db, prepare, states })

  const drop = (object: string) => {
    const state = states.all().get(object)
    if (!state) return
    if (state.made) dropViews(db, state.made.table)
    for (const table of tablesOf(state)) dropTable(db, table)
    states.remove(object)
    publish(object)
  }

  return {
    publish,
    drop,
    plan(object) {
      if (!objectExists.get(object)) return drop(object)
      const state = withoutDropped(db, states.all().get(object))
      const latest = state.next ?? state.made
      const before = new Map(latest?.columns.map(({ field, column }) => [field, column] as const))
      const columns = columnsOf(fieldsOf(object), before)
      if (latest && sameColumns(latest.columns, columns)) return
      const table = namesInUse(db).take('sync_crm_next')
      createTable(db, table, state.made?.table ?? nameFor(object), columns)
      const leaving = [...state.leaving, ...(state.next ? [state.next.table] : [])]
      states.save(object, { ...state, next: { table, columns }, leaving })
    },
  }
}

/** The name of an object's table. `freeName` appends a number when the name is taken. */
export function nameFor(object: string): string {
  return `crm_${identifier(object)}`
}

/** The state without tables that another program has dropped. */
function withoutDropped(db: Sqlite, state: CrmTableState | undefined): CrmTableState {
  const { made, next, leaving = [] } = state ?? {}
  const isMade = made && hasTable(db, made.table)
  if (made && !isMade) dropViews(db, made.table)
  return {
    ...(isMade ? { made } : {}),
    ...(next && hasTable(db, next.table) ? { next } : {}),
    leaving,
  }
}

function sameColumns(some: readonly CrmColumn[], others: readonly CrmColumn[]): boolean {
  const text = (columns: readonly CrmColumn[]) =>
    JSON.stringify(columns.map(({ field, column, form, indexed }) => [field, column, form, indexed]))
  return text(some) === text(others)
}

function createPublisher({ db, prepare, states }: CrmTableMetadataDeps): CrmTableMetadata['publish'] {
  const fieldsOf = createCrmFieldReader(prepare)
  const dictionary = createCrmDictionary(prepare)
  const setTable = prepare('UPDATE crm_objects SET table_name = ? WHERE name = ? AND table_name IS NOT ?')
  const setColumn = prepare('UPDATE crm_fields SET column_name = ? WHERE object = ? AND name = ?')
  return object => {
    const { made, next } = states.all().get(object) ?? {}
    const fields = fieldsOf(object)
    const table = made?.table ?? null
    const isNewTable = setTable.run(table, object, table).changes > 0
    const columns = new Map(made?.columns.map(({ field, column }) => [field, column] as const))
    for (const { name, column: published } of fields) {
      const column = columns.get(name) ?? null
      if (column !== published) setColumn.run(column, object, name)
    }
    const hasNewViews = made !== undefined && replaceViews(db, viewsOf(made.table, made.columns, fields))
    // While the next table is being filled, the present one's dictionary texts change only together with its views.
    if (made && next && !hasNewViews) return
    replaceViews(db, dealViews(db))
    // A new table also changes the descriptions of relations to it, in all objects.
    dictionary.refresh(isNewTable ? undefined : object)
  }
}
