import type { FeedName } from '../../catalog/feeds.ts'
import type { StatusMeanings } from '../../declare/resource.ts'
import type { Task } from '../../store/sync/tasks/task.ts'
import type { EngineContext } from '../context/context.ts'
import type { Job, Keys, Lane, Source } from '../context/job.ts'
import { keysWaitMs } from '../due/due.ts'
import { mayTry, withTries } from '../due/retries.ts'
import { MOST_FAILURES_IN_A_ROW } from './narrowing.ts'
import { createTaskQueue, nameOf } from './task-queue.ts'

/**
 * The source of all reads by key, of one key or of many in a request. For every use, this file tracks the keys under
 * way, continues work with its next page, and waits when the whole feed waits. A use says which keys come next, what a
 * request asks, and what its outcome means.
 */
export interface KeyUse<Work> {
  where: FeedName
  route: string
  lane: Lane
  /** Statuses with a declared meaning. */
  expected: StatusMeanings | undefined
  keys: Keys
  /** False until the tasks of this run are written. */
  isReady(): boolean
  /** Loads a batch of tasks that are due. */
  load(): readonly Task[]
  /** How many tasks one request may have. */
  most: number
  /** The work on the tasks of one request: at least one, and all of one scope. */
  workOn(tasks: readonly [Task, ...Task[]]): Work
  tasksOf(work: Work): readonly Task[]
  ask(work: Work): AskingKeys<Work>
  /** Called when a piece of work has nothing left to read. */
  ended?(work: Work): void
  replan?(): void
}

interface AskingKeys<Work> extends Pick<Job, 'request' | 'answer' | 'refused' | 'failed' | 'isPart'> {
  /**
   * The work to do before other keys, such as the next page. Called when the job is over.
   * @param again true when the request was neither answered nor given up
   */
  rest(again: boolean): readonly Work[]
}

export interface SingleReads<Work> {
  source: Source
  /** Begins to read a key out of order; undefined for a key that is being read, or whose scope waits. */
  readNow(task: Task, work: () => Work): Job | undefined
}

export function createSingleReads<Work>(context: EngineContext, use: KeyUse<Work>): SingleReads<Work> {
  const { backoffs } = context
  const { where, route, lane, expected, keys, tasksOf, replan } = use
  const { resource, id: feed } = where
  const queue = createTaskQueue(context, use.load)
  const underWay = new Set<string>()
  /** Work that continues with its next request, and its tasks with the tries that are stored. */
  const continued: { work: Work; tasks: readonly Task[] }[] = []
  let failures = 0
  const isWaiting = (scope = '') => backoffs.isWaiting(feed, scope)
  const isFree = (task: Task) => !underWay.has(nameOf(task)) && !isWaiting(task.scope)
  const scopeOf = (work: Work) => tasksOf(work)[0]?.scope ?? ''

  const end = (work: Work) => {
    for (const task of tasksOf(work)) underWay.delete(nameOf(task))
    use.ended?.(work)
  }

  const begin = (work: Work, tasks = tasksOf(work)): Job => {
    const scope = scopeOf(work)
    for (const task of tasks) underWay.add(nameOf(task))
    const { rest, ...asking } = use.ask(work)
    return {
      resource,
      feed,
      scope,
      expected,
      reads: { tasks },
      ...asking,
      answer(value, reply) {
        asking.answer(value, reply)
        failures = 0
      },
      refused(status, message) {
        asking.refused(status, message)
        failures = 0
      },
      failed(error) {
        failures += 1
        if (failures >= MOST_FAILURES_IN_A_ROW) backoffs.failed(feed, '')
        asking.failed(error)
      },
      over(again) {
        const left = rest(again)
        if (left.length === 0 || isWaiting(scope)) end(work)
        else
          continued.unshift(
            ...left.map(one => ({ work: one, tasks: tasksOf(one).map(task => withTries(context, task)) })),
          )
      },
    }
  }

  const source: Source = {
    resource,
    feed,
    route,
    lane,
    keys,
    next() {
      // Work whose scope waits begins again later: the ticket of a list of several pages must not outlast the wait.
      for (const one of continued.filter(({ work }) => isWaiting(scopeOf(work)))) {
        continued.splice(continued.indexOf(one), 1)
        end(one.work)
      }
      if (isWaiting() || !use.isReady()) return undefined
      const index = continued.findIndex(({ tasks }) => tasks.every(task => mayTry(context, task)))
      const [next] = index < 0 ? [] : continued.splice(index, 1)
      if (next) return begin(next.work, next.tasks)
      const [first, ...others] = queue.take(isFree, failures, use.most)
      return first && begin(use.workOn([first, ...others]))
    },
    waitMs: () => backoffs.waitMs(feed) || (use.isReady() ? keysWaitMs(context, keys) : 0),
    isBusy: () => underWay.size > 0,
    ...(replan && { replan }),
  }
  return {
    source,
    readNow(task, work) {
      if (!isFree(task)) return undefined
      queue.drop(task)
      return begin(work())
    },
  }
}
