import { fillPath } from '../../../api/request.ts'
import type { ParleyError } from '../../../base/errors.ts'
import type { DeclaredFeed } from '../../../catalog/feeds.ts'
import type { ItemFeed, Resource } from '../../../declare/resource.ts'
import type { TaskOrder } from '../../../store/sync/tasks/due-tasks.ts'
import type { Task } from '../../../store/sync/tasks/task.ts'
import type { EngineContext } from '../../context/context.ts'
import type { Keys, Reply, Source } from '../../context/job.ts'
import { firstRead, firstReads } from '../../due/first-reads.ts'
import { mayTry } from '../../due/retries.ts'
import { type BatchPlan, createPlanInBatches } from '../../scheduler/batch-plan.ts'
import { createPageGuard } from '../page-guard.ts'
import { putOff } from '../put-off.ts'
import { refusalError } from '../refusals.ts'
import { refuseTasks } from '../refused-scope.ts'
import { createSingleReads } from '../single-reads.ts'
import { settingAnswer } from './execution-setting.ts'
import { type ItemHandler, type ItemWork, rejectScope } from './item-handler.ts'
import { bodyAnswer } from './message-body.ts'
import { resultsAnswer } from './playbook-results.ts'
import { linksAnswer } from './record-links.ts'
import { transcriptAnswer } from './transcript.ts'
import { rowAnswer } from './whole-record.ts'

/** Reads items with one request each, newest first: pending rows, then tasks that are due. */

/** The handler for each kind of item. */
export const ITEM_HANDLERS: Readonly<Record<ItemFeed['stores'], ItemHandler>> = {
  row: rowAnswer,
  body: bodyAnswer,
  transcript: transcriptAnswer,
  results: resultsAnswer,
  setting: settingAnswer,
  links: linksAnswer,
}

/** Returns two sources: one for the keys that the newest pages have just brought, and one for all other keys. */
export function createItems(
  context: EngineContext,
  items: DeclaredFeed<ItemFeed>,
  { parents }: Resource,
): Source[] {
  const { store, backoffs, urgent } = context
  const { resource, id, feed } = items
  const where = { resource, feed: id }
  const route = feed.read.path
  const handler = ITEM_HANDLERS[feed.stores]
  const { everyRound, boundBySince, expected } = feed
  const since = boundBySince ? context.options.since : null
  const keys: Keys = { ...where, everyRound, since, items: feed }
  const plan = planOf(context, id, parents, handler)

  const { source, readNow } = createSingleReads<ItemWork>(context, {
    where: items,
    route,
    lane: 'items',
    expected,
    keys,
    isReady: () => plan?.isReady() ?? true,
    load: () => dueItems(context, keys),
    most: 1,
    workOn([task]) {
      urgent.keys.get(id)?.delete(task.key)
      return workOf(items, task, false)
    },
    tasksOf: ({ task }) => [task],
    ask: work => ({
      ...askItem(context, handler, work),
      rest(again) {
        const { task, isUrgent, cursor, more } = work
        if (again && isUrgent) urgent.inLane('head', () => urgent.add(id, task.key))
        const isKept = again ? cursor !== null && !newDemand(context, task) : more
        return isKept ? [work] : []
      },
    }),
    ended({ ticket }) {
      if (ticket !== undefined) store.freshness.end(ticket)
    },
    ...(plan && { replan: plan.invalidate }),
  })

  const urgentWaitMs = (key: string): number => {
    const { tryAt = null } = urgentTask(context, id, feed, key) ?? {}
    return tryAt === null ? Number.POSITIVE_INFINITY : store.dueClock.waitMs(tryAt)
  }
  const urgentSource: Source = {
    ...where,
    route,
    lane: 'head',
    next() {
      const urgentKeys = urgent.keys.get(id)
      if (!urgentKeys || urgentKeys.size === 0 || backoffs.isWaiting(id)) return undefined
      for (const key of urgentKeys) {
        const task = urgentTask(context, id, feed, key)
        if (task && !mayTry(context, task)) continue
        urgentKeys.delete(key)
        const job = task && readNow(task, () => workOf(items, task, true))
        if (job) return job
      }
      return undefined
    },
    // The other source knows what is due. Only urgent keys whose failed read waits for its next try count here.
    waitMs: () =>
      Math.max(backoffs.waitMs(id), Math.min(...[...(urgent.keys.get(id) ?? [])].map(urgentWaitMs))),
    isBusy: source.isBusy,
  }
  return [urgentSource, source]
}

/** Requests an item, or one page of the item's list. */
function askItem(context: EngineContext, handler: ItemHandler, work: ItemWork) {
  const { store } = context
  const { id, feed, task } = work
  work.more = false
  work.guard.asking(work.cursor)
  return {
    request: {
      route: feed.read.path,
      path: fillPath(feed.read.path, { key: task.key, ...handler.params?.(task) }),
      ...(handler.query ? { query: handler.query(work) } : {}),
    },
    answer(value: unknown, reply: Reply) {
      const demand = newDemand(context, task)
      work.sentAt ??= reply.sentAt
      store.rejects.resolve(id, rejectScope(task), work.sentAt, context.now())
      handler.answer(context, work, value, reply)
      if (demand) store.tasks.demand(demand)
    },
    refused(status: number, message: string) {
      const demand = newDemand(context, task)
      const meaning = feed.expected?.[status]
      const list = meaning === 'unavailable' ? handler.list?.(work) : undefined
      if (list) refuseTasks(context, { where: work, scope: task.scope, tasks: [task], status, message }, list)
      else if (meaning === undefined || meaning === 'unavailable') throw refusalError(status, message)
      else {
        // There is nothing to store, whatever an earlier answer was.
        if (!handler.staysRejected?.(context, work, meaning))
          store.rejects.resolve(id, rejectScope(task), '~', context.now())
        handler.absent(context, work, meaning)
      }
      if (demand) store.tasks.demand(demand)
    },
    failed(error: ParleyError) {
      putOff(context, work, [task], error)
      handler.failed?.(context, work, error)
    },
  }
}

/**
 * The stored task, if the key has become due again since this task was taken. The answer may be older than the reason
 * for that, so the key is read once more.
 */
function newDemand({ store }: EngineContext, task: Task): Task | undefined {
  const current = store.tasks.find(task)
  return current && current.dueAt !== task.dueAt && current.dueAt <= store.dueClock.now()
    ? current
    : undefined
}

function planOf(
  context: EngineContext,
  id: string,
  parents: Resource['parents'],
  { plan }: ItemHandler,
): BatchPlan | undefined {
  return (
    plan &&
    createPlanInBatches(context, {
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

function workOf(items: DeclaredFeed<ItemFeed>, task: Task, isUrgent: boolean): ItemWork {
  return {
    ...items,
    task,
    isUrgent,
    more: false,
    ticket: undefined,
    sentAt: undefined,
    cursor: null,
    gathered: [],
    hasRejects: false,
    guard: createPageGuard(),
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
