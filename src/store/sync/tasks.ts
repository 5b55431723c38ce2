import type { RowOf } from '../../catalog/bookkeeping/table-declaration.ts'
import type { TASK_TABLE } from '../../catalog/bookkeeping/tables.ts'
import { DAY_MS, isoInstant } from '../../clock.ts'
import { movedBack } from '../database/sql.ts'
import type { Prepare } from '../database/sqlite-types.ts'
import { onlyRow } from '../database/statements.ts'
import { inRange, type KeyRange } from '../deletions/seen-keys.ts'

/** A pending read of a single key: a first read, retry, probe or re-read. Stored, so that a restart loses none. */
export interface Task {
  feed: string
  scope: string
  key: string
  /** Event time of the record, to read the newest first. */
  sortAt: string | null
  dueAt: string
  /** Answers in a row that were not final yet. For a read that follows a relation: the number of its step. */
  attempts: number
  deadline: string | null
  waiting: boolean
  /** Failed requests in a row. */
  failures: number
}

export interface TaskKey {
  feed: string
  scope?: string
  key: string
}

/** By event time, or by due time. */
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

export interface Tasks {
  /** Adds a first read. An existing task stays as it is. */
  add(task: TaskKey & { sortAt?: string | null; dueAt: string; attempts?: number }): void
  /** Makes a key due because of an event at `sortAt`. A task with the same or a later `sortAt` stays as it is. */
  announce(task: TaskKey & { sortAt: string | null; dueAt: string }): void
  /**
   * Makes a key due at `dueAt`, whether it was read before or not. A backfill of an `everyRound` feed reads it without
   * waiting for `dueAt`.
   */
  demand(task: TaskKey & { sortAt?: string | null; dueAt: string }): void
  /** Makes a key due at `dueAt`, whether it was read before or not. No round of a backfill reads it earlier. */
  askAt(task: TaskKey & { dueAt: string }): void
  /** The latest due time within a span, among these resources' probes and their tasks with `round` = `BY_DUE_TIME`. */
  latestAsked(resources: readonly string[], span: { after: string; upTo: string }): string | undefined
  /** The tasks that are due in a round of a backfill. */
  due(query: DueQuery): Task[]
  /** The tasks whose due time has come, in the order `first`. */
  dueBy(query: Omit<DueQuery, 'round' | 'everyRound'> & { first: TaskOrder }): Task[]
  /** The earliest due time of the tasks of a feed, except those of the given scopes. */
  nextDue(feed: string, exceptScopes: readonly string[], bounds?: TaskBounds): string | undefined
  /** Whether a first read, or a read that `announce` or `demand` asked for, is due. */
  hasFirst(feed: string, now: string, exceptScopes: readonly string[], since: string | null): boolean
  find(task: TaskKey): Task | undefined
  /** Records that a key was read in a round, and when it is due again. */
  done(task: TaskKey, next: Reread): void
  /** Records one more failed request for a key in a round, and when it is due again. Leaves `attempts` unchanged. */
  putOff(task: TaskKey, next: Pick<Reread, 'round' | 'dueAt' | 'sortAt'>): void
  remove(task: TaskKey): void
  /** Removes the tasks of these keys. Returns the keys that had one. */
  removeAll(feed: string, scope: string, keys: readonly string[]): string[]
  /** Removes the tasks of a range whose keys are not among `keys`. */
  keepOnly(feed: string, scope: string, keys: readonly string[], range: KeyRange): void
  /** Skips all tasks of a scope in a round, and sets when they are due again. */
  skipScope(feed: string, scope: string, next: Pick<Reread, 'round' | 'dueAt'>): void
  countDue(feed: string, now: string): number
  /** Moves every due time after `now` back by `ms`, because this machine's clock was set back. */
  moveBack(ms: number, now: string): void
  /** Number of tasks whose content the API has not finished. Leaves out tasks whose last request failed. */
  countWaiting(feed: string): number
}

export interface Reread {
  round: number
  dueAt: string
  attempts?: number
  deadline?: string | null
  waiting?: boolean
  sortAt?: string | null
}

/** Value of `round` for tasks that a backfill reads at their due time, not once in each round. */
export const BY_DUE_TIME = -1

/** Longer than any interval after scaling by `sync.interval_scale`. */
const LONGEST_DELAY_MS = 10 * 365 * DAY_MS

const ORDERS: Readonly<Record<TaskOrder, string>> = { newest: 'sort_at DESC', 'longest-due': 'due_at' }

type TaskRow = Omit<RowOf<typeof TASK_TABLE>, 'round'>

const toTask = (row: TaskRow): Task => ({
  feed: row.feed,
  scope: row.scope,
  key: row.key,
  sortAt: row.sort_at,
  dueAt: row.due_at,
  attempts: row.attempts,
  deadline: row.deadline,
  waiting: row.waiting === 1,
  failures: row.failures,
})

