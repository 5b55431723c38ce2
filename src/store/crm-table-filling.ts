import type { Clock } from '../clock.ts'
import { dropTable, freeName, isOfTable, lastId, namesInUse, renameTable, tableExists } from './crm-sql.ts'
import { nameFor } from './crm-table-metadata.ts'
import type { CrmRow, CrmTableRows } from './crm-table-rows.ts'
import type { CrmTableState, CrmTableStates, MadeTable } from './crm-table-state.ts'
import type { Sqlite } from './open.ts'
import { quote } from './sql.ts'
import type { Prepare } from './statements.ts'

/** How a table is filled beside the present one, takes its place, and how the one that was replaced goes. */
export interface CrmTableFilling {
  /**
   * An object whose tables have something to be done now. A first table waits until its object's list was read to the
   * end, but not where `all` are asked for.
   */
  unfinished(options: { all: boolean }): string | undefined
  /** Whether this object's have. */
  isReady(object: string): boolean
  /**
   * One lot of an object, until about `until` by the clock, one record or some rows at least. True when a table has
   * taken its place, which is to be told.
   */
  lot(object: string, until: number): boolean
}

export interface CrmTableFillingDeps {
  db: Sqlite
  prepare: Prepare
  clock: Pick<Clock, 'elapsed'>
  states: CrmTableStates
  rows: Pick<CrmTableRows, 'put'>
}

/** Records that are read at a time: of those with thousands of fields no more fit in a lot. */
const READ_RECORDS = 5
/** Rows of a table that is being emptied, between two looks at the time. */
const EMPTIED_ROWS = 20

export function createCrmTableFilling(deps: CrmTableFillingDeps): CrmTableFilling {
  const { db, prepare, states } = deps
  const wasListed = prepare(
    `SELECT 1 FROM sync_resources WHERE resource = 'crm_records'
       AND (first_complete_at IS NOT NULL OR failing_since IS NOT NULL)
     UNION ALL SELECT 1 FROM sync_segments WHERE feed = 'crm_records.list' AND scope = ?
       AND (listed_at IS NOT NULL OR unavailable_since IS NOT NULL) LIMIT 1`,
  )
  const fill = filler(deps)
  const empty = emptier(deps)

  const hasLot = (object: string, { made, next, leaving }: CrmTableState, all: boolean): boolean =>
    next ? all || made !== undefined || wasListed.get(object) !== undefined : leaving.length > 0

  return {
    unfinished({ all }) {
      for (const [object, state] of states.all()) if (hasLot(object, state, all)) return object
      return undefined
    },
    isReady(object) {
      const state = states.all().get(object)
      return state !== undefined && hasLot(object, state, false)
    },
    lot(object, until) {
      const state = states.all().get(object)
      if (state?.next) {
        if (!fill(object, state.next, until)) return false
        states.save(object, replaced(db, object, state, state.next))
        return true
      }
      const [table] = state?.leaving ?? []
      if (state && table !== undefined && empty(table, until))
        states.save(object, { ...state, leaving: state.leaving.filter(each => each !== table) })
      return false
    },
  }
}

/** Fills a table from the last id in it on. Returns whether it has every record. */
function filler({ prepare, clock, db, rows }: CrmTableFillingDeps) {
  const someRecords = prepare(
    `SELECT id, fields, created_at AS createdAt, updated_at AS updatedAt, _deleted_at AS deletedAt
     FROM crm_records WHERE object = ? AND id > ? ORDER BY id LIMIT ${READ_RECORDS}`,
  )
  return (object: string, table: MadeTable, until: number): boolean => {
    for (let after = lastId(db, table.table); ; ) {
      const records = someRecords.all(object, after) as CrmRow[]
      for (const record of records) {
        rows.put(table, record)
        after = record.id
        if (clock.elapsed() >= until) return false
      }
      if (records.length < READ_RECORDS) return true
    }
  }
}

/** Readers have the old table until this is committed, and the new one from then on. */
function replaced(
  db: Sqlite,
  object: string,
  { made, leaving }: CrmTableState,
  next: MadeTable,
): CrmTableState {
  const name = made?.table ?? freeName(db, nameFor(object))
  const left = [...leaving]
  if (made && tableExists(db, made.table)) {
    const aside = namesInUse(db).take('sync_crm_left')
    renameTable(db, made.table, aside)
    left.push(aside)
  }
  renameTable(db, next.table, name)
  return { made: { table: name, columns: next.columns }, leaving: left }
}

/** Empties a table and drops it. Returns whether it is gone. */
function emptier({ db, clock }: CrmTableFillingDeps) {
  return (table: string, until: number): boolean => {
    if (!tableExists(db, table)) return true
    // By id: a column of theirs may be called as SQLite calls a row's number.
    const remove = db.prepare(
      `DELETE FROM ${quote(table)} WHERE "id" IN (SELECT "id" FROM ${quote(table)} LIMIT ${EMPTIED_ROWS})`,
    )
    try {
      while (remove.run().changes > 0) if (clock.elapsed() >= until) return false
    } catch (error) {
      // What someone has built on it may not let its rows go.
      if (!isOfTable(error)) throw error
    }
    dropTable(db, table)
    return true
  }
}
