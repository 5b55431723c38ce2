import type { Prepare } from '../../database/sqlite-types.ts'
import type { TaskKey } from './task.ts'

/** Records the result of a request in the tasks that it was sent for. */
export interface TaskResults {
  /** Records that a key was read in a round, and when it is due again. */
  done(task: TaskKey, next: Reread): void
  /** Records one more failed request for a key in a round, and when it is due again. Leaves `attempts` unchanged. */
  putOff(task: TaskKey, next: Pick<Reread, 'round' | 'dueAt' | 'sortAt'>): void
  /** Skips all tasks of a scope in a round, and sets when they are due again. */
  skipScope(feed: string, scope: string, next: Pick<Reread, 'round' | 'dueAt'>): void
}

export interface Reread {
  round: number
  dueAt: string
  attempts?: number
  deadline?: string | null
  waiting?: boolean
  sortAt?: string | null
}

export function createTaskResults(prepare: Prepare): TaskResults {
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
  return {
    done: ({ feed, scope = '', key }, next) => {
      const { round, dueAt, attempts = 0, deadline = null, sortAt = null } = next
      done.run(feed, scope, key, round, dueAt, attempts, deadline, next.waiting ? 1 : 0, sortAt)
    },
    putOff: ({ feed, scope = '', key }, { round, dueAt, sortAt = null }) =>
      void putOff.run(feed, scope, key, round, dueAt, sortAt),
    skipScope: (feed, scope, { round, dueAt }) => void skip.run(round, dueAt, feed, scope),
  }
}
