import { MINUTE_MS } from '../../base/clock.ts'
import type { ResourceName } from '../../declare/resource-names.ts'
import type { Task } from '../../store/sync/tasks/task.ts'
import type { EngineContext } from '../context/context.ts'

/** The API may show a change a little late. These waits are for retries, so `sync.interval_scale` does not apply. */
const ASKED_AGAIN_AFTER_MS = [5_000, 30_000, 5 * MINUTE_MS]

/** The `attempts` of a task whose next answer is accepted. */
export const ACCEPTED = ASKED_AGAIN_AFTER_MS.length

/**
 * Schedules another read of a task whose answer does not show a known change. The answer that follows the last wait is
 * accepted. `waiting`: a backfill reads it once in each round, without regard to its due time.
 */
export function askLaggingAgain(
  { store, rounds }: EngineContext,
  resource: ResourceName,
  task: Task,
  { waiting = false } = {},
): void {
  const afterMs = ASKED_AGAIN_AFTER_MS[task.attempts]
  if (afterMs === undefined) {
    store.tasks.remove(task)
    return
  }
  store.tasks.done(task, {
    round: rounds.number(resource),
    dueAt: store.dueClock.after(afterMs),
    attempts: task.attempts + 1,
    waiting,
  })
}
