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
  /** As `now`, but undefined until an answer has told it. */
  told(): number | undefined
  /** What an instant of this machine's clock is by the server's. */
  from(ms: number): number
  /** Takes the time from an answer that was received just now, so long after it was asked for. */
  observe(serverMs: number, tookMs: number): void
}

/** By how much the server is ahead of `elapsed`, which does not jump: not less than `least` and not more than `most`. */
interface Lead {
  least: number
  most: number
}

/** A `Date` is cut to the second. */
const CUT_MS = 1000
/** How far apart two good clocks may seem to be: some servers make their `Date` once a second. */
const SLACK_MS = 1000
/** Clocks run apart by some seconds a day. */
const DRIFT = 1e-4
/** More than this and the owner should know. */
const WARN_MS = 30_000

export function createServerClock(clock: Clock, log: Log): ServerClock {
  let known: (Lead & { at: number }) | undefined
  /** What one answer said against all before it: one of theirs may be wrong, two that agree are believed. */
  let doubted: Lead | undefined
  let warned = false

  const now = () => (known ? clock.elapsed() + known.least : clock.now())

  const warn = () => {
    const apart = now() - clock.now()
    if (Math.abs(apart) > WARN_MS && !warned) {
      log.warn('The clock of this machine differs from that of the API; event times are those of the API', {
        offset_ms: Math.round(apart),
      })
    }
    warned = Math.abs(apart) > WARN_MS
  }

  return {
    now,
    isKnown: () => known !== undefined,
    told: () => (known ? now() : undefined),
    from: ms => ms + now() - clock.now(),
    observe(serverMs, tookMs) {
      const at = clock.elapsed()
      const seen = { least: serverMs - at, most: serverMs + CUT_MS - (at - tookMs) }
      const before = known && widened(known, (at - known.at) * DRIFT)
      if (before && !agree(before, seen) && !(doubted && agree(doubted, seen))) {
        doubted = seen
        return
      }
      known = { ...(before && agree(before, seen) ? narrowed(before, seen) : seen), at }
      doubted = undefined
      warn()
    },
  }
}

function agree(one: Lead, other: Lead): boolean {
  return one.least <= other.most + SLACK_MS && other.least <= one.most + SLACK_MS
}

/** What both allow; where that is nothing, the newer is nearer. */
function narrowed(before: Lead, seen: Lead): Lead {
  const least = Math.max(before.least, seen.least)
  const most = Math.min(before.most, seen.most)
  return least <= most ? { least, most } : seen
}

function widened({ least, most }: Lead, by: number): Lead {
  return { least: least - by, most: most + by }
}
