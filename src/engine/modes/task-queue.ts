import type { Task } from '../../store/sync/tasks/task.ts'
import type { EngineContext } from '../context/context.ts'

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
export function createTaskQueue({ store, clock, schedule }: EngineContext, load: () => readonly Task[]) {
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
export function nameOf({ scope, key }: Task): string {
  return `${scope}\u0000${key}`
}
