import type { Prepare } from '../../database/sqlite-types.ts'
import { onlyRow } from '../../database/statements.ts'
import { createDueTasks } from './due-tasks.ts'
import { inRange, type KeyRange } from './seen-keys.ts'
import { BY_DUE_TIME, TASK_COLUMNS, type Task, type TaskKey } from './task.ts'

export function createTasks(prepare: Prepare) {
  const find = prepare<Task>(
    `SELECT ${TASK_COLUMNS} FROM sync_tasks WHERE feed = ? AND scope = ? AND key = ?`,
  )
  const latestAsked = prepare<string | null>(
    `SELECT max(due_at) FROM sync_tasks
     WHERE (round = ${BY_DUE_TIME} OR feed GLOB '*.probe') AND due_at > @after AND due_at <= @upTo
       AND substr(feed, 1, instr(feed, '.') - 1) IN (SELECT value FROM json_each(@resources))`,
  ).pluck()
  const repeated = prepare<string>(
    `SELECT key FROM sync_tasks WHERE feed = ? AND round = ${BY_DUE_TIME} AND scope = ''`,
  ).pluck()
  const countDue = prepare<number>('SELECT count(*) FROM sync_tasks WHERE feed = ? AND due_at <= ?').pluck()
  const countWaiting = prepare<number>(
    "SELECT count(*) FROM sync_tasks WHERE feed = ? AND waiting AND failures = 0 AND coalesce(sort_at, '~') >= ?",
  ).pluck()
  const unfailed = prepare('SELECT 1 FROM sync_tasks WHERE feed = ? AND failures = 0 LIMIT 1')
  const remove = prepare('DELETE FROM sync_tasks WHERE feed = ? AND scope = ? AND key = ?')
  const any = prepare('SELECT 1 FROM sync_tasks WHERE feed = ? AND scope = ? LIMIT 1')
  const keepOnly = (range: KeyRange) =>
    prepare(
      `DELETE FROM sync_tasks WHERE feed = @feed AND scope = @scope AND ${inRange('key', range)}
         AND key NOT IN (SELECT value FROM json_each(@keys))`,
    )

  const findTask = ({ feed, scope = '', key }: TaskKey) => find.get(feed, scope, key)

  return {
    ...createTaskDemands(prepare),
    ...createDueTasks(prepare),
    ...createTaskResults(prepare),
    find: findTask,
    /** The latest due time within a span, among these resources' probes and their tasks with `round` = `BY_DUE_TIME`. */
    latestAsked: (resources: readonly string[], span: { after: string; upTo: string }) =>
      latestAsked.get({ ...span, resources: JSON.stringify(resources) }) ?? undefined,
    /**
     * Keys without a scope whose last answer counts only if a second answer agrees. A backfill waits for their due time
     * too.
     */
    repeated: (feed: string) => repeated.all(feed),
    countDue: (feed: string, now: string) => onlyRow(countDue, feed, now),
    /** Whether the feed has a task, other than those whose last request failed. */
    hasAny: (feed: string) => unfailed.get(feed) !== undefined,
    /**
     * Number of tasks whose content the API has not finished. Leaves out tasks whose last request failed, and those from
     * before `since`.
     */
    countWaiting: (feed: string, since: string | null) => onlyRow(countWaiting, feed, since ?? ''),
    remove: ({ feed, scope = '', key }: TaskKey) => void remove.run(feed, scope, key),
    /** Removes the tasks of these keys for which `isToGo` is true; default all. Returns the keys of the removed tasks. */
    removeAll(feed: string, scope: string, keys: readonly string[], isToGo = (_: Task) => true) {
      if (any.get(feed, scope) === undefined) return []
      return keys.filter(key => {
        const task = findTask({ feed, scope, key })
        return task !== undefined && isToGo(task) && remove.run(feed, scope, key).changes > 0
      })
    },
    /** Removes the tasks of a range whose keys are not among `keys`. */
    keepOnly: (feed: string, scope: string, keys: readonly string[], range: KeyRange) =>
      void keepOnly(range).run({ feed, scope, keys: JSON.stringify(keys), ...range }),
  }
}

interface TaskToAdd extends TaskKey {
  sortAt?: string | null
  dueAt: string
}

