import { type Clock, isoInstant } from '../clock.ts'
import type { Store } from '../store/store.ts'
import { META } from '../store/sync/meta.ts'

/**
 * Due times are stored by this machine's clock. When the clock was ahead and is set back, they move back with it.
 * Otherwise nothing would be read until the clock reaches the wrong time again.
 */

type Deps = { clock: Clock; store: Pick<Store, 'state' | 'tasks' | 'segments' | 'transaction'> }

/** A smaller difference is an ordinary correction of the clock. */
const JUMP_MS = 5000

/**
 * The first call compares this machine's clock with the time that the previous process stored; later calls compare it
 * with the time of the previous call.
 */
export function createClockFollower({ clock, store }: Deps): () => Promise<void> {
  const noted = store.state.meta(META.clock)
  /** The clock at `measuredAt`; at first the value that the previous process noted last. */
  let expected = noted === undefined ? clock.now() : Date.parse(noted)
  let measuredAt = clock.elapsed()
  return async () => {
    const behindMs = expected + clock.elapsed() - measuredAt - clock.now()
    expected = clock.now()
    measuredAt = clock.elapsed()
    if (behindMs < JUMP_MS) return
    await store.transaction(() => {
      for (const dueTimes of [store.tasks, store.segments])
        dueTimes.moveBack(behindMs, isoInstant(clock.now()))
    })
  }
}

/** Called before any due time is stored, so that a later process knows that this clock was ahead. */
export async function noteClock({ clock, store }: Deps): Promise<void> {
  await store.transaction(() => store.state.setMeta(META.clock, isoInstant(clock.now())))
}
