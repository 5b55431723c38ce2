import type { Clock } from '../../../clock.ts'
import type { Task } from '../../../store/sync/tasks.ts'

/**
 * The order in which the keys of a feed are read: in batches, newest first. A batch is read completely before the next
 * one, so every key has its turn even if more falls due than can be read. Keys that came since alternate with it, since
 * a batch may take minutes.
 */
export interface TaskQueue {
  /** The next task that can be read now. */
  take(): Task | undefined
  /** Leaves out a key that is read out of order. */
  drop(task: Task): void
  /** False while a task can be read. Looks for new ones first. */
  isEmpty(): boolean
  succeeded(): void
  failed(): void
  /** Failures in a row. */
  failures(): number
}

export interface TaskQueueDeps {
  clock: Pick<Clock, 'elapsed'>
  /** The keys that are due, newest first, at most a batch. */
  load(): readonly Task[]
  /** False for a key that is being read, or whose scope waits. */
  isFree(task: Task): boolean
  /** In the daemon new keys fall due while a batch is read. */
  isTimed: boolean
}

/** After this many failures in a row the oldest go first: all of the newest may be bad. */
const NEIGHBOURS_IN_A_ROW = 5

/** How often new keys are looked for while a batch is read. */
const LOOK_MS = 2000

export function createTaskQueue({ clock, load, isFree, isTimed }: TaskQueueDeps): TaskQueue {
  let batch: Task[] = []
  /** Keys that came since the batch. */
  let arrived: Task[] = []
  let lookedAt = Number.NEGATIVE_INFINITY
  let isTurnOfArrived = false
  let failures = 0

  const freeTasks = (): Task[] => {
    lookedAt = clock.elapsed()
    return [
      ...new Map(
        load()
          .filter(isFree)
          .map(task => [nameOf(task), task]),
      ).values(),
    ]
  }

  const refill = () => {
    batch = freeTasks()
    arrived = []
  }

  const lookForArrived = () => {
    const known = new Set(batch.map(nameOf))
    arrived = freeTasks().filter(task => !known.has(nameOf(task)))
  }

  const takeAny = (): Task | undefined => {
    isTurnOfArrived = !isTurnOfArrived
    const task = isTurnOfArrived ? arrived.shift() : undefined
    return task ?? (failures < NEIGHBOURS_IN_A_ROW ? batch.shift() : batch.pop()) ?? arrived.shift()
  }

  return {
    take() {
      if (batch.length === 0) refill()
      else if (isTimed && clock.elapsed() - lookedAt >= LOOK_MS) lookForArrived()
      let task = takeAny()
      while (task && !isFree(task)) task = takeAny()
      return task
    },
    drop(task) {
      const isOther = (one: Task) => nameOf(one) !== nameOf(task)
      batch = batch.filter(isOther)
      arrived = arrived.filter(isOther)
    },
    isEmpty() {
      if (batch.length === 0) refill()
      return batch.length === 0
    },
    succeeded() {
      failures = 0
    },
    failed() {
      failures += 1
    },
    failures: () => failures,
  }
}

/** Identifies a task within its feed. */
export function nameOf({ scope, key }: Task): string {
  return `${scope}\u0000${key}`
}
