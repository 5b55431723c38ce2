import type { RowOf } from '../../catalog/bookkeeping/table-declaration.ts'
import type { DAY_TABLE, MINUTE_TABLE, RUN_TABLE } from '../../catalog/bookkeeping/tables.ts'
import type { ResourceName } from '../../declare/resource-names.ts'
import type { Prepare } from '../database/sqlite-types.ts'

/** The counts of a run. `sync_runs` has all of them except `rowsNew`. */
export interface RunCounts extends RowsWritten {
  requests: number
  throttled: number
  rowsRead: number
}

export interface RowsWritten {
  /** Rows that were new or had changed. */
  rowsChanged: number
  /** Rows among `rowsChanged` that were not stored before. */
  rowsNew: number
  rowsDeleted: number
}

interface RunEnd {
  resource: ResourceName
  outcome: RunOutcome
  counts: RunCounts
  error: string | undefined
  now: string
}

export type RunOutcome = NonNullable<RowOf<typeof RUN_TABLE>['outcome']>

export function createRuns(prepare: Prepare) {
  const begin = prepare('INSERT INTO sync_runs (resource, lane, started_at) VALUES (?, ?, ?)')
  const end = prepare(
    `UPDATE sync_runs SET ended_at = @now, outcome = @outcome, requests = @requests, throttled = @throttled,
       rows_read = @rowsRead, rows_changed = @rowsChanged, rows_deleted = @rowsDeleted, error = @error
     WHERE id = @id AND resource = @resource`,
  )
  const close = prepare("UPDATE sync_runs SET ended_at = ?, outcome = 'interrupted' WHERE ended_at IS NULL")
  const open = prepare('SELECT 1 FROM sync_runs WHERE id = ? AND resource = ? AND ended_at IS NULL').pluck()
  return {
    begin: (resource: ResourceName, lane: string, now: string) =>
      Number(begin.run(resource, lane, now).lastInsertRowid),
    /** Whether the row of the run exists and has not ended. A rollback removes the row of a run that has just begun. */
    isOpen: (id: number, resource: ResourceName) => open.get(id, resource) !== undefined,
    end: (id: number, { resource, outcome, counts: { rowsNew: _, ...recorded }, error, now }: RunEnd) => {
      end.run({ id, resource, outcome, ...recorded, error: error ?? null, now })
    },
    /** Closes the runs of processes that were killed. */
    closeInterrupted: (now: string) => {
      close.run(now)
    },
  }
}

/** A row of `sync_minutes`. */
export type Minute = RowOf<typeof MINUTE_TABLE>

export function createMinuteCounts(prepare: Prepare) {
  const add = prepare(
    `INSERT INTO sync_minutes (at, requests, throttled, errors, rows, rate, in_flight, paused_seconds)
     VALUES (@at, @requests, @throttled, @errors, @rows, @rate, @in_flight, @paused_seconds)
     ON CONFLICT (at) DO UPDATE SET requests = requests + excluded.requests,
       throttled = throttled + excluded.throttled, errors = errors + excluded.errors, rows = rows + excluded.rows,
       rate = excluded.rate, in_flight = max(in_flight, excluded.in_flight),
       paused_seconds = paused_seconds + excluded.paused_seconds`,
  )
  /** Adds to the row of the minute: a process that starts within a minute continues the row of the process before. */
  return { add: (minute: Minute) => void add.run(minute) }
}

/** A row of `sync_days`. */
export type ResourceDay = RowOf<typeof DAY_TABLE>

export function createDays(prepare: Prepare) {
  const add = prepare(
    `INSERT INTO sync_days (day, resource, rows_new, rows_changed, rows_deleted)
     VALUES (@day, @resource, @rows_new, @rows_changed, @rows_deleted)
     ON CONFLICT (day, resource) DO UPDATE SET rows_new = rows_new + excluded.rows_new,
       rows_changed = rows_changed + excluded.rows_changed, rows_deleted = rows_deleted + excluded.rows_deleted`,
  )
  /** Adds to the row of the day and resource. */
  return { add: (day: ResourceDay) => void add.run(day) }
}
