import { type Clock, DAY_MS, utcDay } from '../../base/clock.ts'

/** Counts the requests of a UTC day, for the ceiling `api.max_requests_per_day`. */
export interface DayCount {
  add(requests: number): void
  used(): number
  reserved(): number
  /** Whether one more request may be sent without a further reservation. */
  isReserved(): boolean
  reserveMore(): Promise<void>
  /** Time in ms until requests are allowed again when the ceiling of the day is reached; else 0. */
  holdMs(): number
}

export interface DayCountOptions {
  clock: Clock
  limit: number | undefined
  /** Requests of the current UTC day that count as used already: sent, or reserved by a process that was killed. */
  usedBefore: number
  /**
   * Stores how many requests of a UTC day (`YYYY-MM-DD`) count as used if this process is killed. With a ceiling per
   * day, no request is sent before it is reserved in this way.
   */
  reserve: ((day: string, requests: number) => Promise<void>) | undefined
}

/** Maximum number of requests reserved ahead. A killed process loses up to this many from the day's ceiling. */
const MAX_RESERVED = 100
const RESERVED_SHARE = 1 / 100

export function createDayCount({ clock, limit, usedBefore, reserve }: DayCountOptions): DayCount {
  let day = dayNumber(clock.now())
  let used = usedBefore
  let reserved = usedBefore
  let reserving: Promise<void> | undefined
  /** `elapsed()` when the ceiling was reached. */
  let fullSince: number | undefined
  /** A clock that is set back must not allow the day's requests a second time, nor hold them for longer than a day. */
  const leftOfDayMs = () => {
    const untilNext = (day + 1) * DAY_MS - clock.now()
    return fullSince === undefined ? untilNext : Math.min(untilNext, fullSince + DAY_MS - clock.elapsed())
  }
  const turnOver = () => {
    if (leftOfDayMs() <= 0) {
      day = dayNumber(clock.now())
      used = 0
      reserved = 0
      fullSince = undefined
    }
    if (limit !== undefined && used >= limit) fullSince ??= clock.elapsed()
  }
  const reserveMore = async (most: number) => {
    const [of, wanted] = [
      day,
      Math.min(most, used + Math.min(MAX_RESERVED, Math.ceil(most * RESERVED_SHARE))),
    ]
    await reserve?.(dayName(of), wanted)
    if (of === day) reserved = Math.max(reserved, wanted)
  }
  return {
    add: requests => {
      turnOver()
      used = Math.max(0, used + requests)
    },
    used: () => {
      turnOver()
      return used
    },
    reserved: () => Math.max(used, reserved),
    isReserved: () => {
      turnOver()
      return limit === undefined || reserve === undefined || used < reserved
    },
    reserveMore() {
      reserving ??= reserveMore(limit ?? 0).finally(() => {
        reserving = undefined
      })
      return reserving
    },
    holdMs: () => {
      turnOver()
      return limit === undefined || used < limit ? 0 : leftOfDayMs()
    },
  }
}

function dayNumber(ms: number): number {
  return Math.floor(ms / DAY_MS)
}

function dayName(day: number): string {
  return utcDay(day * DAY_MS)
}
