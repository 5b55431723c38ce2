import type { Clock } from '../../base/clock.ts'
import { errorCode } from '../../base/errors.ts'
import type { NotedChanges } from '../changes/noted-changes.ts'
import type { LeftOut } from '../database/existing-tables.ts'
import type { Prepare, Sqlite } from '../database/sqlite-types.ts'
import { replaceViews, type View } from '../views/replace.ts'
import { refreshCrmDictionary } from './dictionary.ts'
import { isTableError, nameFor } from './sql.ts'
import { columnText, createCrmTableReplacement, dropTypedTables } from './table-replacement.ts'
import { type CrmTableState, createCrmTableStates, type TypedTable } from './table-state.ts'
import { createCrmTableRows } from './typed-rows.ts'

/**
 * Typed tables: one per CRM object, with a column for each field, consistent with `crm_records` at every commit.
 *
 * When the metadata requires other columns, a next table is created, filled in batches, and then replaces the present
 * one. Readers see one of the two tables, always with every record. The first table of an object is filled once the
 * object's list was read to its end: filling it page by page would rewrite its indices many times. A table that causes
 * an error is dropped, and created again when the metadata changes or at the next start. Such an error never stops the
 * reading of the API.
 */
export interface CrmTables {
  /**
   * Updates the typed tables with the CRM records and metadata that the current transaction wrote. Call it as the last
   * step of that transaction.
   */
  follow(): void
  /**
   * Completes all tables, one batch per transaction, until none has work left or the signal aborts. Call it when the
   * process has nothing else to do.
   */
  finish(signal?: AbortSignal): Promise<void>
  /** Stops filling in the background. */
  close(): void
}

interface CrmTablesDeps {
  db: Sqlite
  prepare: Prepare
  clock: Pick<Clock, 'elapsed'>
  changes: NotedChanges
  transaction(work: () => void): Promise<void>
  /** The views that depend on the names of typed tables and their columns. */
  dependentViews(): readonly View[]
  /**
   * Called inside the transaction. When the transaction is rolled back, the change is made and reported again later.
   */
  onChange?: ((change: TypedTableChange) => void) | undefined
  /** Called inside the transaction, for each index of other people that does not fit the table that replaces its table. */
  onLeftOut?: ((index: LeftOut) => void) | undefined
}

/** How long one batch may block the event loop. Checked after each record. */
const BATCH_MS = 10
/** As BATCH_MS, in `finish`, when nothing else waits for the event loop. */
const LONG_BATCH_MS = 50

export function createCrmTables({ transaction, ...deps }: CrmTablesDeps): CrmTables {
  const steps = createSteps(deps)
  let isFilling = false
  let isClosed = false

  /** Fills tables, and ends after an error, such as a full disk. The next `follow` starts it again. */
  const fillInBackground = async () => {
    if (isFilling) return
    isFilling = true
    try {
      while (!isClosed && steps.isUnfinished()) await transaction(() => steps.runBatch(BATCH_MS))
    } catch {
      // The next commit of the store fails with the same error and reports it.
    } finally {
      isFilling = false
    }
  }

  steps.begin()
  void fillInBackground()
  return {
    follow() {
      steps.follow()
      void fillInBackground()
    },
    async finish(signal) {
      while (!signal?.aborted && steps.isUnfinished({ all: true }))
        await transaction(() => steps.runBatch(LONG_BATCH_MS, { all: true }))
    },
    close: () => {
      isClosed = true
    },
  }
}

/**
 * The steps inside a transaction. Each step has a savepoint: when a table causes an error, only that step is rolled
 * back. The tables of the object are then dropped.
 */
