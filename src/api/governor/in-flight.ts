import type { Clock } from '../../base/clock.ts'
import type { DayCount } from './day-count.ts'
import { maxInFlight, type PaceState, paceAfter, type WaitedFor } from './pace.ts'
import type { RequestTurns } from './turns.ts'

/** The permit to send one request. The caller must call `settle` or `cancel` once; further calls have no effect. */
export interface Permit {
  /**
   * Ends the request and learns from its result.
   * @param result `accepted`: an answer without throttling, such as 200 or 404; `throttled`: 429; `other`: the result
   *   says nothing about the rate (timeouts, resets, 5xx)
   */
  settle(result: PermitResult): void
  /** Gives the permit back when no request was sent. */
  cancel(): void
}

export interface PermitResult {
  kind: 'accepted' | 'throttled' | 'other'
  /** For `throttled`: the wait that the API asked for. */
  waitMs?: number | undefined
  /** For `throttled`: see `PaceEvent`. */
  mayBeOfRoute?: boolean
  /** For `accepted`: see `PaceEvent`. */
  isElsewhere?: boolean
}

/** The requests in flight, and the pace that is learned from their results. */
export interface InFlight {
  count(): number
  isFull(): boolean
  pace(): PaceState
  /** @param isPaced whether the request took a turn (`turns.ts`) */
  grant(waitedFor: WaitedFor, isPaced: boolean): Permit
}

export interface InFlightDeps {
  clock: Clock
  /** Returns a number from 0 to below 1, for jitter. */
  random: () => number
  start: PaceState
  turns: RequestTurns
  day: DayCount
  /** Called after each end of a request. */
  onEnd(): void
}

/** What is known about a request when it is sent. */
interface RequestInFlight {
  sentAt: number
  waitedFor: WaitedFor
  /** Other requests in flight when this one is sent. */
  othersInFlight: number
}

export function createInFlight({ clock, random, start, turns, day, onEnd }: InFlightDeps): InFlight {
  let pace = start
  let count = 0

  const learn = (
    { kind, waitMs, mayBeOfRoute = false, isElsewhere = false }: PermitResult,
    { sentAt, waitedFor, othersInFlight: atSend }: RequestInFlight,
  ) => {
    const at = clock.elapsed()
    if (kind === 'accepted')
      pace = paceAfter(pace, { kind, at, sentAt, waitedFor, othersInFlight: atSend, isElsewhere })
    else if (kind === 'other') pace = paceAfter(pace, { kind: 'failed', at, sentAt })
    else {
      const othersInFlight = { atSend, now: count }
      pace = paceAfter(pace, { kind, at, sentAt, othersInFlight, waitMs, mayBeOfRoute, jitter: random() })
    }
  }

  const takeBack = (sentAt: number, isPaced: boolean) => {
    day.add(-1)
    if (isPaced) turns.giveBack()
    pace = paceAfter(pace, { kind: 'unsent', at: clock.elapsed(), grantedAt: sentAt })
  }

  return {
    count: () => count,
    isFull: () => count >= maxInFlight(pace),
    pace: () => pace,
    grant(waitedFor, isPaced) {
      const sent = { sentAt: clock.elapsed(), waitedFor, othersInFlight: count }
      count += 1
      day.add(1)
      pace = paceAfter(pace, { kind: 'granted', at: sent.sentAt })
      let open = true
      const end = (effect: () => void) => {
        if (!open) return
        open = false
        count -= 1
        effect()
        onEnd()
      }
      return {
        settle: result => end(() => learn(result, sent)),
        cancel: () => end(() => takeBack(sent.sentAt, isPaced)),
      }
    },
  }
}
