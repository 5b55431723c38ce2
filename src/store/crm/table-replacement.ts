import type { Clock } from '../../base/clock.ts'
import { createAgain, hasTable, type LeftOut, renameTable } from '../database/existing-tables.ts'
import { quote } from '../database/sql.ts'
import type { Prepare, Sqlite } from '../database/sqlite-types.ts'
import { replaceViews, type View } from '../views/replace.ts'
import { type CrmColumn, columnsForFields } from './columns.ts'
import { refreshCrmDictionary } from './dictionary.ts'
import {
  createCrmFieldReader,
  createTable,
  dropTable,
  dropViews,
  foreignIndices,
  freeName,
  isTableError,
  lastId,
  nameFor,
  namesInUse,
  viewsOf,
} from './sql.ts'
import { type CrmTableState, type CrmTableStates, type TypedTable, tableNamesOf } from './table-state.ts'
import type { CrmRow, CrmTableRows } from './typed-rows.ts'

interface CrmTableReplacementDeps {
  db: Sqlite
  prepare: Prepare
  clock: Pick<Clock, 'elapsed'>
  states: CrmTableStates
  rows: Pick<CrmTableRows, 'put'>
  /** The views that depend on the names of typed tables and their columns. */
  dependentViews(): readonly View[]
  onLeftOut?: ((index: LeftOut) => void) | undefined
}

/** Records read at a time. When records have thousands of fields, a batch has no time for more. */
const READ_RECORDS = 5
/** Rows deleted between two checks of the clock while a table is emptied. */
const EMPTY_BATCH_ROWS = 20

/**
 * Replaces the typed tables of an object when its metadata changes: creates a next table, fills it in batches, swaps it
 * in, then empties and drops the old one. Publishes the names of the present table for people.
 */
export function createCrmTableReplacement(deps: CrmTableReplacementDeps) {
  const { db, prepare, states } = deps
  const objectExists = prepare('SELECT 1 FROM crm_objects WHERE name = ?')
  const wasListed = prepare(
    `SELECT 1 FROM sync_resources WHERE resource = 'crm_records'
       AND (first_complete_at IS NOT NULL OR failing_since IS NOT NULL)
     UNION ALL SELECT 1 FROM sync_segments WHERE feed = 'crm_records.list' AND scope = ?
       AND (listed_at IS NOT NULL OR unavailable_since IS NOT NULL) LIMIT 1`,
  )
  const fieldsOf = createCrmFieldReader(prepare)
  const publish = createPublisher(deps)
  const fill = createFiller(deps)
  const empty = createEmptier(deps)

  const drop = (object: string) => {
    if (!states.all().has(object)) return
    dropTypedTables(db, states, object)
    publish(object)
  }
  const hasWork = (object: string, { made, next, leaving }: CrmTableState, all: boolean): boolean =>
    next ? all || made !== undefined || wasListed.get(object) !== undefined : leaving.length > 0

  return {
    /** Writes the names of an object's table and columns to `crm_objects`, `crm_fields`, the views and the dictionary. */
    publish,
    drop,
    /**
     * Creates an empty next table when an object has no table yet or its columns have changed. Drops the tables of an
     * object that no longer exists.
     */
    plan(object: string) {
      if (!objectExists.get(object)) return drop(object)
      const state = withoutDropped(db, states.all().get(object))
      const latest = state.next ?? state.made
      const before = new Map(latest?.columns.map(({ field, column }) => [field, column] as const))
      const columns = columnsForFields(fieldsOf(object), before)
      if (latest && sameColumns(latest.columns, columns)) return
      const table = namesInUse(db).take('sync_crm_next')
      createTable(db, table, state.made?.table ?? nameFor(object), columns)
      const leaving = [...state.leaving, ...(state.next ? [state.next.table] : [])]
      states.save(object, { ...state, next: { table, columns }, leaving })
    },
    /**
     * An object with a table to fill or to empty. Unless `all` is true, the first table of an object waits until the
     * object's list was read to its end, the list is unavailable, or reading `crm_records` fails.
     */
    objectWithWork({ all }: { all: boolean }) {
      for (const [object, state] of states.all()) if (hasWork(object, state, all)) return object
      return undefined
    },
    /** Whether this object has a table to fill or to empty now. */
    isReady(object: string) {
      const state = states.all().get(object)
      return state !== undefined && hasWork(object, state, false)
    },
    /**
     * Fills or empties a table of an object until `clock.elapsed()` reaches `until`, but always handles the first record
     * or the first EMPTY_BATCH_ROWS rows. True when a table was replaced: the caller must then call `publish`.
     */
    runBatch(object: string, until: number) {
      const state = states.all().get(object)
      if (state?.next) {
        if (!fill(object, state.next, until)) return false
        states.save(object, replaceTable(deps, object, state, state.next))
        return true
      }
      const [table] = state?.leaving ?? []
      if (state && table !== undefined && empty(table, until))
        states.save(object, { ...state, leaving: state.leaving.filter(each => each !== table) })
      return false
    },
  }
}