function createSteps({
  db,
  prepare,
  clock,
  changes,
  dependentViews,
  onChange,
  onLeftOut,
}: Omit<CrmTablesDeps, 'transaction'>) {
  const states = createCrmTableStates(prepare, changes)
  const rows = createCrmTableRows({ db, prepare, states, changes })
  const tables = createCrmTableReplacement({ db, prepare, clock, states, rows, dependentViews, onLeftOut })
  const objects = prepare<string>('SELECT name FROM crm_objects ORDER BY name').pluck()

  const attempt = (object: string, work: () => void) => {
    const before = states.all().get(object)
    try {
      db.transaction(work)()
    } catch (error) {
      if (!db.inTransaction || !isTableError(error)) throw error
      db.transaction(() => tables.drop(object))()
      onChange?.(failedTable(object, before, error))
      return
    }
    const change = tableChange(before, states.all().get(object))
    if (change) onChange?.(change)
  }

  /** Plans and publishes the tables of these objects. Small tables are also filled, within BATCH_MS in all. */
  const followMetadata = (names: readonly string[]) => {
    const until = clock.elapsed() + BATCH_MS
    for (const object of names) {
      attempt(object, () => {
        tables.plan(object)
        if (tables.isReady(object) && clock.elapsed() < until) tables.runBatch(object, until)
        tables.publish(object)
      })
    }
  }

  return {
    /**
     * Brings the typed tables up to date at the start: an earlier process may have changed the metadata without updating
     * them.
     */
    begin: () =>
      db
        .transaction(() => {
          followMetadata(objects.all())
          replaceViews(db, dependentViews())
          rows.clearNotes()
          changes.store()
        })
        .immediate(),
    follow() {
      if (!rows.hasNotes()) return
      followMetadata(rows.notedObjects())
      for (const object of rows.objectsOfNotedRecords()) attempt(object, () => rows.follow(object))
      rows.clearNotes()
    },
    isUnfinished: (options = { all: false }) => tables.objectWithWork(options) !== undefined,
    runBatch(ms: number, options = { all: false }) {
      const object = tables.objectWithWork(options)
      if (object === undefined) return
      attempt(object, () => {
        if (tables.runBatch(object, clock.elapsed() + ms)) tables.publish(object)
      })
    },
  }
}

/**
 * Switches the typed tables off. Drops the tables of earlier processes, and removes their names from
 * `crm_objects`, `crm_fields`, the views and the dictionary. Returns CrmTables that do nothing.
 */
export function disableCrmTables({
  db,
  prepare,
  changes,
  dependentViews,
}: Pick<CrmTablesDeps, 'db' | 'prepare' | 'changes' | 'dependentViews'>): CrmTables {
  db.transaction(() => {
    const states = createCrmTableStates(prepare, changes)
    for (const object of [...states.all().keys()]) dropTypedTables(db, states, object)
    prepare('UPDATE crm_objects SET table_name = NULL WHERE table_name IS NOT NULL').run()
    prepare('UPDATE crm_fields SET column_name = NULL WHERE column_name IS NOT NULL').run()
    refreshCrmDictionary(prepare)
    replaceViews(db, dependentViews())
    changes.store()
  }).immediate()
  return { follow: () => undefined, finish: async () => undefined, close: () => undefined }
}

/** A change of a typed table that people may already query, and its reason. Pure. */
export interface TypedTableChange {
  /** `failed`: dropped after an error, until the metadata changes or the next start. */
  kind: 'replaced' | 'dropped' | 'failed'
  table: string
  reason: string
}

/** @returns undefined when the object has the same table as before, or had none */
function tableChange(
  before: CrmTableState | undefined,
  after: CrmTableState | undefined,
): TypedTableChange | undefined {
  const [had, has] = [before?.made, after?.made]
  if (had === undefined || had.columns === has?.columns) return undefined
  const { table } = had
  if (after === undefined) return { kind: 'dropped', table, reason: 'its object no longer exists' }
  const difference = has && differenceOf(had, has)
  if (difference === undefined)
    return { kind: 'dropped', table, reason: 'another program dropped it; parley creates it again' }
  return { kind: 'replaced', table, reason: `its columns have changed (${difference})` }
}

/** The reason contains only the error's code, since the error's message may quote a value. */
function failedTable(object: string, state: CrmTableState | undefined, error: unknown): TypedTableChange {
  const reason = `writing it failed (${errorCode(error) ?? 'unknown error'})`
  return { kind: 'failed', table: state?.made?.table ?? nameFor(object), reason }
}

/** @returns undefined when the columns are the same: then another program has dropped the table */
function differenceOf(had: TypedTable, has: TypedTable): string | undefined {
  const earlier = new Map(had.columns.map(column => [column.column, columnText(column)]))
  const names = new Set(has.columns.map(({ column }) => column))
  const added = has.columns.filter(({ column }) => !earlier.has(column)).length
  const removed = had.columns.filter(({ column }) => !names.has(column)).length
  const common = has.columns.filter(({ column }) => earlier.has(column))
  const changed = common.filter(column => earlier.get(column.column) !== columnText(column)).length
  const isReordered = had.columns.map(({ column }) => column).join('\n') !== [...names].join('\n')
  if (added + removed + changed === 0 && !isReordered) return undefined
  return `columns added: ${added}, removed: ${removed}, changed: ${changed}`
}
