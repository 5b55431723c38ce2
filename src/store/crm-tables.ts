import type { Clock } from '../clock.ts'
import { decodeJson } from '../json.ts'
import { type CrmColumn, type CrmField, columnsOf, identifier } from './crm-columns.ts'
import { createCrmNotes, type NotedRecord } from './crm-notes.ts'
import {
  type CrmRow,
  type CrmTableWriter,
  createCrmTableWriter,
  labelledView,
  liveView,
  makeTable,
  namesInUse,
  renameTable,
  tableExists,
  viewsOf,
} from './crm-sql.ts'
import {
  type CrmTableState,
  createCrmTableStates,
  type MadeTable,
  type NextTable,
  tablesOf,
} from './crm-table-state.ts'
import { dealViews } from './deal-views.ts'
import { createCrmDictionary } from './dictionary.ts'
import type { Sqlite } from './open.ts'
import { quote } from './sql.ts'
import type { Prepare } from './statements.ts'
import { replaceViews } from './views.ts'

/**
 * The records of each CRM object as a table with a column for each field, true to `crm_records` at every commit.
 * When the metadata asks for other columns, a table is made beside the present one, filled in lots, and takes its
 * place: readers see the old one or the new one, both with every record. An object's first table is filled when its
 * list was read to the end: page by page, its indices would be written many times over. A table that cannot be kept is
 * dropped and made anew later; it never fails a sync.
 */
export interface CrmTables {
  /** Brings the tables to what was just written. In the transaction that wrote it, and last in it. */
  follow(): void
  /**
   * Makes and fills what is not yet, a lot a transaction, until all is done or the signal says no: for who has nothing
   * else to do.
   */
  finish(signal?: AbortSignal): Promise<void>
  /** Begins no further lot by itself. */
  close(): void
}

export interface CrmTablesDeps {
  db: Sqlite
  prepare: Prepare
  clock: Pick<Clock, 'elapsed'>
  transaction(work: () => void): Promise<void>
}

/** How long one lot holds the event loop; looked at after so many records. */
const LOT_MS = 10
/** The same where nobody has to wait. */
const LONG_LOT_MS = 50
const LOT_RECORDS = 20
/** Rows of a table that is being emptied, between two looks at the time. */
const EMPTIED_ROWS = 200

