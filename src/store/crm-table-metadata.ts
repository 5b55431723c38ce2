import { type CrmColumn, type CrmField, columnsOf, identifier } from './crm-columns.ts'
import { dropTable, dropViews, makeTable, namesInUse, tableExists, viewsOf } from './crm-sql.ts'
import { type CrmTableState, type CrmTableStates, tablesOf } from './crm-table-state.ts'
import { dealViews } from './deal-views.ts'
import { createCrmDictionary } from './dictionary.ts'
import type { Sqlite } from './open.ts'
import type { Prepare } from './statements.ts'
import { replaceViews } from './views.ts'

/** What the typed tables should be by the metadata, and what the metadata says of those that there are. */
export interface CrmTableMetadata {
  /** Makes another table, empty, where an object's columns should be others; drops those of an object that is gone. */
  plan(object: string): void
  /** Says which table and columns an object has: in the metadata, in the views over them and in the dictionary. */
  tell(object: string): void
  /** Leaves nothing of an object's tables. */
  drop(object: string): void
}

export interface CrmTableMetadataDeps {
  db: Sqlite
  prepare: Prepare
  states: CrmTableStates
}

export function createCrmTableMetadata({ db, prepare, states }: CrmTableMetadataDeps): CrmTableMetadata {
  const objectExists = prepare('SELECT 1 FROM crm_objects WHERE name = ?')
  const fieldsOf = fieldReader(prepare)
  const tell = teller({ db, prepare, states })

  const drop = (object: string) => {
    const state = states.all().get(object)
    if (!state) return
    if (state.made) dropViews(db, state.made.table)
    for (const table of tablesOf(state)) dropTable(db, table)
    states.remove(object)
    tell(object)
  }

  return {
    tell,
    drop,
    plan(object) {
      if (!objectExists.get(object)) return drop(object)
      const state = present(db, states.all().get(object))
      const latest = state.next ?? state.made
      const before = new Map(latest?.columns.map(({ field, column }) => [field, column] as const))
      const columns = columnsOf(fieldsOf(object), before)
      if (latest && sameColumns(latest.columns, columns)) return
      const table = namesInUse(db).take('sync_crm_next')
      makeTable(db, table, state.made?.table ?? nameFor(object), columns)
      const leaving = [...state.leaving, ...(state.next ? [state.next.table] : [])]
      states.save(object, { ...state, next: { table, columns }, leaving })
    },
  }
}

/** What its object's table is called, but for the number that it has where that is taken. */
export function nameFor(object: string): string {
  return `crm_${identifier(object)}`
}

/** The state without what someone has dropped. */
function present(db: Sqlite, state: CrmTableState | undefined): CrmTableState {
  const { made, next, leaving = [] } = state ?? {}
  const isMade = made && tableExists(db, made.table)
  if (made && !isMade) dropViews(db, made.table)
  return {
    ...(isMade ? { made } : {}),
    ...(next && tableExists(db, next.table) ? { next } : {}),
    leaving,
  }
}

function sameColumns(some: readonly CrmColumn[], others: readonly CrmColumn[]): boolean {
  const said = (columns: readonly CrmColumn[]) =>
    JSON.stringify(columns.map(({ field, column, form, indexed }) => [field, column, form, indexed]))
  return said(some) === said(others)
}

interface FieldRow {
  name: string
  label: string | null
  type: string | null
  isActive: number
  isRelation: number | null
  targetObject: string | null
  targetResource: string | null
  /** What was told of it before. */
  column: string | null
}

/** Reads the fields of an object in the order of the metadata. */
function fieldReader(prepare: Prepare): (object: string) => (CrmField & Pick<FieldRow, 'column'>)[] {
  const read = prepare(
    `SELECT name, label, type, is_active IS NOT 0 AS isActive, relation_type = 'MANY_TO_ONE' AS isRelation,
       relation_target_object AS targetObject, relation_target_resource AS targetResource, column_name AS column
     FROM crm_fields WHERE object = ? ORDER BY position, name`,
  )
  return object =>
    (read.all(object) as FieldRow[]).map(({ targetObject, targetResource, ...field }) => ({
      ...field,
      isActive: field.isActive === 1,
      isRelation: field.isRelation === 1,
      ...(field.isRelation === 1 ? { target: { object: targetObject, resource: targetResource } } : {}),
    }))
}

function teller({ db, prepare, states }: CrmTableMetadataDeps): CrmTableMetadata['tell'] {
  const fieldsOf = fieldReader(prepare)
  const dictionary = createCrmDictionary(prepare)
  const tellTable = prepare('UPDATE crm_objects SET table_name = ? WHERE name = ? AND table_name IS NOT ?')
  const tellColumn = prepare('UPDATE crm_fields SET column_name = ? WHERE object = ? AND name = ?')
  return object => {
    const { made, next } = states.all().get(object) ?? {}
    const fields = fieldsOf(object)
    const table = made?.table ?? null
    const isNews = tellTable.run(table, object, table).changes > 0
    const columns = new Map(made?.columns.map(({ field, column }) => [field, column] as const))
    for (const { name, column: told } of fields) {
      const column = columns.get(name) ?? null
      if (column !== told) tellColumn.run(column, object, name)
    }
    const isShownAnew = made !== undefined && replaceViews(db, viewsOf(made.table, made.columns, fields))
    // Of the present table nothing else changes until the next one takes its place.
    if (made && next && !isShownAnew) return
    replaceViews(db, dealViews(db))
    // What points at a table is explained by it.
    dictionary.refresh(isNews ? undefined : object)
  }
}
