import { columnAt } from '../../../catalog/catalog.ts'
import type { DeclaredFeed } from '../../../catalog/feeds.ts'
import type { SnapshotFeed } from '../../../declare/resource.ts'
import type { StoredItem } from '../../../store/rows/write-items.ts'
import type { Task } from '../../../store/sync/tasks/task.ts'
import type { EngineContext } from '../../context/context.ts'
import type { Source } from '../../context/job.ts'
import { probeLater } from '../../deletions/probe-later.ts'
import { changedFeed } from '../../follow-ups/changed-records.ts'
import { demandUnknownFields, followRelations } from '../../follow-ups/relations.ts'
import { writeFollowUps } from '../../follow-ups/write.ts'
import { askLaggingAgain } from '../lagging-answers.ts'
import { createKeySource } from './key-source.ts'

/**
 * Reads records ahead of their list: records that an activity announces as changed, and unstored records that these
 * refer to.
 */
export function createAnnouncedRecords(
  context: EngineContext,
  list: DeclaredFeed<SnapshotFeed>,
): Source | undefined {
  const { resource, id, feed } = list
  const { evidence, changes } = feed
  if (evidence.by !== 'ids' || !changes) return undefined
  const { store } = context
  const where = { resource, id: changedFeed(id) }
  const updatedAt = columnAt(feed.table, changes.updated)
  return createKeySource(context, feed, evidence, {
    where,
    list: id,
    lane: 'head',
    everyRound: false,
    found(asked, entry) {
      // The task may have been updated while the request was in flight.
      const task = store.tasks.find(asked) ?? asked
      const step = task.sortAt === null ? task.attempts : 0
      if (entry) {
        followRelations(context, list, { object: task.scope, entry, step })
        demandUnknownFields(context, list, task.scope, [entry])
      }
      if (entry && task.sortAt !== null && task.attempts === 0) followUnchanged(context, feed, entry)
      if (isDueAgain(task, asked)) return
      if (task.sortAt === null || (entry && hasCaughtUp(updatedAt, entry, task.sortAt)))
        store.tasks.remove(task)
      else askLaggingAgain(context, resource, task)
    },
    missing(asked) {
      const task = store.tasks.find(asked) ?? asked
      if (store.stored.state({ table: feed.table, scope: task.scope, key: task.key }) === 'open') {
        probeLater(context, { resource, table: feed.table, probe: `${id}.probe`, scope: task.scope }, [
          { key: task.key, at: null },
        ])
        if (!isDueAgain(task, asked)) store.tasks.remove(task)
      } else if (isDueAgain(task, asked)) return
      else if (task.sortAt === null) store.tasks.remove(task)
      else askLaggingAgain(context, resource, task)
    },
  })
}

/** Whether the record was announced again during the request. The answer may be too old to show that change. */
function isDueAgain(task: Task, asked: Task): boolean {
  return task.dueAt !== asked.dueAt || task.sortAt !== asked.sortAt
}

/** The announced change may concern only the record's associations, so an unchanged record gets follow-ups too. */
function followUnchanged(
  context: EngineContext,
  { followUps, table }: SnapshotFeed,
  entry: StoredItem,
): void {
  if (entry.written.status !== 'unchanged') return
  const written = { ...entry.written, status: 'changed' } as const
  writeFollowUps(context, table, [{ ...entry, written }], followUps)
}

/**
 * Whether an answer already shows a change that happened at an instant.
 * @param at position of the column with the time of the row's last change
 */
function hasCaughtUp(at: number, { item, written }: StoredItem, happenedAt: string): boolean {
  const updatedAt = item.cells[at]
  return typeof updatedAt === 'string' ? updatedAt >= happenedAt : written.status !== 'unchanged'
}
