import { HOUR_MS } from '../../base/clock.ts'
import { itemsOf } from '../../catalog/feeds.ts'
import type { ItemFeed, Resource } from '../../declare/resource.ts'
import type { PendingRow } from '../../store/rows/awaiting-read.ts'
import type { Task } from '../../store/sync/tasks/task.ts'
import type { EngineContext } from '../context/context.ts'

/** First reads are of two kinds: tasks whose key was never read, and stored rows that still lack their single read. */

/** Whether a first read of the resource is due, or a read that a demand or an event made due again. */
export function hasFirstReads(context: EngineContext, resource: Resource): boolean {
  const { store, backoffs, options } = context
  return itemsOf(resource).some(({ id, feed }) => {
    if (backoffs.isWaiting(id)) return false
    const since = feed.boundBySince ? options.since : null
    return (
      store.tasks.hasFirst(id, store.dueClock.now(), backoffs.waitingScopes(id), since) ||
      firstReads(context, id, feed, 1).length > 0
    )
  })
}

/** @returns a task for a pending row, for which no task and no due time is stored yet */
export function firstRead(feed: string, { key, at }: PendingRow): Task {
  return {
    feed,
    scope: '',
    key,
    sortAt: at,
    dueAt: '',
    attempts: 0,
    deadline: null,
    waiting: 0,
    failures: 0,
    round: 0,
    namedAt: null,
    tries: 0,
    tryAt: null,
  }
}

/** Rows whose first read is outstanding. Rows with a task are left out: the task has its own due time. */
export function firstReads(context: EngineContext, id: string, { pending }: ItemFeed, limit: number): Task[] {
  if (!pending) return []
  const { store, options } = context
  const after = heldBackBefore(context, pending.afterListOf)
  const rows = store.pending.newest(pending, { feed: id, after, since: options.since, limit })
  return rows.map(row => firstRead(id, row))
}

/**
 * The copies of an e-mail are less than a day apart, and the earliest is read first. So a copy waits until the list was
 * read back to a day before it.
 */
const COPIES_APART_MS = 24 * HOUR_MS

/**
 * Rows that are not newer than this instant wait, since the list may still show earlier copies; null when no row waits.
 */
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
