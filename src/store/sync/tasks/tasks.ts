import { movedBack } from '../../database/sql.ts'
import type { Prepare } from '../../database/sqlite-types.ts'
import { onlyRow } from '../../database/statements.ts'
import { createTaskDemands, type TaskDemands } from './demands.ts'
import { createDueTasks, type DueTasks } from './due.ts'
import { createTaskResults, type TaskResults } from './results.ts'
import { inRange, type KeyRange } from './seen-keys.ts'
import { BY_DUE_TIME, TASK_COLUMNS, type Task, type TaskKey, type TaskRow, toTask } from './task.ts'

export interface Tasks extends TaskDemands, DueTasks, TaskResults {
  find(task: TaskKey): Task | undefined
  /** The latest due time within a span, among these resources' probes and their tasks with `round` = `BY_DUE_TIME`. */
  latestAsked(resources: readonly string[], span: { after: string; upTo: string }): string | undefined
  countDue(feed: string, now: string): number
  /** Number of tasks whose content the API has not finished. Leaves out tasks whose last request failed. */
  countWaiting(feed: string): number
  remove(task: TaskKey): void
  /** Removes the tasks of these keys. Returns the keys that had one. */
  removeAll(feed: string, scope: string, keys: readonly string[]): string[]
  /** Removes the tasks of a range whose keys are not among `keys`. */
  keepOnly(feed: string, scope: string, keys: readonly string[], range: KeyRange): void
  /** Moves every due time after `now` to an instant `ms` earlier, because this machine's clock was set back. */
  moveBack(ms: number, now: string): void
}

export function createTasks(prepare: Prepare): Tasks {
  const find = prepare<TaskRow>(
    `SELECT ${TASK_COLUMNS} FROM sync_tasks WHERE feed = ? AND scope = ? AND key = ?`,
  )
  const latestAsked = prepare<string | null>(
    `SELECT max(due_at) FROM sync_tasks
     WHERE (round = ${BY_DUE_TIME} OR feed GLOB '*.probe') AND due_at > @after AND due_at <= @upTo
       AND substr(feed, 1, instr(feed, '.') - 1) IN (SELECT value FROM json_each(@resources))`,
  ).pluck()
  const countDue = prepare<number>('SELECT count(*) FROM sync_tasks WHERE feed = ? AND due_at <= ?').pluck()
  const countWaiting = prepare<number>(
    'SELECT count(*) FROM sync_tasks WHERE feed = ? AND waiting AND failures = 0',
  ).pluck()
  const remove = prepare('DELETE FROM sync_tasks WHERE feed = ? AND scope = ? AND key = ?')
  const any = prepare('SELECT 1 FROM sync_tasks WHERE feed = ? AND scope = ? LIMIT 1')
  const keepOnly = (range: KeyRange) =>
    prepare(
      `DELETE FROM sync_tasks WHERE feed = @feed AND scope = @scope AND ${inRange('key', range)}
         AND key NOT IN (SELECT value FROM json_each(@keys))`,
    )
  const moveBack = prepare(
    "UPDATE sync_tasks SET due_at = strftime('%Y-%m-%dT%H:%M:%fZ', due_at, ?) WHERE due_at > ?",
  )

  return {
    ...createTaskDemands(prepare),
    ...createDueTasks(prepare),
    ...createTaskResults(prepare),
    find: ({ feed, scope = '', key }) => {
      const row = find.get(feed, scope, key)
      return row && toTask(row)
    },
    latestAsked: (resources, span) =>
      latestAsked.get({ ...span, resources: JSON.stringify(resources) }) ?? undefined,
    countDue: (feed, now) => onlyRow(countDue, feed, now),
    countWaiting: feed => onlyRow(countWaiting, feed),
    remove: ({ feed, scope = '', key }) => void remove.run(feed, scope, key),
    removeAll: (feed, scope, keys) => {
      if (any.get(feed, scope) === undefined) return []
      return keys.filter(key => remove.run(feed, scope, key).changes > 0)
    },
    keepOnly: (feed, scope, keys, range) =>
      void keepOnly(range).run({ feed, scope, keys: JSON.stringify(keys), ...range }),
    moveBack: (ms, now) => void moveBack.run(movedBack(ms), now),
  }
}
