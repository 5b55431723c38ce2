import type { ResourceName } from '../catalog/resource-names.ts'
import { hasTable } from './database/existing-tables.ts'
import { openDatabase } from './database/open.ts'
import { quote } from './database/sql.ts'
import { databaseError } from './database/sqlite-errors.ts'
import type { Sqlite } from './database/sqlite-types.ts'
import { onlyRow, statementCache } from './database/statements.ts'
import { databaseStats } from './file/path-checks.ts'
import { refuseOlder } from './migrations/current.ts'
import { createPendingRows, type Pending } from './rows/awaiting-read.ts'
import { createStoredRows } from './rows/row-state.ts'
import { createState, type ResourceState } from './sync/resource-state.ts'
import { createSegments, type Segment } from './sync/segments.ts'
import { BY_DUE_TIME } from './sync/tasks/task.ts'

/** What a warehouse holds, for `parley backfill --plan`. Opened read-only; another process may write meanwhile. */
export interface Inventory {
  state(resource: ResourceName): ResourceState
  meta(key: string): string | undefined
  /** Newest first. */
  segments(feed: string): Segment[]
  /** Number of live rows with a time of `from` or later and before `to`. Null is unbounded. */
  countRows(of: TimedTable, span: { from: string | null; to: string | null }): number
  /** The newest time of a live row; null when there is none. */
  newestTime(of: TimedTable): string | null
  /** The values of a column in live rows. */
  liveValues(table: string, column: string): string[]
  /** `all`: number of tasks of a feed. `due`: how many of them a round of a backfill reads. */
  countTasks(query: TaskCount): { all: number; due: number }
  /** Number of rows whose first read is outstanding and that have no task yet. */
  countFirstReads(feed: string, pending: Pending, since: string | null): number
  close(): void
}

export interface TimedTable {
  table: string
  /** The column of the event time. */
  time: string
}

export interface TaskCount {
  feed: string
  round: number
  /** True: a round reads all keys again. False: it reads only keys that wait for the API or are due at `now`. */
  everyRound: boolean
  now: string
  /** Leaves out keys with an earlier event time. */
  since: string | null
}

/**
 * @returns undefined when there is no warehouse at this path, or it is still empty
 * @throws StopError 73 when the database cannot be opened, or an older version wrote it
 */
export function openInventory(path: string): Inventory | undefined {
  if (databaseStats(path) === undefined) return undefined
  const db = openDatabase({ path, readonly: true })
  try {
    if (hasTable(db, 'sync_resources')) {
      refuseOlder(db)
      return inventoryOf(db)
    }
  } catch (error) {
    db.close()
    throw databaseError(error, path)
  }
  db.close()
  return undefined
}

function inventoryOf(db: Sqlite): Inventory {
  const prepare = statementCache(db)
  const state = createState(prepare)
  const segments = createSegments(prepare)
  const pending = createPendingRows(prepare)
  const { liveValues } = createStoredRows(prepare)
  const tasks = prepare<{ all: number; due: number }>(
    `SELECT count(*) AS "all",
       coalesce(sum(round < @round AND (waiting OR due_at <= @now OR (@everyRound AND round > ${BY_DUE_TIME}))), 0) AS due
     FROM sync_tasks WHERE feed = @feed AND (@since IS NULL OR sort_at IS NULL OR sort_at >= @since)`,
  )
  /** Names the database in an error of SQLite, such as that of a damaged table. */
  const named =
    <Arguments extends unknown[], T>(read: (...given: Arguments) => T) =>
    (...given: Arguments): T => {
      try {
        return read(...given)
      } catch (error) {
        throw databaseError(error, db.name)
      }
    }
  return {
    state: named(state.get),
    meta: named(state.meta),
    segments: named(feed => segments.of(feed)),
    countRows: named(({ table, time }, span) =>
      onlyRow(
        prepare<number>(
          `SELECT count(*) FROM ${quote(table)} WHERE _deleted_at IS NULL
           AND ${quote(time)} >= coalesce(@from, '') AND ${quote(time)} < coalesce(@to, '~')`,
        ).pluck(),
        span,
      ),
    ),
    newestTime: named(({ table, time }) =>
      onlyRow(
        prepare<string | null>(
          `SELECT max(${quote(time)}) FROM ${quote(table)} WHERE _deleted_at IS NULL`,
        ).pluck(),
      ),
    ),
    liveValues: named(liveValues),
    countTasks: named(({ everyRound, ...query }) =>
      onlyRow(tasks, { ...query, everyRound: everyRound ? 1 : 0 }),
    ),
    countFirstReads: named((feed, declared, since) => pending.countWithoutTask(declared, { feed, since })),
    close: () => {
      db.close()
    },
  }
}
