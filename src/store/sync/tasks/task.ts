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

/** Selects the columns of a `Task`. */
export const TASK_COLUMNS = `feed, scope, key, sort_at AS sortAt, due_at AS dueAt, attempts, deadline, failures, round,
  named_at AS namedAt, tries, try_at AS tryAt`
