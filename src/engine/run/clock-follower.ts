import { type Clock, isoInstant } from '../../base/clock.ts'
import type { Store } from '../../store/store.ts'
import { META } from '../../store/sync/meta.ts'

/**
 * Due times are stored by this machine's clock. When that clock was ahead and is set back, the stored due times are
 * moved back by the same amount. Otherwise nothing would be read until the clock reaches those times again.
 */

type Deps = { clock: Clock; store: Pick<Store, 'state' | 'tasks' | 'segments' | 'transaction'> }

/** A smaller difference is an ordinary correction of the clock, and moves no due time. */
const JUMP_MS = 5000

/**
 * Returns a function that moves the due times back if the clock was set back. Its first call compares this machine's
 * clock with the time that the previous process stored. Each later call compares it with the time of the previous call.
 */
export function createClockFollower({ clock, store }: Deps): () => Promise<void> {
  const noted = store.state.meta(META.clock)
  /** What the clock showed at `measuredAt`; at first the time that the previous process stored last. */
  let expected = noted === undefined ? clock.now() : Date.parse(noted)
  let measuredAt = clock.elapsed()
  return async () => {
    const [now, elapsed] = [clock.now(), clock.elapsed()]
    const behindMs = expected + elapsed - measuredAt - now
    if (behindMs >= JUMP_MS) {
      await store.transaction(() => {
        for (const dueTimes of [store.tasks, store.segments]) dueTimes.moveBack(behindMs, isoInstant(now))
      })
    }
    // Only now: if the transaction fails, the next call finds the same jump.
    expected = now
    measuredAt = elapsed
  }
}

/** Stores the clock's time, so that a later process sees if the clock was ahead. Call it before storing due times. */
export async function noteClock({ clock, store }: Deps): Promise<void> {
  await store.transaction.aside(() => store.state.setMeta(META.clock, isoInstant(clock.now())))
}
