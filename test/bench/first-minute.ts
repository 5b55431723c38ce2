import { startPace } from '../../src/api/governor/pace.ts'
import type { LimitRule } from '../../src/simulator/faults/limits.ts'
import { type Driven, drive, type Hint, limitedTo } from '../api/simulated-pace.ts'

/**
 * Measures how soon the program uses an undocumented rate limit, and how many requests are refused until it knows the
 * limit. Runs only the pacing, on a virtual clock: it takes seconds, and the load of the machine changes no figure.
 */

export interface FirstMinuteRow {
  limit: string
  hint: Hint
  /** Accepted requests over those that the limit allows, from the tenth second to the end of the first minute. */
  used: number
  /** Share of refused requests in the first two minutes. */
  refused: number
}

interface Limit {
  name: string
  rule: LimitRule
  perSecond: number
  latencyMs: number
  /** Start of the measurement: only whole windows count. */
  fromMs?: number
}

const bucket = (rate: number, burst: number, latencyMs = 20): Limit => ({
  name: `${rate}/s, burst ${burst}`,
  rule: { kind: 'token-bucket', rate, burst },
  perSecond: rate,
  latencyMs,
})

const window = (kind: 'fixed-window' | 'sliding-window', count: number, windowMs: number): Limit => ({
  name: `${count} in ${kind === 'fixed-window' ? 'each' : 'any'} ${windowMs / 1000} s`,
  rule: { kind, count, windowMs },
  perSecond: (1000 * count) / windowMs,
  latencyMs: 20,
  ...(windowMs > 10_000 && { fromMs: 0 }),
})

const places = (max: number, latencyMs: number): Limit => ({
  name: `${max} in flight, ${latencyMs} ms`,
  rule: { kind: 'concurrency', max },
  perSecond: (1000 * max) / latencyMs,
  latencyMs,
})

export const FIRST_MINUTE_LIMITS: readonly Limit[] = [
  bucket(3, 1),
  bucket(3, 5),
  bucket(10, 20),
  bucket(20, 5),
  bucket(40, 10),
  bucket(100, 50, 300),
  window('sliding-window', 100, 10_000),
  window('fixed-window', 100, 10_000),
  window('fixed-window', 20, 1000),
  window('fixed-window', 600, 60_000),
  places(4, 100),
  places(10, 300),
]

const TENTH_MS = 10_000
const MINUTE_MS = 60_000

export function measureFirstMinute(): FirstMinuteRow[] {
  return FIRST_MINUTE_LIMITS.flatMap(limit =>
    (['seconds', 'none'] as const).map(hint => {
      const api = limitedTo(limit.rule, hint)
      const driven = drive(startPace({}, undefined), {
        api,
        untilMs: 2 * MINUTE_MS,
        latencyMs: limit.latencyMs,
      })
      return { limit: limit.name, hint, used: usedOf(limit, driven), refused: refusedOf(driven) }
    }),
  )
}

function usedOf({ fromMs = TENTH_MS, perSecond }: Limit, { requests }: Driven): number {
  const accepted = requests.filter(({ at, accepted: isIn }) => isIn && at >= fromMs && at < MINUTE_MS).length
  return accepted / ((perSecond * (MINUTE_MS - fromMs)) / 1000)
}

function refusedOf({ requests }: Driven): number {
  return requests.filter(({ accepted }) => !accepted).length / requests.length
}

export function firstMinuteTable(rows: readonly FirstMinuteRow[]): string {
  const lines = rows.map(
    ({ limit, hint, used, refused }) =>
      `| ${limit} | ${hint} | ${used.toFixed(3)} | ${(100 * refused).toFixed(2)} % |`,
  )
  return [
    '| limit | hint | used from 10 s to 60 s | refused in 2 min |',
    '| --- | --- | --- | --- |',
    ...lines,
  ].join('\n')
}
