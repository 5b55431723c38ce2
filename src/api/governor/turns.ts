import Bottleneck from 'bottleneck'
import type { Clock } from '../../base/clock.ts'
import type { Pacing } from './pace.ts'

export interface RequestTurns {
  /** Takes one of the requests that the last turn allows. False when none is left. */
  take(): boolean
  /** Schedules the next turn, which calls `then`, if none is scheduled. Returns whether pacing delays the next turn. */
  ask(rhythm: Pacing, then: () => void): boolean
  /** Undoes a `take`. */
  giveBack(): void
  /** Forgets what the last turn still allows. */
  drop(): void
}

/**
 * A turn allows a batch of requests. Bottleneck runs the turns at intervals of its `minTime`. At most one turn is
 * scheduled at a time, and it belongs to no particular request, so that no requests queue inside Bottleneck.
 */
export function createTurns(clock: Clock): RequestTurns {
  let limiter = new Bottleneck()
  let appliedMinTime = 0
  let wallTime = clock.now()
  let lastTurnAt = Number.NEGATIVE_INFINITY
  let credit = 0
  let asked = false

  const request = ({ minTime, batch, leastMs }: Pacing, then: () => void) => {
    // Bottleneck uses the wall clock. When the clock is set back by an hour, Bottleneck would wait for an hour.
    if (clock.now() < wallTime) {
      limiter = new Bottleneck()
      appliedMinTime = 0
    }
    wallTime = clock.now()
    if (minTime !== appliedMinTime) void limiter.updateSettings({ minTime })
    appliedMinTime = minTime
    void limiter.schedule(async () => {
      // After a late turn, Bottleneck keeps its schedule and may run the next turn too soon after the late one.
      for (let early = earlyMs(leastMs); early > 0; early = earlyMs(leastMs)) {
        await clock.sleep(early)
      }
      asked = false
      lastTurnAt = clock.elapsed()
      credit = batch
      then()
    })
  }

  const earlyMs = (leastMs: number) => Math.ceil(lastTurnAt + leastMs - clock.elapsed())

  return {
    take: () => {
      if (credit === 0) return false
      credit -= 1
      return true
    },
    ask: (rhythm, then) => {
      if (!asked) request(rhythm, then)
      asked = true
      return clock.elapsed() - lastTurnAt < rhythm.minTime
    },
    giveBack: () => {
      credit += 1
    },
    drop: () => {
      credit = 0
    },
  }
}
