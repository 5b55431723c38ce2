import { fillPath } from '../../../api/request.ts'
import type { ItemFeed, Resource } from '../../../catalog/resource.ts'
import type { Task, TaskOrder } from '../../../store/sync/tasks.ts'
import type { EngineContext } from '../../context.ts'
import { firstRead, firstReads } from '../../due/first-reads.ts'
import { putOff } from '../../due/put-off.ts'
import { createBatchPlan } from '../../scheduler/batch-plan.ts'
import type { Job, Source } from '../../scheduler/job.ts'
import { MOST_FAILURES_IN_A_ROW } from '../narrowing.ts'
import { refusalError } from '../refusals.ts'
import { refuseTasks } from '../refused-scope.ts'
import { ITEM_ANSWERS } from './handlers.ts'
import { type ItemWork, rejectScope } from './item-handler.ts'
import { createTaskQueue, nameOf } from './task-queue.ts'

/** Reads items with one request each, newest first: pending rows, then tasks that are due. */

/** Two sources: the keys that the newest pages have just brought, and all others. */
export function createItems(
  context: EngineContext,
  resource: Resource,
  name: string,
  feed: ItemFeed,
): Source[] {
  const { store, backoffs, schedule, clock } = context
  const id = `${resource.name}.${name}`
  const where = { resource: resource.name, feed: id }
  const underWay = new Set<string>()
  const handler = ITEM_ANSWERS[feed.stores]
  /** Items whose own list has another page. */
  const continued: { task: Task; work: ItemWork }[] = []
  const { plan: planBatches } = handler
  const plan =
    planBatches &&
    createBatchPlan(context, {
      canBegin: () => resource.parents.every(context.isFinished),
      batches: () => planBatches(context, id),
    })
  const isFree = (task: Task) => !underWay.has(nameOf(task)) && !backoffs.isWaiting(id, task.scope)

  const dueTasks = (first: TaskOrder): Task[] =>
    schedule.dueTasks({
      ...where,
      everyRound: feed.everyRound,
      since: feed.boundBySince ? context.options.since : null,
      limit: schedule.batchSize,
      first,
      exceptScopes: backoffs.waitingScopes(id),
    })

  const queue = createTaskQueue({
    clock,
    isFree,
    isTimed: schedule.isTimed,
    load() {
      const newest = dueTasks('newest')
      // Otherwise the newest, which may fall due again before the next batch, would be read every time.
      const others = schedule.isTimed && newest.length === schedule.batchSize ? dueTasks('longest-due') : []
      return [...firstReads(context, id, feed, schedule.batchSize), ...newest, ...others]
    },
  })

  const isReady = () => plan?.isReady() ?? true

  const readJob = (task: Task, work: ItemWork): Job => {
    return {
      ...where,
      scope: task.scope,
      expected: feed.expected,
      request: {
        resource: resource.name,
        route: feed.read.path,
        path: fillPath(feed.read.path, { key: task.key, ...handler.params?.(task) }),
        ...(handler.query ? { query: handler.query(work) } : {}),
      },
      answer(value, reply) {
        work.sentAt ??= reply.sentAt
        store.rejects.resolve(id, rejectScope(task), work.sentAt, context.now())
        handler.answer(context, work, value, reply)
        queue.succeeded()
      },
      refused(status, message) {
        const meaning = feed.expected?.[status]
        if (meaning === undefined) throw refusalError(status, message)
        if (meaning === 'unavailable') {
          const list = handler.list?.(work)
          if (!list) throw refusalError(status, message)
          refuseTasks(context, { where, scope: task.scope, tasks: [task], status, message }, list)
        } else handler.absent(context, work, meaning)
        queue.succeeded()
      },
      failed(error) {
        queue.failed()
        if (queue.failures() >= MOST_FAILURES_IN_A_ROW) backoffs.failed(id, '')
        putOff(context, where, [task], error)
      },
      over() {
        underWay.delete(nameOf(task))
        if (work.more && !backoffs.isWaiting(id)) {
          work.more = false
          continued.push({ task, work })
          underWay.add(nameOf(task))
        } else if (work.ticket !== undefined) store.freshness.end(work.ticket)
      },
    }
  }

  /** Lists that must wait restart later. While a list is open, the store has to remember every write. */
  const dropContinued = () => {
    for (const { task, work } of continued.splice(0)) {
      underWay.delete(nameOf(task))
      if (work.ticket !== undefined) store.freshness.end(work.ticket)
    }
  }

  const begin = (task: Task): Job => {
    underWay.add(nameOf(task))
    context.urgent.keys.get(id)?.delete(task.key)
    return readJob(task, {
      resource,
      id,
      feed,
      task,
      more: false,
      ticket: undefined,
      sentAt: undefined,
      cursor: null,
      gathered: [],
      asked: [],
    })
  }

  return [
    {
      ...where,
      lane: 'head',
      next() {
        const keys = context.urgent.keys.get(id)
        if (!keys || keys.size === 0 || backoffs.isWaiting(id)) return undefined
        for (const key of keys) {
          keys.delete(key)
          const task = urgentTask(context, id, feed, key)
          if (!task || !isFree(task)) continue
          queue.drop(task)
          return begin(task)
        }
        return undefined
      },
      finished: () => true,
    },
    {
      ...where,
      lane: 'items',
      next() {
        if (backoffs.isWaiting(id)) {
          dropContinued()
          return undefined
        }
        if (!isReady()) return undefined
        const going = continued.shift()
        if (going) return readJob(going.task, going.work)
        const task = queue.take()
        return task && begin(task)
      },
      finished() {
        if (backoffs.isWaiting(id)) return true
        return isReady() && underWay.size === 0 && queue.isEmpty()
      },
      replan: () => plan?.invalidate(),
    },
  ]
}

/** The task of a key, or the first read of a pending row; undefined when the key was read in the meantime. */
function urgentTask(
  context: EngineContext,
  id: string,
  { pending }: ItemFeed,
  key: string,
): Task | undefined {
  const task = context.store.tasks.find({ feed: id, key })
  if (task) return task.dueAt <= context.now() ? task : undefined
  if (!pending) return undefined
  const row = context.store.pending.find(pending, key)
  return row && firstRead(id, row)
}