/** Drops the tables and views of an object that has any. */
export function dropTypedTables(db: Sqlite, states: CrmTableStates, object: string): void {
  const state = states.all().get(object)
  if (!state) return
  if (state.made) dropViews(db, state.made.table)
  for (const table of tableNamesOf(state)) dropTable(db, table)
  states.remove(object)
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

/** What a column is. Other versions have stored more properties of it. */
export const columnText = ({ field, column, form }: CrmColumn): string =>
  JSON.stringify([field, column, form])

function sameColumns(some: readonly CrmColumn[], others: readonly CrmColumn[]): boolean {
  return some.map(columnText).join() === others.map(columnText).join()
}

function createPublisher({ db, prepare, states, dependentViews }: CrmTableReplacementDeps) {
  const fieldsOf = createCrmFieldReader(prepare)
  const setTable = prepare('UPDATE crm_objects SET table_name = ? WHERE name = ? AND table_name IS NOT ?')
  const setColumn = prepare('UPDATE crm_fields SET column_name = ? WHERE object = ? AND name = ?')
  return (object: string) => {
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
    // While the next table is being filled, the dictionary texts of the present table change only together with its
    // views.
    if (made && next && !hasNewViews) return
    replaceViews(db, dependentViews())
    // A new table also changes the descriptions of relations to it, in all objects.
    refreshCrmDictionary(prepare, isNewTable ? undefined : object)
  }
}

/** Fills a table, continuing after the last id in it. Returns whether the table is complete. */
function createFiller({ prepare, clock, db, rows }: CrmTableReplacementDeps) {
  const someRecords = prepare<CrmRow>(
    `SELECT id, fields, created_at AS createdAt, updated_at AS updatedAt, _deleted_at AS deletedAt
     FROM crm_records WHERE object = ? AND id > ? ORDER BY id LIMIT ${READ_RECORDS}`,
  )
  return (object: string, table: TypedTable, until: number): boolean => {
    for (let after = lastId(db, table.table); ; ) {
      const records = someRecords.all(object, after)
      for (const record of records) {
        rows.put(table, record)
        after = record.id
        if (clock.elapsed() >= until) return false
      }
      if (records.length < READ_RECORDS) return true
    }
  }
}

/**
 * Replaces the present table with the next one, which gets the indices that people have added. Readers see the old
 * table until the commit, then the new one.
 */
function replaceTable(
  { db, onLeftOut }: CrmTableReplacementDeps,
  object: string,
  { made, leaving }: CrmTableState,
  next: TypedTable,
): CrmTableState {
  const name = made?.table ?? freeName(db, nameFor(object))
  const left = [...leaving]
  const indices = made ? foreignIndices(db, made) : []
  if (made && hasTable(db, made.table)) {
    for (const index of indices) db.exec(`DROP INDEX ${quote(index.name)}`)
    const retired = namesInUse(db).take('sync_crm_left')
    renameTable(db, made.table, retired)
    left.push(retired)
  }
  renameTable(db, next.table, name)
  // An index cannot be renamed, so the indices are created on the filled table, each in one step.
  for (const index of indices.flatMap(each => createAgain(db, each))) onLeftOut?.(index)
  return { made: { table: name, columns: next.columns }, leaving: left }
}

/** Empties a table in batches, then drops it. Returns true when no work on the table is left. */
function createEmptier({ db, clock }: CrmTableReplacementDeps) {
  return (table: string, until: number): boolean => {
    if (!hasTable(db, table)) return true
    // Not by rowid, since a CRM field may have the name `rowid`.
    const remove = db.prepare(
      `DELETE FROM ${quote(table)} WHERE "id" IN (SELECT "id" FROM ${quote(table)} LIMIT ${EMPTY_BATCH_ROWS})`,
    )
    try {
      while (remove.run().changes > 0) if (clock.elapsed() >= until) return false
    } catch (error) {
      // A trigger or foreign key of another program may forbid the DELETE. The table is then dropped with its rows.
      if (!isTableError(error)) throw error
    }
    dropTable(db, table)
    return true
  }
}
