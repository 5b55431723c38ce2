import type { Task } from '../../store/sync/tasks/task.ts'
import type { EngineContext } from '../context/context.ts'
import type { Reads, Source } from '../context/job.ts'

/**
 * A failed request is stored in the rows that it reads, with the time of its next try. So these rows fall due like any
 * others, and a restart forgets no failure.
 */

/** @returns how many requests in a row have failed before this one */
export function triesOf(reads: Reads): number {
  return 'segment' in reads ? reads.segment.tries : Math.max(...reads.tasks.map(({ tries }) => tries))
}

/** Stores a failed request and when it is made again, in `ms`. Call it in a transaction. */
export function tryAgain({ store }: Pick<EngineContext, 'store'>, reads: Reads, ms: number): void {
  const [now, at] = [store.dueClock.now(), store.dueClock.after(ms)]
  if ('segment' in reads) store.segments.tryAgain(reads.segment.id, at)
  else for (const task of reads.tasks) store.tasks.tryAgain(task, { now, at })
}

/** Clears the failed tries, after an answer or a final failure. Call it in a transaction. */
export function endTries({ store }: Pick<EngineContext, 'store'>, reads: Reads): void {
  if (triesOf(reads) === 0) return
  if ('segment' in reads) store.segments.settled(reads.segment.id)
  else for (const task of reads.tasks) store.tasks.settled(task)
}

/** @returns the task as it was taken, with the tries that are stored now */
export function withTries({ store }: Pick<EngineContext, 'store'>, task: Task): Task {
  const { tries = 0, tryAt = null } = store.tasks.find(task) ?? {}
  return { ...task, tries, tryAt }
}

/** Whether a request for a task may be made: it has not failed, or its wait is over. */
export const mayTry = ({ store }: Pick<EngineContext, 'store'>, { tryAt }: Task): boolean =>
  tryAt === null || store.dueClock.waitMs(tryAt) === 0

/**
 * Whether a failed request of a source waits until it is made again. In a backfill, the requests of a feed or scope that
 * waits until the end of the run are not made again.
 */
export function hasWaitingRetry(
  { store, backoffs }: Pick<EngineContext, 'store' | 'backoffs'>,
  { feed, keys }: Pick<Source, 'feed' | 'keys'>,
): boolean {
  const { dueClock, segments, tasks } = store
  const query = { ...keys, now: dueClock.now(), exceptScopes: backoffs.waitingScopes(feed) }
  const isInRun = (scope = '') => Number.isFinite(backoffs.waitMs(feed, scope))
  return (
    segments
      .of(feed)
      .some(({ tryAt, scope }) => tryAt !== null && dueClock.waitMs(tryAt) > 0 && isInRun(scope)) ||
    (isInRun() && tasks.nextTry(feed, query) !== undefined)
  )
}
