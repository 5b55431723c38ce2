import type { Clock } from '../clock.ts'
import type { Log } from '../log.ts'

/**
 * The server's clock, as the `Date` of its answers tells it. This machine's may be wrong by minutes and may jump, so
 * it is only believed until the first answer.
 */
export interface ServerClock {
  /** In ms since the epoch. */
  now(): number
  /** False until an answer has told it. */
  isKnown(): boolean
  /** What an instant of this machine's clock is by the server's. */
  from(ms: number): number
  /** Takes the time from an answer that was received just now; a `Date` is cut to the second. */
  observe(serverMs: number): void
}

/** Clocks run apart by some seconds a day, so what was seen is forgotten after twice this time. */
const MEMORY_MS = 10 * 60_000

/** More than this and the owner should know. */
const WARN_MS = 30_000

export function createServerClock(clock: Clock, log: Log): ServerClock {
  /** By how much the server is ahead of `elapsed`, which does not jump. A `Date` is never ahead: the most is nearest. */
  let ahead: number | undefined
  let aheadBefore: number | undefined
  let since = 0
  let warned = false

  const now = () => {
    const known = Math.max(ahead ?? Number.NEGATIVE_INFINITY, aheadBefore ?? Number.NEGATIVE_INFINITY)
    return known === Number.NEGATIVE_INFINITY ? clock.now() : clock.elapsed() + known
  }

  return {
    now,
    isKnown: () => ahead !== undefined,
    from: ms => ms + now() - clock.now(),
    observe(serverMs) {
      const seen = serverMs - clock.elapsed()
      if (ahead !== undefined && clock.elapsed() - since > MEMORY_MS) {
        aheadBefore = ahead
        ahead = undefined
      }
      if (ahead === undefined) since = clock.elapsed()
      ahead = Math.max(ahead ?? Number.NEGATIVE_INFINITY, seen)
      const apart = now() - clock.now()
      if (Math.abs(apart) > WARN_MS && !warned) {
        log.warn('The clock of this machine differs from that of the API; event times are those of the API', {
          offset_ms: Math.round(apart),
        })
      }
      warned = Math.abs(apart) > WARN_MS
    },
  }
}
