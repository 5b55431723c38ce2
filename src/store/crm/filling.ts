import type { Clock } from '../../base/clock.ts'
import { hasTable, renameTable } from '../database/existing-tables.ts'
import { quote } from '../database/sql.ts'
import type { Prepare, Sqlite } from '../database/sqlite-types.ts'
import { nameFor } from './metadata.ts'
import type { CrmRow, CrmTableRows } from './rows.ts'
import { dropTable, freeName, isTableError, lastId, namesInUse } from './sql.ts'
import type { CrmTableState, CrmTableStates, TypedTable } from './table-state.ts'

/** Replaces an object's table: fills the new one in batches, swaps it in, then empties and drops the old one. */
export interface CrmTableFilling {
  /**
   * An object with a table to fill or to empty. Unless `all` is true, the first table of an object waits until the
   * object's list was read to its end, the list is unavailable, or reading `crm_records` fails.
   */
  objectWithWork(options: { all: boolean }): string | undefined
  /** Whether this object has a table to fill or to empty now. */
  isReady(object: string): boolean
  /**
   * Fills or empties a table of an object until `clock.elapsed()` reaches `until`, but always handles the first record
   * or the first EMPTY_BATCH_ROWS rows. True when a table was replaced: the caller must then call `publish`.
   */
  runBatch(object: string, until: number): boolean
}

export interface CrmTableFillingDeps {
  db: Sqlite
  prepare: Prepare
  clock: Pick<Clock, 'elapsed'>
  states: CrmTableStates
  rows: Pick<CrmTableRows, 'put'>
}

/** Records read at a time. When records have thousands of fields, a batch has no time for more. */
const READ_RECORDS = 5
/** Rows deleted between two checks of the clock while a table is emptied. */
const EMPTY_BATCH_ROWS = 20

export function createCrmTableFilling(deps: CrmTableFillingDeps): CrmTableFilling {
  const { db, prepare, states } = deps
  const wasListed = prepare(
    `SELECT 1 FROM sync_resources WHERE resource = 'crm_records'
       AND (first_complete_at IS NOT NULL OR failing_since IS NOT NULL)
     UNION ALL SELECT 1 FROM sync_segments WHERE feed = 'crm_records.list' AND scope = ?
       AND (listed_at IS NOT NULL OR unavailable_since IS NOT NULL) LIMIT 1`,
  )
  const fill = createFiller(deps)
  const empty = createEmptier(deps)

  const hasWork = (object: string, { made, next, leaving }: CrmTableState, all: boolean): boolean =>
    next ? all || made !== undefined || wasListed.get(object) !== undefined : leaving.length > 0

  return {
    objectWithWork({ all }) {
      for (const [object, state] of states.all()) if (hasWork(object, state, all)) return object
      return undefined
    },
    isReady(object) {
      const state = states.all().get(object)
      return state !== undefined && hasWork(object, state, false)
    },
    runBatch(object, until) {
      const state = states.all().get(object)
      if (state?.next) {
        if (!fill(object, state.next, until)) return false
        states.save(object, replaceTable(db, object, state, state.next))
        return true
      }
      const [table] = state?.leaving ?? []
      if (state && table !== undefined && empty(table, until))
        states.save(object, { ...state, leaving: state.leaving.filter(each => each !== table) })
      return false
    },
  }
}

/** Fills a table, continuing after the last id in it. Returns whether the table is complete. */
function createFiller({ prepare, clock, db, rows }: CrmTableFillingDeps) {
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

/** Replaces the present table with the next one. Readers see the old table until the commit, then the new one. */
function replaceTable(
  db: Sqlite,
  object: string,
  { made, leaving }: CrmTableState,
  next: TypedTable,
): CrmTableState {
  const name = made?.table ?? freeName(db, nameFor(object))
  const left = [...leaving]
  if (made && hasTable(db, made.table)) {
    const retired = namesInUse(db).take('sync_crm_left')
    renameTable(db, made.table, retired)
    left.push(retired)
  }
  renameTable(db, next.table, name)
  return { made: { table: name, columns: next.columns }, leaving: left }
}

/** Empties a table in batches, then drops it. Returns true when no work on the table is left. */
function createEmptier({ db, clock }: CrmTableFillingDeps) {
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