/** The parameters of a query, with its defaults. */
function parametersOf<Q extends TaskBounds & Pick<DueQuery, 'exceptScopes'>>(query: Q) {
  const { since = null, keys = null, exceptScopes = [] } = query
  return { ...query, since, keys, exceptScopes: JSON.stringify(exceptScopes) }
}

export function createTasks(prepare: Prepare): Tasks {
  const columns = 'feed, scope, key, sort_at, due_at, attempts, deadline, waiting, failures'
  const add = prepare(
    'INSERT OR IGNORE INTO sync_tasks (feed, scope, key, sort_at, due_at, attempts) VALUES (?, ?, ?, ?, ?, ?)',
  )
  const announce = prepare(
    `INSERT INTO sync_tasks (feed, scope, key, sort_at, due_at) VALUES (?, ?, ?, ?, ?)
     ON CONFLICT DO UPDATE SET round = 0, attempts = 0, sort_at = excluded.sort_at, due_at = excluded.due_at
     WHERE sort_at IS NULL OR excluded.sort_at > sort_at`,
  )
  const demand = prepare(
    `INSERT INTO sync_tasks (feed, scope, key, sort_at, due_at) VALUES (?, ?, ?, ?, ?)
     ON CONFLICT DO UPDATE SET round = 0, due_at = excluded.due_at, sort_at = coalesce(excluded.sort_at, sort_at)`,
  )
  const askAt = prepare(
    `INSERT INTO sync_tasks (feed, scope, key, due_at, round) VALUES (?, ?, ?, ?, ${BY_DUE_TIME})
     ON CONFLICT DO UPDATE SET round = excluded.round, due_at = excluded.due_at, waiting = 0, failures = 0`,
  )
  const latestAsked = prepare<string | null>(
    `SELECT max(due_at) FROM sync_tasks
     WHERE (round = ${BY_DUE_TIME} OR feed GLOB '*.probe') AND due_at > @after AND due_at <= @upTo
       AND substr(feed, 1, instr(feed, '.') - 1) IN (SELECT value FROM json_each(@resources))`,
  ).pluck()
  const isAsked = `(@since IS NULL OR sort_at IS NULL OR sort_at >= @since) AND (@keys IS NULL OR key GLOB @keys)
     AND scope NOT IN (SELECT value FROM json_each(@exceptScopes))`
  // Ranges of an index joined by UNION ALL: with OR, SQLite would scan every task of the feed.
  const select = (order: TaskOrder, index: string, ...conditions: readonly string[]) => {
    const ranges = conditions.map(
      condition =>
        `SELECT ${columns} FROM sync_tasks INDEXED BY ${index} WHERE feed = @feed AND ${condition} AND ${isAsked}`,
    )
    return `${ranges.join(' UNION ALL ')} ORDER BY ${ORDERS[order]} LIMIT @limit`
  }
  const everyOne = prepare<TaskRow>(
    `SELECT ${columns} FROM sync_tasks INDEXED BY sync_tasks_by_due
     WHERE feed = @feed AND due_at <= @now AND round = ${BY_DUE_TIME} AND ${isAsked}
     UNION ALL ${select('newest', 'sync_tasks_by_round', `round < @round AND round > ${BY_DUE_TIME}`)}`,
  )
  const waitingOrDue = prepare<TaskRow>(
    `SELECT ${columns} FROM sync_tasks INDEXED BY sync_tasks_open
     WHERE feed = @feed AND round < @round AND round > ${BY_DUE_TIME} AND waiting AND (waiting OR round = 0) AND ${isAsked}
     UNION ALL ${select('newest', 'sync_tasks_by_due', `due_at <= @now AND round < @round AND (NOT waiting OR round = ${BY_DUE_TIME})`)}`,
  )
  // A due time after @never is further ahead than any wait. A clock that was far ahead stored it, so the task is due.
  const dueIn = (order: TaskOrder) =>
    prepare<TaskRow>(select(order, 'sync_tasks_by_due', 'due_at <= @now', 'due_at > @never'))
  const dueBy = { newest: dueIn('newest'), 'longest-due': dueIn('longest-due') }
  const nextDue = prepare<string>(
    `SELECT due_at FROM sync_tasks INDEXED BY sync_tasks_by_due
     WHERE feed = @feed AND ${isAsked} ORDER BY due_at LIMIT 1`,
  ).pluck()
  const first = prepare(
    `SELECT 1 FROM sync_tasks INDEXED BY sync_tasks_open
     WHERE feed = @feed AND round = 0 AND (waiting OR round = 0) AND NOT waiting AND due_at <= @now AND ${isAsked} LIMIT 1`,
  ).pluck()
  const find = prepare<TaskRow>(`SELECT ${columns} FROM sync_tasks WHERE feed = ? AND scope = ? AND key = ?`)
  const done = prepare(
    `INSERT INTO sync_tasks (feed, scope, key, round, due_at, attempts, deadline, waiting, sort_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT DO UPDATE SET round = excluded.round, due_at = excluded.due_at, attempts = excluded.attempts, failures = 0,
       deadline = excluded.deadline, waiting = excluded.waiting, sort_at = coalesce(excluded.sort_at, sort_at)`,
  )
  const putOff = prepare(
    `INSERT INTO sync_tasks (feed, scope, key, round, due_at, sort_at, waiting, failures) VALUES (?, ?, ?, ?, ?, ?, 1, 1)
     ON CONFLICT DO UPDATE SET round = excluded.round, due_at = excluded.due_at, waiting = 1, failures = failures + 1`,
  )
  const remove = prepare('DELETE FROM sync_tasks WHERE feed = ? AND scope = ? AND key = ?')
  const any = prepare('SELECT 1 FROM sync_tasks WHERE feed = ? AND scope = ? LIMIT 1')
  const keepOnly = (range: KeyRange) =>
    prepare(
      `DELETE FROM sync_tasks WHERE feed = @feed AND scope = @scope AND ${inRange('key', range)}
         AND key NOT IN (SELECT value FROM json_each(@keys))`,
    )
  const skip = prepare(
    'UPDATE sync_tasks SET round = ?, due_at = ?, failures = 0 WHERE feed = ? AND scope = ?',
  )
  const moveBack = prepare(
    "UPDATE sync_tasks SET due_at = strftime('%Y-%m-%dT%H:%M:%fZ', due_at, ?) WHERE due_at > ?",
  )
  const countDue = prepare<number>('SELECT count(*) FROM sync_tasks WHERE feed = ? AND due_at <= ?').pluck()
  const waiting = prepare<number>(
    'SELECT count(*) FROM sync_tasks WHERE feed = ? AND waiting AND failures = 0',
  ).pluck()

  return {
    add: ({ feed, scope = '', key, sortAt = null, dueAt, attempts = 0 }) => {
      add.run(feed, scope, key, sortAt, dueAt, attempts)
    },
    announce: ({ feed, scope = '', key, sortAt, dueAt }) => {
      announce.run(feed, scope, key, sortAt, dueAt)
    },
    askAt: ({ feed, scope = '', key, dueAt }) => {
      askAt.run(feed, scope, key, dueAt)
    },
    latestAsked: (resources, span) =>
      latestAsked.get({ ...span, resources: JSON.stringify(resources) }) ?? undefined,
    demand: ({ feed, scope = '', key, sortAt = null, dueAt }) => {
      demand.run(feed, scope, key, sortAt, dueAt)
    },
    due: ({ everyRound, ...query }) =>
      (everyRound ? everyOne : waitingOrDue).all(parametersOf(query)).map(toTask),
    dueBy: ({ first, ...query }) => {
      const never = isoInstant(Date.parse(query.now) + LONGEST_DELAY_MS)
      return dueBy[first].all({ ...parametersOf(query), never }).map(toTask)
    },
    nextDue: (feed, exceptScopes, bounds) => nextDue.get(parametersOf({ feed, exceptScopes, ...bounds })),
    hasFirst: (feed, now, exceptScopes, since) =>
      first.get(parametersOf({ feed, now, exceptScopes, since })) !== undefined,
    find: ({ feed, scope = '', key }) => {
      const row = find.get(feed, scope, key)
      return row && toTask(row)
    },
    done: ({ feed, scope = '', key }, next) => {
      const { round, dueAt, attempts = 0, deadline = null, sortAt = null } = next
      done.run(feed, scope, key, round, dueAt, attempts, deadline, next.waiting ? 1 : 0, sortAt)
    },
    putOff: ({ feed, scope = '', key }, { round, dueAt, sortAt = null }) => {
      putOff.run(feed, scope, key, round, dueAt, sortAt)
    },
    remove: ({ feed, scope = '', key }) => {
      remove.run(feed, scope, key)
    },
    removeAll: (feed, scope, keys) => {
      if (any.get(feed, scope) === undefined) return []
      return keys.filter(key => remove.run(feed, scope, key).changes > 0)
    },
    keepOnly: (feed, scope, keys, range) => {
      keepOnly(range).run({ feed, scope, keys: JSON.stringify(keys), ...range })
    },
    skipScope: (feed, scope, { round, dueAt }) => {
      skip.run(round, dueAt, feed, scope)
    },
    moveBack: (ms, now) => {
      moveBack.run(movedBack(ms), now)
    },
    countDue: (feed, now) => onlyRow(countDue, feed, now),
    countWaiting: feed => onlyRow(waiting, feed),
  }
}
