import type { Task } from '../../../store/sync/tasks/task.ts'
import type { EngineContext } from '../../context/context.ts'
import { nameOf } from '../single-reads.ts'

/** After this many failures in a row, the batch is read from its end: all of the newest keys may be bad. */
const NEIGHBOURS_IN_A_ROW = 5

/** How long to wait before looking again for new keys while a batch is read, in ms. */
const LOOK_MS = 2000

/**
 * The order in which the keys of a feed are read: in batches, newest first. A batch is read completely before the next
 * one, so every key has its turn even if more keys fall due than can be read. A batch may take minutes. So keys that
 * fall due after it was loaded alternate with its keys: in the daemon, new keys fall due while a batch is read.
 * @param load loads a batch of keys that are due, newest first
 */
export function createTaskQueue(
  { clock, schedule }: Pick<EngineContext, 'clock' | 'schedule'>,
  load: () => readonly Task[],
) {
  let batch: Task[] = []
  /** Keys that fell due after the batch was loaded. */
  let arrived: Task[] = []
  let lookedAt = Number.NEGATIVE_INFINITY
  let isTurnOfArrived = false

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
     * The next task that can be read now.
     * @param isFree false for a key that is being read, or whose scope waits
     * @param failures failed requests in a row
     */
    take(isFree: (task: Task) => boolean, failures: number): Task | undefined {
      if (batch.length === 0) {
        batch = freeTasks(isFree)
        arrived = []
      } else if (schedule.isTimed && clock.elapsed() - lookedAt >= LOOK_MS) {
        const known = new Set(batch.map(nameOf))
        arrived = freeTasks(isFree).filter(task => !known.has(nameOf(task)))
      }
      let task = takeAny(failures)
      while (task && !isFree(task)) task = takeAny(failures)
      return task
    },
    /** Leaves out a key that is read out of order. */
    drop(task: Task) {
      const isOther = (one: Task) => nameOf(one) !== nameOf(task)
      batch = batch.filter(isOther)
      arrived = arrived.filter(isOther)
    },
  }
}