/** The ways to make a key due. They differ in what they do to a task that the key has already. */
function createTaskDemands(prepare: Prepare) {
  const add = prepare(
    'INSERT OR IGNORE INTO sync_tasks (feed, scope, key, sort_at, due_at, attempts) VALUES (?, ?, ?, ?, ?, ?)',
  )
  const name = prepare(
    `INSERT INTO sync_tasks (feed, scope, key, sort_at, due_at, named_at) VALUES (?, ?, ?, ?, @dueAt, @dueAt)
     ON CONFLICT DO UPDATE SET named_at = excluded.named_at
     WHERE waiting AND (named_at IS NULL OR named_at < @unlessSince)`,
  )
  const announce = prepare(
    `INSERT INTO sync_tasks (feed, scope, key, sort_at, due_at) VALUES (?, ?, ?, ?, ?)
     ON CONFLICT DO UPDATE SET round = 0, attempts = 0, sort_at = excluded.sort_at, due_at = excluded.due_at
     WHERE sort_at IS NULL OR excluded.sort_at > sort_at`,
  )
  const demand = prepare(
    `INSERT INTO sync_tasks (feed, scope, key, sort_at, due_at, named_at, deadline) VALUES (?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT DO UPDATE SET round = 0, due_at = excluded.due_at, sort_at = coalesce(excluded.sort_at, sort_at),
       named_at = coalesce(excluded.named_at, named_at), deadline = coalesce(deadline, excluded.deadline)`,
  )
  const askAt = prepare(
    `INSERT INTO sync_tasks (feed, scope, key, due_at, round) VALUES (?, ?, ?, ?, ${BY_DUE_TIME})
     ON CONFLICT DO UPDATE SET round = excluded.round, due_at = excluded.due_at, waiting = 0, failures = 0`,
  )
  return {
    /** Adds a first read. An existing task stays as it is. */
    add: ({ feed, scope = '', key, sortAt = null, dueAt, attempts = 0 }: TaskToAdd & { attempts?: number }) =>
      void add.run(feed, scope, key, sortAt, dueAt, attempts),
    /**
     * As `add`, for a key that a list has named. Also sets `namedAt` of a waiting task when it is before `unlessSince`.
     */
    name: ({ feed, scope = '', key, sortAt = null, ...times }: TaskToAdd & { unlessSince: string }) =>
      void name.run(feed, scope, key, sortAt, times),
    /** Makes a key due because of an event at `sortAt`. A task with the same or a later `sortAt` stays as it is. */
    announce: ({ feed, scope = '', key, sortAt, dueAt }: TaskToAdd & Pick<Task, 'sortAt'>) =>
      void announce.run(feed, scope, key, sortAt, dueAt),
    /**
     * Makes a key due at `dueAt`, whether it was read before or not. A backfill of an `everyRound` feed reads it without
     * waiting for `dueAt`.
     */
    demand: ({
      feed,
      scope = '',
      key,
      sortAt = null,
      dueAt,
      namedAt = null,
      deadline = null,
    }: TaskToAdd & Partial<Pick<Task, 'namedAt' | 'deadline'>>) =>
      void demand.run(feed, scope, key, sortAt, dueAt, namedAt, deadline),
    /** Makes a key due at `dueAt`, whether it was read before or not. No round of a backfill reads it earlier. */
    askAt: ({ feed, scope = '', key, dueAt }: TaskKey & { dueAt: string }) =>
      void askAt.run(feed, scope, key, dueAt),
  }
}

interface Reread {
  round: number
  dueAt: string
  attempts?: number
  deadline?: string | null
  waiting?: boolean
  sortAt?: string | null
}

/** Records the result of a request in the tasks that it was sent for. */
function createTaskResults(prepare: Prepare) {
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
  const skip = prepare(
    'UPDATE sync_tasks SET round = ?, due_at = ?, failures = 0 WHERE feed = ? AND scope = ?',
  )
  const tryAgain = prepare(
    'UPDATE sync_tasks SET tries = tries + 1, try_at = @at WHERE feed = @feed AND scope = @scope AND key = @key',
  )
  const tryFirst = prepare(
    `INSERT OR IGNORE INTO sync_tasks (feed, scope, key, sort_at, due_at) VALUES (@feed, @scope, @key, @sortAt, @now)`,
  )
  const settled = prepare(
    'UPDATE sync_tasks SET tries = 0, try_at = NULL WHERE feed = ? AND scope = ? AND key = ? AND tries > 0',
  )
  const retryNow = prepare('UPDATE sync_tasks SET tries = 0, try_at = NULL WHERE feed = ? AND tries > 0')
  return {
    /** Records that a key was read in a round, and when it is due again. */
    done({ feed, scope = '', key }: TaskKey, next: Reread) {
      const { round, dueAt, attempts = 0, deadline = null, sortAt = null } = next
      done.run(feed, scope, key, round, dueAt, attempts, deadline, next.waiting ? 1 : 0, sortAt)
    },
    /**
     * Notes a failed request, which is made again at `times.at` of the due clock. A first read that has no task yet, with
     * `dueAt` '', gets one.
     */
    tryAgain(
      { feed, scope, key, sortAt, dueAt }: Pick<Task, 'feed' | 'scope' | 'key' | 'sortAt' | 'dueAt'>,
      { now, at }: { now: string; at: string },
    ) {
      if (dueAt === '') tryFirst.run({ feed, scope, key, sortAt, now })
      tryAgain.run({ feed, scope, key, at })
    },
    /** Ends the tries of a key: its request was answered, or has failed for good. */
    settled: ({ feed, scope = '', key }: TaskKey) => void settled.run(feed, scope, key),
    /** Makes the failed requests of a feed due again at once, and resets their tries. */
    retryNow: (feed: string) => void retryNow.run(feed),
    /** Records one more failed request for a key in a round, and when it is due again. Leaves `attempts` unchanged. */
    putOff: (
      { feed, scope = '', key }: TaskKey,
      { round, dueAt, sortAt = null }: Pick<Reread, 'round' | 'dueAt' | 'sortAt'>,
    ) => void putOff.run(feed, scope, key, round, dueAt, sortAt),
    /** Skips all tasks of a scope in a round, and sets when they are due again. */
    skipScope: (feed: string, scope: string, { round, dueAt }: Pick<Reread, 'round' | 'dueAt'>) =>
      void skip.run(round, dueAt, feed, scope),
  }
}
