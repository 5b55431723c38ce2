import type { Task } from '../../../store/sync/tasks/task.ts'
import type { EngineContext } from '../../context/context.ts'
import type { Keys } from '../../context/job.ts'
import { KEY_REQUESTS, type KeyEvidence, MOST_IDS } from './key-requests.ts'

/** The due tasks of a feed that is read by key. Those that have been due the longest come first. */
export interface KeyQueue {
  /** The tasks of the next request: all of one scope, at most as many as one request may name. */
  take(): Task[] | undefined
}

export interface KeyQueueOptions {
  keys: Keys
  evidence: KeyEvidence
  /** False for a key that is being read, or whose scope waits. */
  isFree(task: Task): boolean
}

/** How many tasks are loaded from the database at a time. */
const BATCH_SIZE = 2 * MOST_IDS

export function createKeyQueue(context: EngineContext, options: KeyQueueOptions): KeyQueue {
  const { keys, evidence, isFree } = options
  const { store, schedule, backoffs } = context
  let batch: Task[] = []

  const load = (): Task[] =>
    schedule.dueTasks({
      ...keys,
      limit: BATCH_SIZE,
      first: 'longest-due',
      exceptScopes: backoffs.waitingScopes(keys.feed),
    })

  /**
   * False if the task was removed, or its due time has changed, since the batch was loaded. If it is due again, a later
   * batch has it.
   */
  const isStillDue = (task: Task) => store.tasks.find(task)?.dueAt === task.dueAt

  /** Loads the next tasks first if none is left. */
  const isEmpty = (): boolean => {
    batch = batch.filter(isFree)
    if (batch.length === 0) batch = load().filter(isFree)
    return batch.length === 0
  }

  return {
    take() {
      while (!isEmpty()) {
        const [next] = batch
        const tasks = batch
          .filter(({ scope }) => scope === next?.scope)
          .slice(0, KEY_REQUESTS[evidence.by].most)
        batch = batch.filter(task => !tasks.includes(task))
        const due = tasks.filter(isStillDue)
        if (due.length > 0) return due
      }
      return undefined
    },
  }
}
