import type { RowOf } from '../../catalog/bookkeeping/table-declaration.ts'
import type { RUN_TABLE } from '../../catalog/bookkeeping/tables.ts'
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

export interface Runs {
  begin(resource: ResourceName, lane: string, now: string): number
  /** Whether the row of the run exists and has not ended. A rollback removes the row of a run that has just begun. */
  isOpen(id: number, resource: ResourceName): boolean
  end(id: number, end: RunEnd): void
  /** Closes the runs of processes that were killed. */
  closeInterrupted(now: string): void
}

export interface RunEnd {
  resource: ResourceName
  outcome: RunOutcome
  counts: RunCounts
  error: string | undefined
  now: string
}

export type RunOutcome = NonNullable<RowOf<typeof RUN_TABLE>['outcome']>

export function createRuns(prepare: Prepare): Runs {
  const begin = prepare('INSERT INTO sync_runs (resource, lane, started_at) VALUES (?, ?, ?)')
  const end = prepare(
    `UPDATE sync_runs SET ended_at = @now, outcome = @outcome, requests = @requests, throttled = @throttled,
       rows_read = @rowsRead, rows_changed = @rowsChanged, rows_deleted = @rowsDeleted, error = @error
     WHERE id = @id AND resource = @resource`,
  )
  const close = prepare("UPDATE sync_runs SET ended_at = ?, outcome = 'interrupted' WHERE ended_at IS NULL")
  const open = prepare('SELECT 1 FROM sync_runs WHERE id = ? AND resource = ? AND ended_at IS NULL').pluck()
  return {
    begin: (resource, lane, now) => Number(begin.run(resource, lane, now).lastInsertRowid),
    isOpen: (id, resource) => open.get(id, resource) !== undefined,
    end: (id, { resource, outcome, counts: { rowsNew: _, ...recorded }, error, now }) => {
      end.run({ id, resource, outcome, ...recorded, error: error ?? null, now })
    },
    closeInterrupted: now => {
      close.run(now)
    },
  }
}
