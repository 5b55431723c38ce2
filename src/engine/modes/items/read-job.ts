import { fillPath } from '../../../api/request.ts'
import type { FeedName } from '../../../catalog/feeds.ts'
import type { ItemFeed } from '../../../declare/resource.ts'
import type { Task } from '../../../store/sync/tasks/task.ts'
import type { EngineContext } from '../../context/context.ts'
import type { Job } from '../../context/job.ts'
import { MOST_FAILURES_IN_A_ROW } from '../narrowing.ts'
import { putOff } from '../put-off.ts'
import { refusalError } from '../refusals.ts'
import { refuseTasks } from '../refused-scope.ts'
import { type ItemHandler, type ItemWork, rejectScope } from './item-handler.ts'
import type { TaskQueue } from './task-queue.ts'

/** What the reads of a feed share. */
export interface ItemReads {
  where: FeedName
  feed: ItemFeed
  handler: ItemHandler
  queue: Pick<TaskQueue, 'succeeded' | 'failed' | 'failures'>
  /** Called when a job is over. `again`: its page was neither read nor given up. */
  over(work: ItemWork, again: boolean): void
}

/** The job that requests an item, or one page of the item's list. */
export function readJob(context: EngineContext, reads: ItemReads, work: ItemWork): Job {
  const { store, backoffs } = context
  const { where, feed, handler, queue } = reads
  const { task } = work
  return {
    ...where,
    scope: task.scope,
    reads: { tasks: [task] },
    expected: feed.expected,
    request: {
      route: feed.read.path,
      path: fillPath(feed.read.path, { key: task.key, ...handler.params?.(task) }),
      ...(handler.query ? { query: handler.query(work) } : {}),
    },
    answer(value, reply) {
      const demand = newDemand(context, task)
      work.sentAt ??= reply.sentAt
      store.rejects.resolve(where.feed, rejectScope(task), work.sentAt, context.now())
      handler.answer(context, work, value, reply)
      if (demand) store.tasks.demand(demand)
      queue.succeeded()
    },
    refused(status, message) {
      const demand = newDemand(context, task)
      const meaning = feed.expected?.[status]
      const list = meaning === 'unavailable' ? handler.list?.(work) : undefined
      if (list) refuseTasks(context, { where, scope: task.scope, tasks: [task], status, message }, list)
      else if (meaning === undefined || meaning === 'unavailable') throw refusalError(status, message)
      else handler.absent(context, work, meaning)
      if (demand) store.tasks.demand(demand)
      queue.succeeded()
    },
    failed(error) {
      queue.failed()
      if (queue.failures() >= MOST_FAILURES_IN_A_ROW) backoffs.failed(where.feed, '')
      putOff(context, where, [task], error)
    },
    over: again => reads.over(work, again),
  }
}

/**
 * The stored task, if the key has become due again since this task was taken. The answer may be older than the reason
 * for that, so the key is read once more.
 */
export function newDemand({ store }: EngineContext, task: Task): Task | undefined {
  const current = store.tasks.find(task)
  return current && current.dueAt !== task.dueAt && current.dueAt <= store.dueClock.now()
    ? current
    : undefined
}
