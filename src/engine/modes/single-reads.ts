import type { FeedName } from '../../catalog/feeds.ts'
import type { StatusMeanings } from '../../declare/resource.ts'
import type { Task } from '../../store/sync/tasks/task.ts'
import type { EngineContext } from '../context/context.ts'
import type { Job, Keys, Lane, Source } from '../context/job.ts'
import { keysWaitMs } from '../due/due.ts'
import { mayTry, withTries } from '../due/retries.ts'
import { MOST_FAILURES_IN_A_ROW } from './narrowing.ts'

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

/** After this many failures in a row, the batch is read from its end: all of the newest keys may be bad. */
const NEIGHBOURS_IN_A_ROW = 5

/** How long to wait before looking again for new keys while a batch is read, in ms. */
const LOOK_MS = 2000

/**
 * The order in which the keys of a feed are read: in batches, each read completely before the next one, so every key has
 * its turn even if more keys fall due than can be read. A batch may take minutes. So keys that fall due after it was
 * loaded alternate with its keys: in the daemon, new keys fall due while a batch is read.
 * @param load loads a batch of keys that are due
 */
function createTaskQueue({ store, clock, schedule }: EngineContext, load: () => readonly Task[]) {
  let batch: Task[] = []
  /** Keys that fell due after the batch was loaded. */
  let arrived: Task[] = []
  let lookedAt = Number.NEGATIVE_INFINITY
  let isTurnOfArrived = false

  /**
   * False if the task was removed, or its due time has changed, since the batch was loaded. If it is due again, a later
   * batch has it. A first read of a row has no task yet.
   */
  const isUnchanged = (task: Task) => (store.tasks.find(task)?.dueAt ?? '') === task.dueAt

  const freeTasks = (isFree: (task: Task) => boolean): Task[] => {
    lookedAt = clock.elapsed()
    return [
      ...new Map(
        load()
          .filter(isFree)
          .map(task => [nameOf(task), task]),
      ).values(),
    ]
  }

  const takeAny = (failures: number): Task | undefined => {
    isTurnOfArrived = !isTurnOfArrived
    const task = isTurnOfArrived ? arrived.shift() : undefined
    return task ?? (failures < NEIGHBOURS_IN_A_ROW ? batch.shift() : batch.pop()) ?? arrived.shift()
  }

  return {
    /**
     * The tasks of the next request, all of one scope; none when no task can be read now.
     * @param isFree false for a key that is being read, or whose scope waits
     * @param failures failed requests in a row
     * @param most how many tasks one request may have
     */
    take(isFree: (task: Task) => boolean, failures: number, most: number): Task[] {
      const isReadable = (task: Task) => isFree(task) && isUnchanged(task)
      const takeReadable = () => {
        let task = takeAny(failures)
        while (task && !isReadable(task)) task = takeAny(failures)
        return task
      }
      if (schedule.isTimed && batch.length > 0 && clock.elapsed() - lookedAt >= LOOK_MS) {
        const known = new Set(batch.map(nameOf))
        arrived = freeTasks(isFree).filter(task => !known.has(nameOf(task)))
      }
      let first = takeReadable()
      if (!first) {
        batch = freeTasks(isFree)
        first = takeReadable()
      }
      if (!first) return []
      const { scope } = first
      const others = most > 1 ? batch.filter(task => task.scope === scope).slice(0, most - 1) : []
      if (others.length > 0) batch = batch.filter(task => !others.includes(task))
      return [first, ...others.filter(isReadable)]
    },
    /** Leaves out a key that is read out of order. */
    drop(task: Task) {
      const isOther = (one: Task) => nameOf(one) !== nameOf(task)
      batch = batch.filter(isOther)
      arrived = arrived.filter(isOther)
    },
  }
}

/** Identifies a task within its feed. */
function nameOf({ scope, key }: Task): string {
  return `${scope}\u0000${key}`
}
