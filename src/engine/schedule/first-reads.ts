import type { ItemFeed, Resource } from '../../catalog/resource.ts'
import { quote } from '../../store/database/sql.ts'
import type { Task } from '../../store/sync/tasks.ts'
import type { EngineContext } from '../context.ts'
import { HOUR } from './intervals.ts'

/** Keys that were never read: those with a task, and stored rows whose detail is still missing. */

/** Whether a first read of the resource is due. */
export function hasFirstReads(context: EngineContext, { name, feeds }: Resource): boolean {
  const { store, backoffs, now } = context
  return Object.entries(feeds).some(([feedName, feed]) => {
    const id = `${name}.${feedName}`
    if (feed.mode !== 'item' || backoffs.isWaiting(id)) return false
    return (
      store.tasks.hasFirst(id, now(), backoffs.waitingScopes(id)) ||
      firstReads(context, id, feed, 1).length > 0
    )
  })
}

export function firstRead(feed: string, key: string, sortAt: string | null): Task {
  return { feed, scope: '', key, sortAt, dueAt: '', attempts: 0, deadline: null, waiting: false }
}

/** Rows whose first read is outstanding. Rows with a task are left out: the task has its own due time. */
export function firstReads(context: EngineContext, id: string, { pending }: ItemFeed, limit: number): Task[] {
  if (!pending) return []
  const { store, options } = context
  const time = `t.${quote(pending.time)}`
  const rows = store
    .prepare(
      `SELECT t.${quote(pending.key)} AS key, ${time} AS at FROM ${quote(pending.table)} t
       WHERE ${pending.where} AND (? IS NULL OR ${time} > ?) AND (? IS NULL OR ${time} IS NULL OR ${time} >= ?)
         AND NOT EXISTS (SELECT 1 FROM sync_tasks s WHERE s.feed = ? AND s.scope = '' AND s.key = t.${quote(pending.key)})
       ORDER BY ${time} DESC LIMIT ${limit}`,
    )
    .all(...twice(heldBackBefore(context, pending.afterListOf)), ...twice(options.since), id) as PendingRow[]
  return rows.map(({ key, at }) => firstRead(id, key, at))
}

interface PendingRow {
  key: string
  at: string | null
}

const twice = (value: string | null): [string | null, string | null] => [value, value]

/** Copies of one e-mail are close together in time, and the earliest one counts. So its day is listed first. */
const COPIES_APART_MS = 24 * HOUR

/** Rows older than this instant wait, since earlier copies may still be listed; null when no row waits. */
function heldBackBefore(
  { store, options: { since } }: EngineContext,
  behind: string | undefined,
): string | null {
  if (behind === undefined) return null
  const reached = store.segments.listedDownTo(`${behind}.list`)
  // This run does not list rows before `sync.since`, so no row needs to wait for them.
  if (reached === null || (reached !== undefined && since !== null && reached <= since)) return null
  return reached === undefined ? '~' : new Date(Date.parse(reached) + COPIES_APART_MS).toISOString()
}
