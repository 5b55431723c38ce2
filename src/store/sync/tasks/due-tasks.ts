import type { Prepare } from '../../database/sqlite-types.ts'
import { BY_DUE_TIME, TASK_COLUMNS, type Task } from './task.ts'

/** `newest`: latest event time first. `longest-due`: earliest due time first. */
export type TaskOrder = 'newest' | 'longest-due'

/** Which tasks of a feed are read. */
export interface TaskBounds {
  /** Leaves out keys with an earlier event time; default none. */
  since?: string | null
  /** GLOB pattern that the keys have to match; default any key. */
  keys?: string
}

export interface DueQuery extends TaskBounds {
  feed: string
  /** Leaves out keys that this round has read already. */
  round: number
  /** True to read all keys again each round; else only those that wait for the API or are due at `now`. */
  everyRound: boolean
  now: string
  limit: number
  /** Scopes that cannot be read now; default none. */
  exceptScopes?: readonly string[]
}

export type WaitQuery = TaskBounds & Pick<DueQuery, 'now' | 'exceptScopes'>

const ORDERS: Readonly<Record<TaskOrder, string>> = { newest: 'sortAt DESC', 'longest-due': 'dueAt' }

const IS_ASKED = `(@since IS NULL OR sort_at IS NULL OR sort_at >= @since) AND (@keys IS NULL OR key GLOB @keys)
  AND scope NOT IN (SELECT value FROM json_each(@exceptScopes))`

/** SQL condition: a failed request of the task is made again later than now. */
const IS_LATER = '(try_at IS NOT NULL AND try_at > @now)'

/** The tasks in a range of one of the table's indices. */
const range = (index: 'by_due' | 'by_round' | 'open', condition: string): string =>
  `SELECT ${TASK_COLUMNS} FROM sync_tasks INDEXED BY sync_tasks_${index}
   WHERE feed = @feed AND ${condition} AND NOT ${IS_LATER} AND ${IS_ASKED}`

/**
 * Ranges joined by UNION ALL: with OR, SQLite would scan every task of the feed. The plus hides the limit from SQLite's
 * planner. With `LIMIT @limit` it would compile the statement again at each use, which takes 40 µs in place of 6 µs.
 */
const firstOf = (order: TaskOrder, ...ranges: readonly string[]): string =>
  `${ranges.join(' UNION ALL ')} ORDER BY ${ORDERS[order]} LIMIT +@limit`

/** Which tasks of a feed are due. The queries read ranges of an index, not every task of the feed. */
export function createDueTasks(prepare: Prepare) {
  const isByTime = `round = ${BY_DUE_TIME}`
  const isByRound = `round < @round AND round > ${BY_DUE_TIME}`
  const everyOne = prepare<Task>(
    firstOf('newest', range('by_due', `due_at <= @now AND ${isByTime}`), range('by_round', isByRound)),
  )
  const waitingOrDue = prepare<Task>(
    firstOf(
      'newest',
      range('open', `${isByRound} AND waiting AND (waiting OR round = 0)`),
      range('by_due', `due_at <= @now AND round < @round AND (NOT waiting OR ${isByTime})`),
    ),
  )
  const dueIn = (order: TaskOrder) => prepare<Task>(firstOf(order, range('by_due', 'due_at <= @now')))
  const dueBy = { newest: dueIn('newest'), 'longest-due': dueIn('longest-due') }
  const nextTryOf = `SELECT try_at AS at FROM sync_tasks INDEXED BY sync_tasks_tried
     WHERE feed = @feed AND tries > 0 AND try_at > @now AND ${IS_ASKED} ORDER BY try_at LIMIT 1`
  const nextTry = prepare<string>(nextTryOf).pluck()
  const nextDue = prepare<string | null>(
    `SELECT min(at) FROM (
       SELECT * FROM (SELECT due_at AS at FROM sync_tasks INDEXED BY sync_tasks_by_due
         WHERE feed = @feed AND NOT ${IS_LATER} AND ${IS_ASKED} ORDER BY due_at LIMIT 1)
       UNION ALL SELECT * FROM (${nextTryOf}))`,
  ).pluck()
  const first = prepare(
    `SELECT 1 FROM sync_tasks INDEXED BY sync_tasks_open
     WHERE feed = @feed AND round = 0 AND (waiting OR round = 0) AND NOT waiting AND due_at <= @now AND ${IS_ASKED} LIMIT 1`,
  ).pluck()

  return {
    /** The tasks that are due in a round of a backfill. */
    due: ({ everyRound, ...query }: DueQuery) =>
      (everyRound ? everyOne : waitingOrDue).all(parametersOf(query)),
    /** The tasks whose due time has come, in the order `first`. */
    dueBy: ({ first, ...query }: Omit<DueQuery, 'round' | 'everyRound'> & { first: TaskOrder }) =>
      dueBy[first].all(parametersOf(query)),
    /** When the next task of a feed is read; in the past when a task is due. */
    nextDue: (feed: string, query: WaitQuery) => nextDue.get(parametersOf({ feed, ...query })) ?? undefined,
    /** When the first of the feed's failed requests that still wait is made again. */
    nextTry: (feed: string, query: WaitQuery) => nextTry.get(parametersOf({ feed, ...query })),
    /** Whether a first read, or a read that `announce` or `demand` asked for, is due. */
    hasFirst: (feed: string, now: string, exceptScopes: readonly string[], since: string | null) =>
      first.get(parametersOf({ feed, now, exceptScopes, since })) !== undefined,
  }
}

function parametersOf<Q extends TaskBounds & Pick<DueQuery, 'exceptScopes'>>(query: Q) {
  const { since = null, keys = null, exceptScopes = [] } = query
  return { ...query, since, keys, exceptScopes: JSON.stringify(exceptScopes) }
}
