import type { Prepare } from '../../database/sqlite-types.ts'
import { BY_DUE_TIME, type TaskKey } from './task.ts'

/** The ways to make a key due. They differ in what they do to a task that the key has already. */
export interface TaskDemands {
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
}

export function createTaskDemands(prepare: Prepare): TaskDemands {
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
  return {
    add: ({ feed, scope = '', key, sortAt = null, dueAt, attempts = 0 }) =>
      void add.run(feed, scope, key, sortAt, dueAt, attempts),
    announce: ({ feed, scope = '', key, sortAt, dueAt }) =>
      void announce.run(feed, scope, key, sortAt, dueAt),
    demand: ({ feed, scope = '', key, sortAt = null, dueAt }) =>
      void demand.run(feed, scope, key, sortAt, dueAt),
    askAt: ({ feed, scope = '', key, dueAt }) => void askAt.run(feed, scope, key, dueAt),
  }
}
