/** How long a number of requests takes. Pure. */

export interface Rate {
  perSecond: number
  /** The basis of the rate, for people. */
  from: string
}

export interface RateFacts {
  /** The limits of the API as earlier runs learned them. */
  learned: { ratePerSecond: number; concurrency: number; limited: boolean; crowded?: boolean } | undefined
  ceilings: { requestsPerSecond?: number | undefined; concurrency?: number | undefined }
  /** Mean response time of the estimate's own requests. */
  answerMs: number | undefined
  /** The rate after one of these requests got a 429; undefined when none did. */
  throttledTo: number | undefined
}

/** One process stores at most about this many answers a second, even when the API has no limit. */
const MOST_STORED_PER_SECOND = 250
/** How many requests a backfill sends at a time before it has learned a limit. */
const USUAL_CONCURRENCY = 4
/** Common limits of APIs, in requests a second. */
const COMMON_LIMITS = [5, 20] as const

/**
 * The rates to plan with, slowest first. When the limit of the API is known, there is one rate. Otherwise there is one
 * for each common limit that would slow the backfill down, and then the rate without a limit.
 */
export function ratesOf({ learned, ceilings, answerMs, throttledTo }: RateFacts): Rate[] {
  const concurrency = Math.min(ceilings.concurrency ?? Infinity, learned?.concurrency ?? USUAL_CONCURRENCY)
  const reached = Math.min(MOST_STORED_PER_SECOND, (1000 / Math.max(1, answerMs ?? 1)) * concurrency)
  const measured = `${concurrency} requests at a time, ${Math.round(answerMs ?? 0)} ms each as measured now`
  const candidates: [perSecond: number | undefined, from: string][] = [
    [learned?.limited ? learned.ratePerSecond : undefined, 'learned by earlier runs'],
    [ceilings.requestsPerSecond, 'the ceiling api.max_requests_per_second'],
    [throttledTo, 'lowered after the API answered 429 to this plan'],
    [answerMs === undefined ? undefined : reached, measured],
  ]
  const [slowest] = candidates
    .flatMap(([perSecond, from]) => (perSecond === undefined ? [] : { perSecond, from }))
    .sort((one, other) => one.perSecond - other.perSecond)
  if (!slowest) return []
  // A run without a 429 does not show that there is no limit: it may have been too short to reach it.
  const wasRefused = learned?.limited || learned?.crowded || throttledTo !== undefined
  const isLimitKnown = wasRefused || ceilings.requestsPerSecond !== undefined
  const limits = isLimitKnown ? [] : COMMON_LIMITS.filter(limit => limit < slowest.perSecond)
  return [
    ...limits.map(perSecond => ({ perSecond, from: `if the API allows ${perSecond} a second` })),
    slowest,
  ]
}

export interface DayLimit {
  perDay: number
  usedToday: number
}

/** Seconds for this many requests, including the waits that a daily limit causes. */
export function secondsFor(requests: number, rate: Rate, day: DayLimit | undefined): number {
  const byRate = requests / rate.perSecond
  if (!day) return byRate
  const afterToday = requests - Math.max(0, day.perDay - day.usedToday)
  if (afterToday <= 0) return byRate
  return Math.max(byRate, Math.ceil(afterToday / day.perDay) * 86_400)
}
