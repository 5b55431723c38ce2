import type { DeclaredFeed } from '../../../catalog/feeds.ts'
import type { SnapshotFeed, TimelineFeed } from '../../../declare/resource.ts'
import type { RowKey } from '../../../store/deletions/suspicions.ts'
import type { Task } from '../../../store/sync/tasks/task.ts'
import type { EngineContext } from '../../context/context.ts'
import { WEEK } from '../../context/intervals.ts'
import type { Source } from '../../context/job.ts'
import { noteDenial } from '../../deletions/denial.ts'
import { createKeySource } from './key-source.ts'

/**
 * Requests the rows that a list no longer shows, each by its key. A row that is found exists. A row that is not found
 * is denied once more.
 */
export function createProbes(
  context: EngineContext,
  { resource, id, feed }: DeclaredFeed<TimelineFeed | SnapshotFeed>,
): Source | undefined {
  const { evidence } = feed
  const { store } = context
  if (evidence.by !== 'single' && evidence.by !== 'ids') return undefined
  const where = { resource, feed: `${id}.probe` }
  return createKeySource(context, feed, evidence, {
    where,
    list: id,
    lane: 'audit',
    everyRound: false,
    isReady: () => true,
    isWanted: () => true,
    // The row exists although no list shows it. It is requested again after a week, or sooner (`isRefuted`).
    found(task) {
      store.suspicions.end(rowOf(feed, task))
      const round = context.rounds.number(resource)
      store.tasks.done(task, { round, dueAt: context.after(WEEK), attempts: task.attempts + 1 })
    },
    missing(task) {
      const row = rowOf(feed, task)
      if (store.stored.state(row) !== 'open') {
        store.tasks.remove(task)
        return
      }
      const verdict = noteDenial(context, row)
      if (verdict.state === 'confirmed') store.tasks.remove(task)
      else store.tasks.askAt({ ...task, dueAt: store.dueClock.after(verdict.askAgainMs) })
    },
  })
}

function rowOf({ table }: TimelineFeed | SnapshotFeed, { scope, key }: Task): RowKey {
  return { table, scope, key }
}