export function createCrmTables({ db, prepare, clock, transaction }: CrmTablesDeps): CrmTables {
  const notes = createCrmNotes(db, prepare)
  const writers = new Map<string, CrmTableWriter>()
  const states = createCrmTableStates(prepare, () => writers.clear())
  const dictionary = createCrmDictionary(prepare)
  /** Objects whose table could not be kept: until their metadata changes, or the next start. */
  const givenUp = new Set<string>()
  let isFilling = false
  let isHurried = false
  let isClosed = false

  const writerOf = ({ table, columns }: MadeTable): CrmTableWriter => {
    const writer = writers.get(table) ?? createCrmTableWriter(db, table, columns)
    writers.set(table, writer)
    return writer
  }

  const drop = (table: string) => {
    writers.delete(table)
    db.exec(`DROP TABLE IF EXISTS ${quote(table)}`)
  }

  const fieldsOf = prepare(
    `SELECT name, label, type, is_active IS NOT 0 AS isActive, relation_type = 'MANY_TO_ONE' AS isRelation
     FROM crm_fields WHERE object = ? ORDER BY position, name`,
  )
  const readFields = (object: string): CrmField[] =>
    (fieldsOf.all(object) as (Omit<CrmField, 'isActive' | 'isRelation'> & Record<string, unknown>)[]).map(
      field => ({ ...field, isActive: field['isActive'] === 1, isRelation: field['isRelation'] === 1 }),
    )

  // -------------------------------------------------------------------------------------------- metadata

  const objectExists = prepare('SELECT 1 FROM crm_objects WHERE name = ?')
  const tellTable = prepare('UPDATE crm_objects SET table_name = ? WHERE name = ? AND table_name IS NOT ?')
  const tellColumn = prepare(
    'UPDATE crm_fields SET column_name = ? WHERE object = ? AND name = ? AND column_name IS NOT ?',
  )

  const followMetadata = (object: string, until: number) => {
    const state = states.all().get(object)
    if (!objectExists.get(object)) return state && dropAll(object, state)
    const fields = readFields(object)
    const latest = state?.next ?? state?.made
    const wanted = columnsOf(
      fields,
      new Map(latest?.columns.map(({ field, column }) => [field, column] as const)),
    )
    if (!latest || !sameColumns(latest.columns, wanted) || !tableExists(db, latest.table)) {
      makeNext(object, state, wanted)
      if (mayFill(object)) fill(object, until)
    }
    tell(object, fields)
  }

  const makeNext = (object: string, state: CrmTableState | undefined, columns: readonly CrmColumn[]) => {
    const name = state?.name ?? freeName(object)
    const inUse = namesInUse(db)
    const table = inUse.take('sync_crm_next')
    makeTable(db, table, name, columns)
    const leaving = [...(state?.leaving ?? []), ...(state?.next ? [state.next.table] : [])]
    states.save(object, {
      name,
      ...(state?.made && tableExists(db, state.made.table) ? { made: state.made } : {}),
      next: { table, columns, after: '' },
      leaving,
    })
  }

  /** Its views' names are free as well; those of tables that are still to be made are not. */
  const freeName = (object: string): string => {
    const inUse = namesInUse(db)
    for (const { name } of states.all().values())
      for (const view of [name, liveView(name), labelledView(name)]) inUse.take(view)
    const wanted = `crm_${identifier(object)}`
    for (let number = 1; ; number += 1) {
      const name = number === 1 ? wanted : `${wanted}_${number}`
      if (![name, liveView(name), labelledView(name)].some(inUse.has)) return name
    }
  }

  /** Says which columns there are, in the metadata and in the views. */
  const tell = (object: string, fields: readonly CrmField[]) => {
    const made = states.all().get(object)?.made
    const isNews = tellTable.run(made?.table ?? null, object, made?.table ?? null).changes > 0
    const columns = new Map(made?.columns.map(({ field, column }) => [field, column] as const))
    for (const { name } of fields) {
      const column = columns.get(name) ?? null
      tellColumn.run(column, object, name, column)
    }
    if (made) replaceViews(db, viewsOf(made.table, made.columns, fields))
    replaceViews(db, dealViews(db))
    // What points at a table is explained by it.
    dictionary.refresh(isNews ? undefined : object)
  }

  const dropViews = ({ made }: CrmTableState) => {
    if (!made) return
    for (const view of [liveView(made.table), labelledView(made.table)])
      db.exec(`DROP VIEW IF EXISTS ${quote(view)}`)
  }

  const dropAll = (object: string, state: CrmTableState) => {
    dropViews(state)
    for (const table of tablesOf(state)) drop(table)
    states.remove(object)
    tell(object, readFields(object))
  }

  // --------------------------------------------------------------------------------------------- filling

  const someRecords = prepare(
    `SELECT id, fields, created_at AS createdAt, updated_at AS updatedAt, _deleted_at AS deletedAt
     FROM crm_records WHERE object = ? AND id > ? ORDER BY id LIMIT ${LOT_RECORDS}`,
  )

  /** One lot of an object, until about then: records into its next table, or rows out of one that was replaced. */
  const fill = (object: string, until: number) => {
    const state = states.all().get(object)
    if (state?.next) fillNext(object, state, state.next, until)
    else if (state?.leaving[0] !== undefined) empty(object, state, state.leaving[0], until)
  }

  const fillNext = (object: string, state: CrmTableState, next: NextTable, until: number) => {
    const writer = writerOf(next)
    let { after } = next
    for (;;) {
      const records = someRecords.all(object, after) as (CrmRow & { fields: string | null })[]
      for (const record of records) writer.put({ ...record, fields: valuesOf(record.fields) })
      after = records.at(-1)?.id ?? after
      if (records.length < LOT_RECORDS) return takePlace(object, state, next)
      if (clock.elapsed() >= until) break
    }
    states.save(object, { ...state, next: { ...next, after } })
  }

  const takePlace = (object: string, { name, made, leaving }: CrmTableState, next: MadeTable) => {
    const left = [...leaving]
    if (made) {
      const aside = namesInUse(db).take('sync_crm_left')
      renameTable(db, made.table, aside)
      left.push(aside)
    }
    renameTable(db, next.table, name)
    writers.clear()
    states.save(object, { name, made: { table: name, columns: next.columns }, leaving: left })
    tell(object, readFields(object))
  }

  const empty = (object: string, state: CrmTableState, table: string, until: number) => {
    const remove = tableExists(db, table)
      ? db.prepare(
          `DELETE FROM ${quote(table)} WHERE rowid IN (SELECT rowid FROM ${quote(table)} LIMIT ${EMPTIED_ROWS})`,
        )
      : undefined
    while (remove && remove.run().changes > 0) if (clock.elapsed() >= until) return
    drop(table)
    states.save(object, { ...state, leaving: state.leaving.filter(each => each !== table) })
  }

  const wasListed = prepare(
    `SELECT 1 FROM sync_resources WHERE resource = 'crm_records'
       AND (first_complete_at IS NOT NULL OR failing_since IS NOT NULL)
     UNION ALL SELECT 1 FROM sync_segments WHERE feed = 'crm_records.list' AND scope = ?
       AND (listed_at IS NOT NULL OR unavailable_since IS NOT NULL) LIMIT 1`,
  )
  const mayFill = (object: string): boolean =>
    isHurried || states.all().get(object)?.made !== undefined || wasListed.get(object) !== undefined

  const unfinished = (): string | undefined => {
    for (const [object, { next, leaving }] of states.all())
      if (!givenUp.has(object) && (next ? mayFill(object) : leaving.length > 0)) return object
    return undefined
  }

  const fillLot = () => {
    const object = unfinished()
    const ms = isHurried ? LONG_LOT_MS : LOT_MS
    if (object !== undefined) attempt(object, () => fill(object, clock.elapsed() + ms))
  }

  /** In the background; after a fault of the disk the next write that is followed begins it anew. */
  const fillOn = async () => {
    if (isFilling || isClosed) return
    isFilling = true
    try {
      while (!isClosed && unfinished() !== undefined) await transaction(fillLot)
    } catch {
      // A disk that fails here fails whoever writes next as well, who says so.
    } finally {
      isFilling = false
    }
  }

  // --------------------------------------------------------------------------------------------- records

  /** What a table that is being filled has not reached yet comes into it with the rest. */
  const followRecords = (object: string, { made, next }: CrmTableState) => {
    if (!made && !next?.after) return
    const records = notes.records(object, next?.after ?? '')
    const writer = made && writerOf(made)
    const nextWriter = next && writerOf(next)
    for (const record of records) {
      const whole = { ...record, fields: valuesOf(record.fields) }
      if (writer) write(writer, whole)
      if (nextWriter && record.reached) write(nextWriter, whole)
    }
  }

  const isWaiting = () => [...states.all().values()].some(({ next, made }) => next && !made)

  /** A table that does not work is given up rather than the sync; a disk that does not is everyone's fault to bear. */
  const attempt = (object: string, work: () => unknown) => {
    try {
      db.transaction(work)()
    } catch (error) {
      if (!db.inTransaction || !isOfTable(error)) throw error
      givenUp.add(object)
      writers.clear()
      db.transaction(() => {
        const state = states.all().get(object)
        if (state) dropAll(object, state)
      })()
    }
  }

  const follow = () => {
    if (!notes.any()) {
      if (isWaiting() && unfinished() !== undefined) void fillOn()
      return
    }
    const until = clock.elapsed() + LOT_MS
    for (const object of notes.objects()) {
      givenUp.delete(object)
      attempt(object, () => followMetadata(object, until))
    }
    for (const object of notes.recordObjects()) {
      const state = states.all().get(object)
      if (state) attempt(object, () => followRecords(object, state))
    }
    notes.clear()
    if (unfinished() !== undefined) void fillOn()
  }

  const begin = db.transaction(() => {
    const until = clock.elapsed() + LOT_MS
    for (const object of prepare('SELECT name FROM crm_objects ORDER BY name').pluck().all() as string[])
      attempt(object, () => followMetadata(object, until))
    replaceViews(db, dealViews(db))
    notes.clear()
  })

  begin.immediate()
  if (unfinished() !== undefined) void fillOn()

  return {
    follow,
    async finish(signal) {
      isHurried = true
      try {
        while (!signal?.aborted && unfinished() !== undefined) await transaction(fillLot)
      } finally {
        isHurried = false
      }
    },
    close: () => {
      isClosed = true
    },
  }
}

function sameColumns(some: readonly CrmColumn[], others: readonly CrmColumn[]): boolean {
  return (
    some.length === others.length &&
    some.every((one, index) => {
      const other = others[index]
      return (
        one.field === other?.field &&
        one.column === other.column &&
        one.form === other.form &&
        one.indexed === other.indexed
      )
    })
  )
}

function write(writer: CrmTableWriter, record: Omit<NotedRecord, 'fields'> & CrmRow): void {
  if (record.gone) writer.remove(record.id)
  else if (record.whole) writer.put(record)
  else writer.mark(record.id, record.deletedAt)
}

/** What is nested too deep to be read with all digits has no columns; it is in `crm_records` as it came. */
function valuesOf(json: string | null): unknown {
  if (json === null) return null
  try {
    return decodeJson(json).value
  } catch (error) {
    if (error instanceof SyntaxError) return null
    throw error
  }
}

/** Everything that the table itself is to blame for, or what someone has built on it. */
const OF_TABLE = /^SQLITE_(ERROR|CONSTRAINT|MISMATCH|TOOBIG|RANGE|SCHEMA|LOCKED)/

function isOfTable(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  return 'code' in error ? OF_TABLE.test(String(error.code)) : true
}
