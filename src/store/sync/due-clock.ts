import { type Clock, isoInstant, MINUTE_MS } from '../../base/clock.ts'
import { META } from './meta.ts'
import type { State } from './resource-state.ts'

/** A smaller step back is an ordinary correction of the clock. */
const JUMP_MS = 5000

/** Due times may be stored while the noted time is at most this old. The daemon notes the time each minute. */
const MOST_NOTE_AGE_MS = 5 * MINUTE_MS

/**
 * The clock of due times, or due clock. It is ahead of this machine's clock by as much as that clock was ever set back.
 * So the due clock never goes back, and a due time that was stored while the machine's clock was wrong comes no later
 * than it should. A jump changes one number in `sync_meta` and no due time.
 */
export function createDueClock(clock: Clock, { meta, setMeta }: Pick<State, 'meta' | 'setMeta'>) {
  const noted = meta(META.clock)
  /** What this machine's clock showed at `measuredAt`; at first what the previous process noted. */
  let shown = noted === undefined ? clock.now() : Date.parse(noted)
  let measuredAt = clock.elapsed()
  let aheadMs = Number(meta(META.dueAhead) ?? 0)

  const now = () => {
    const [read, elapsed] = [clock.now(), clock.elapsed()]
    const behindMs = shown + elapsed - measuredAt - read
    if (behindMs >= JUMP_MS) aheadMs += Math.round(behindMs)
    shown = read
    measuredAt = elapsed
    return read + aheadMs
  }
  const note = () => {
    now()
    setMeta(META.clock, isoInstant(shown))
    setMeta(META.dueAhead, String(aheadMs))
  }
  /** Read from the database each time, since the transaction of an earlier note may have been rolled back. */
  const isNoted = () =>
    meta(META.dueAhead) === String(aheadMs) &&
    Math.abs(shown - Date.parse(meta(META.clock) ?? '')) <= MOST_NOTE_AGE_MS

  return {
    /** Now, to compare with due times. */
    now: () => isoInstant(now()),
    /** The due time of a read that may be made in `ms`. Call it in the transaction that stores the due time. */
    after(ms: number) {
      const dueAt = now() + ms
      if (!isNoted()) note()
      return isoInstant(dueAt)
    },
    /** How long until a due time, in ms; 0 when it has passed. */
    waitMs: (dueAt: string) => Math.max(0, Date.parse(dueAt) - now()),
    /**
     * Stores both clocks, so that a later process detects that the machine's clock was set back. Call it in a
     * transaction.
     */
    note,
  }
}
