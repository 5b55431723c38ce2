import type { ParleyError } from '../errors.ts'
import type { Task } from '../store/tasks.ts'
import type { EngineContext, FeedName } from './context.ts'
import { aloneBackoffMs } from './narrowing.ts'

/**
 * Reports keys that could not be read. Each stays a task with a wait of its own, which grows, so that neither this run
 * nor a restart forgets it and no other key waits for it.
 */
export function putOff(
  context: EngineContext,
  where: FeedName,
  tasks: readonly Task[],
  error: ParleyError,
): void {
  for (const task of tasks) {
    const attempts = task.attempts + 1
    context.store.tasks.done(task, {
      round: context.round(where.resource),
      dueAt: context.after(aloneBackoffMs(attempts)),
      attempts,
      waiting: true,
    })
  }
  context.fail(where, error)
}
