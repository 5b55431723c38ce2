import { type Clock, isoInstant } from '../clock.ts'
import type { Store } from '../store/store.ts'
import { META } from '../store/sync/meta.ts'

/**
 * Due times are noted by this machine's clock. When that was ahead and is set back, they move back with it: else
 * nothing would be read before the wrong time has come.
 */

type Deps = { clock: Clock; store: Pick<Store, 'state' | 'tasks' | 'segments' | 'transaction'> }

/** Less than this is no jump, but a clock that is kept right. */
const JUMP_MS = 5000

/** Called at the start of a process, it compares with the clock that the one before has noted; later with its own. */
export function createClockFollower({ clock, store }: Deps): () => Promise<void> {
  const noted = store.state.meta(META.clock)
  /** What the clock would say by now, had it gone on evenly. */
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

/**
 * Before anything is noted by a clock that may be ahead: a process that is killed soon after leaves word of that clock.
 */
export async function noteClock({ clock, store }: Deps): Promise<void> {
  await store.transaction(() => store.state.setMeta(META.clock, isoInstant(clock.now())))
}
