import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'

/** Bounds of how far the server's clock is ahead of `elapsed`, which does not jump. */
interface Lead {
  least: number
  most: number
}

/** A `Date` header is cut to the second. */
const CUT_MS = 1000
/** The bounds of two correct answers may disagree by this much: some servers update `Date` only once a second. */
const SLACK_MS = 1000
/** How fast the two clocks may drift apart: 1e-4 is about 9 seconds a day. */
const DRIFT = 1e-4
/**
 * A clock that is further ahead than the confirmed one replaces it only once this many answers in a row contradict the
 * confirmed one. Some replicas may be permanently ahead, and what was read by their clock would seem to lie in the
 * future.
 */
const AHEAD_ANSWERS = 15
/** A larger difference is logged. */
const WARN_MS = 30_000

export type ServerClock = ReturnType<typeof createServerClock>

/**
 * The server's clock, from the `Date` header of its answers. This machine's clock may be wrong by minutes and may jump,
 * so it is used only until the first answer.
 */
export function createServerClock(clock: Clock, log: Log) {
  let known: (Lead & { at: number; isConfirmed: boolean }) | undefined
  /**
   * The bounds of the answers since the last that agreed with `known`. A single answer may be wrong, so `known` changes
   * only when another answer confirms it.
   */
  let contradicting: readonly Lead[] = []
  let warned = false
  let isAssumed = false

  const now = () => (known ? clock.elapsed() + known.least : clock.now())

  const warn = () => {
    const apart = now() - clock.now()
    if (Math.abs(apart) > WARN_MS && !warned) {
      log.warn("The clock of this machine differs from the API's clock; correct it, for example with NTP", {
        offset_ms: Math.round(apart),
      })
    }
    warned = Math.abs(apart) > WARN_MS
  }

  return {
    /** In ms since the epoch. */
    now,
    /** True after the first answer with a `Date` header, and after `assume`. */
    isKnown: () => known !== undefined || isAssumed,
    /** Uses this machine's clock instead, since an answer had no `Date` header. `nowIfKnown` stays undefined. */
    assume() {
      isAssumed = true
    },
    /** As `now`, but undefined before the first answer. */
    nowIfKnown: () => (known ? now() : undefined),
    /** Converts an instant of this machine's clock to the server's. */
    from: (ms: number) => ms + now() - clock.now(),
    /** Learns from an answer that was received just now, `tookMs` after its request was sent. */
    observe(serverMs: number, tookMs: number) {
      const at = clock.elapsed()
      const seen = { least: serverMs - at, most: serverMs + CUT_MS - (at - tookMs) }
      const before = known && widened(known, (at - known.at) * DRIFT)
      if (known === undefined || before === undefined) known = { ...seen, at, isConfirmed: false }
      else if (agree(before, seen)) known = { ...narrowed(before, seen), at, isConfirmed: true }
      else {
        const others = [...contradicting, seen].slice(-AHEAD_ANSWERS)
        const isConfirmed = contradicting.some(other => agree(other, seen))
        const isAhead = seen.least > before.most
        if (!isConfirmed || (isAhead && known.isConfirmed && others.length < AHEAD_ANSWERS)) {
          contradicting = others
          return
        }
        known = { ...seen, at, isConfirmed }
      }
      contradicting = []
      warn()
    },
  }
}

function agree(one: Lead, other: Lead): boolean {
  return one.least <= other.most + SLACK_MS && other.least <= one.most + SLACK_MS
}

/** The overlap of the two ranges; the newer range when they do not overlap. */
function narrowed(before: Lead, seen: Lead): Lead {
  const least = Math.max(before.least, seen.least)
  const most = Math.min(before.most, seen.most)
  return least <= most ? { least, most } : seen
}

function widened({ least, most }: Lead, by: number): Lead {
  return { least: least - by, most: most + by }
}
