import type { DeclaredFeed } from '../../../catalog/feeds.ts'
import type { ItemFeed, Resource } from '../../../declare/resource.ts'
import type { TaskOrder } from '../../../store/sync/tasks/due.ts'
import type { Task } from '../../../store/sync/tasks/task.ts'
import type { EngineContext } from '../../context/context.ts'
import type { Job, Keys, Source } from '../../context/job.ts'
import { keysWaitMs } from '../../due/due.ts'
import { firstRead, firstReads } from '../../due/first-reads.ts'
import { mayTry, withTries } from '../../due/retries.ts'
import { type BatchPlan, createBatchPlan } from '../../scheduler/batch-plan.ts'
import { ITEM_ANSWERS } from './handlers.ts'
import type { ItemHandler, ItemWork } from './item-handler.ts'
import { type ItemReads, newDemand, readJob } from './read-job.ts'
import { createTaskQueue, nameOf } from './task-queue.ts'

/** Reads items with one request each, newest first: pending rows, then tasks that are due. */

/** Returns two sources: one for the keys that the newest pages have just brought, and one for all other keys. */
export function createItems(
  context: EngineContext,
  items: DeclaredFeed<ItemFeed>,
  { parents }: Resource,
): Source[] {
  const { store, backoffs, schedule, clock, urgent } = context
  const { resource, id, feed } = items
  const where = { resource, feed: id }
  const handler = ITEM_ANSWERS[feed.stores]
  const { everyRound } = feed
  const keys: Keys = {
    ...where,
    everyRound,
    since: feed.boundBySince ? context.options.since : null,
    items: feed,
  }
  const plan = planOf(context, id, parents, handler)
  const underWay = new Set<string>()
  /** Items of whose list a page was read, and another is to be read. */
  const continued: ItemWork[] = []
  const isWaiting = (scope = '') => backoffs.isWaiting(id, scope)
  const isFree = (task: Task) => !underWay.has(nameOf(task)) && !isWaiting(task.scope)
  const queue = createTaskQueue({
    clock,
    isFree,
    isTimed: schedule.isTimed,
    load: () => dueItems(context, keys),
  })
  const isReady = () => plan?.isReady() ?? true

  const end = ({ task, ticket }: ItemWork) => {
    underWay.delete(nameOf(task))
    if (ticket !== undefined) store.freshness.end(ticket)
  }

  const reads: ItemReads = {
    where,
    feed,
    handler,
    queue,
    over(work, again) {
      const { task } = work
      if (again && work.isUrgent) urgent.inLane('head', () => urgent.add(id, task.key))
      const isKept = again ? work.cursor !== null && !newDemand(context, task) : work.more
      if (isKept && !isWaiting(task.scope))
        continued.push({ ...work, more: false, task: withTries(context, task) })
      else end(work)
    },
  }

  const urgentWaitMs = (key: string): number => {
    const { tryAt = null } = urgentTask(context, id, feed, key) ?? {}
    return tryAt === null ? Number.POSITIVE_INFINITY : store.dueClock.waitMs(tryAt)
  }

  const begin = (taken: Task, isUrgent: boolean): Job => {
    underWay.add(nameOf(taken))
    urgent.keys.get(id)?.delete(taken.key)
    // A row may have made the key due again since its batch was loaded. This read serves that demand too.
    const task = store.tasks.find(taken) ?? taken
    return readJob(context, reads, { ...workOf(items, task), isUrgent })
  }

  return [
    {
      ...where,
      route: feed.read.path,
      lane: 'head',
      next() {
        const urgentKeys = urgent.keys.get(id)
        if (!urgentKeys || urgentKeys.size === 0 || isWaiting()) return undefined
        for (const key of urgentKeys) {
          const task = urgentTask(context, id, feed, key)
          if (task && !mayTry(context, task)) continue
          urgentKeys.delete(key)
          if (!task || !isFree(task)) continue
          queue.drop(task)
          return begin(task, true)
        }
        return undefined
      },
      // What is due is known to the other source, but for keys from before its bound that a webhook has named.
      waitMs: () =>
        Math.max(backoffs.waitMs(id), Math.min(...[...(urgent.keys.get(id) ?? [])].map(urgentWaitMs))),
      isBusy: () => underWay.size > 0,
    },
    {
      ...where,
      route: feed.read.path,
      lane: 'items',
      keys,
      next() {
        // These lists start again at the first page later. Until their tickets end, the store remembers every write.
        for (const work of continued.filter(({ task }) => isWaiting(task.scope))) {
          continued.splice(continued.indexOf(work), 1)
          end(work)
        }
        if (isWaiting() || !isReady()) return undefined
        const page = continued.findIndex(({ task }) => mayTry(context, task))
        const [work] = page < 0 ? [] : continued.splice(page, 1)
        if (work) return readJob(context, reads, work)
        const task = queue.take()
        return task && begin(task, false)
      },
      waitMs: () => backoffs.waitMs(id) || (isReady() ? keysWaitMs(context, keys) : 0),
      isBusy: () => underWay.size > 0,
      replan: () => plan?.invalidate(),
    },
  ]
}

function planOf(
  context: EngineContext,
  id: string,
  parents: Resource['parents'],
  { plan }: ItemHandler,
): BatchPlan | undefined {
  return (
    plan &&
    createBatchPlan(context, {
      canBegin: () => parents.every(context.isFinished),
      batches: () => plan(context, id),
    })
  )
}

/** The first reads and the tasks of a feed that are due, newest first; in the daemon also those due the longest. */
function dueItems(context: EngineContext, { items, ...keys }: Keys): Task[] {
  const { schedule, backoffs } = context
  const limit = schedule.batchSize
  const exceptScopes = backoffs.waitingScopes(keys.feed)
  const dueTasks = (first: TaskOrder) => schedule.dueTasks({ ...keys, limit, first, exceptScopes })
  const newest = dueTasks('newest')
  // Without `others`, only the newest tasks would be read: they may fall due again before the next batch.
  const others = schedule.isTimed && newest.length === limit ? dueTasks('longest-due') : []
  return [...(items ? firstReads(context, keys.feed, items, limit) : []), ...newest, ...others]
}

function workOf(items: DeclaredFeed<ItemFeed>, task: Task): ItemWork {
  return {
    ...items,
    task,
    isUrgent: false,
    more: false,
    ticket: undefined,
    sentAt: undefined,
    cursor: null,
    gathered: [],
    asked: [],
  }
}

/** The task of a key, or the first read of a pending row; undefined when the key was read in the meantime. */
function urgentTask(
  context: EngineContext,
  id: string,
  { pending }: ItemFeed,
  key: string,
): Task | undefined {
  const task = context.store.tasks.find({ feed: id, key })
  if (task) return task.dueAt <= context.store.dueClock.now() ? task : undefined
  if (!pending) return undefined
  const row = context.store.pending.find(pending, key)
  return row && firstRead(id, row)
}
