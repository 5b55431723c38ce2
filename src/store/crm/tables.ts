import type { Clock } from '../../base/clock.ts'
import type { NotedChanges } from '../changes/noted-changes.ts'
import type { Prepare, Sqlite } from '../database/sqlite-types.ts'
import { dealViews } from '../views/deals.ts'
import { replaceViews } from '../views/replace.ts'
import { createCrmTableFilling } from './filling.ts'
import { createCrmTableMetadata } from './metadata.ts'
import { createCrmTableRows } from './rows.ts'
import { isTableError } from './sql.ts'
import { failedTable, type TypedTableChange, tableChange } from './table-changes.ts'
import { createCrmTableStates } from './table-state.ts'
import { createWrittenRecords } from './written-records.ts'

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

export interface CrmTablesDeps {
  db: Sqlite
  prepare: Prepare
  clock: Pick<Clock, 'elapsed'>
  changes: NotedChanges
  transaction(work: () => void): Promise<void>
  /** Called inside the transaction. When that is rolled back, the change is made and reported again later. */
  onChange?: ((change: TypedTableChange) => void) | undefined
}

/** How long one batch blocks the event loop. Checked after each record. */
const BATCH_MS = 10
/** As BATCH_MS, in `finish`, when nothing else waits for the event loop. */
const LONG_BATCH_MS = 50

export function createCrmTables({ transaction, ...deps }: CrmTablesDeps): CrmTables {
  const steps = createSteps(deps)
  let isFilling = false
  let isClosed = false

  /** Ends after an error, such as a full disk. The next `follow` starts it again. */
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
 * The steps inside a transaction. Each has a savepoint: when a table causes an error, only that step is rolled back.
 * The tables of the object are then dropped.
 */
function createSteps({ db, prepare, clock, changes, onChange }: Omit<CrmTablesDeps, 'transaction'>) {
  const notes = createWrittenRecords(db, prepare)
  const states = createCrmTableStates(prepare, changes)
  const rows = createCrmTableRows({ db, states, notes, changes })
  const metadata = createCrmTableMetadata({ db, prepare, states })
  const filling = createCrmTableFilling({ db, prepare, clock, states, rows })
  const objects = prepare<string>('SELECT name FROM crm_objects ORDER BY name').pluck()

  const attempt = (object: string, work: () => void) => {
    const before = states.all().get(object)
    try {
      db.transaction(work)()
    } catch (error) {
      if (!db.inTransaction || !isTableError(error)) throw error
      db.transaction(() => metadata.drop(object))()
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
        metadata.plan(object)
        if (filling.isReady(object) && clock.elapsed() < until) filling.runBatch(object, until)
        metadata.publish(object)
      })
    }
  }

  return {
    /** Call it at the start: an earlier process may have changed the metadata without updating the typed tables. */
    begin: () =>
      db
        .transaction(() => {
          followMetadata(objects.all())
          replaceViews(db, dealViews(db))
          notes.clear()
          changes.store()
        })
        .immediate(),
    follow() {
      if (!notes.hasAny()) return
      followMetadata(notes.objects())
      for (const object of notes.recordObjects()) attempt(object, () => rows.follow(object))
      notes.clear()
    },
    isUnfinished: (options = { all: false }) => filling.objectWithWork(options) !== undefined,
    runBatch(ms: number, options = { all: false }) {
      const object = filling.objectWithWork(options)
      if (object === undefined) return
      attempt(object, () => {
        if (filling.runBatch(object, clock.elapsed() + ms)) metadata.publish(object)
      })
    },
  }
}
