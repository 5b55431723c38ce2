import type { RowOf } from '../../../catalog/bookkeeping/table-declaration.ts'
import type { TASK_TABLE } from '../../../catalog/bookkeeping/tables.ts'

/**
 * A pending read of a single key: a first read, retry, probe or re-read. The database stores it, so a restart loses
 * none.
 */
export interface Task {
  feed: string
  scope: string
  key: string
  /** Event time of the record, to read the newest first. */
  sortAt: string | null
  dueAt: string
  /**
   * Consecutive answers that were not final yet. For a probe: how often the probe has found its row. For a read that
   * follows a relation: the number of the read's step.
   */
  attempts: number
  deadline: string | null
  waiting: boolean
  /** Consecutive failed requests. */
  failures: number
  /** The round in which the key was last read; 0 when it was never read or is wanted again; or `BY_DUE_TIME`. */
  round: number
  /** When a list or a webhook last named the key, noted at most once a day. Null when rows alone name it. */
  namedAt: string | null
  /** Failed requests in a row, each of which is soon made again. */
  tries: number
  /** After such a failed request, the key is not read before this time of the due clock, though it is due. */
  tryAt: string | null
}

export interface TaskKey {
  feed: string
  scope?: string
  key: string
}

/** Value of `round` for tasks that a backfill reads at their due time, not once in each round. */
export const BY_DUE_TIME = -1

/** The columns of a `TaskRow`, for a SELECT. */
export const TASK_COLUMNS =
  'feed, scope, key, sort_at, due_at, attempts, deadline, waiting, failures, round, named_at, tries, try_at'

export type TaskRow = RowOf<typeof TASK_TABLE>

export const toTask = (row: TaskRow): Task => ({
  feed: row.feed,
  scope: row.scope,
  key: row.key,
  sortAt: row.sort_at,
  dueAt: row.due_at,
  attempts: row.attempts,
  deadline: row.deadline,
  waiting: row.waiting === 1,
  failures: row.failures,
  round: row.round,
  namedAt: row.named_at,
  tries: row.tries,
  tryAt: row.try_at,
})
