import type { Faults } from '../../src/simulator/faults/faults.ts'
import type { LimitModel, LimitRule } from '../../src/simulator/faults/limits.ts'
import { createDraw, type Draw } from '../torture/draw.ts'

/** An API with a rate limit that it does not state. Plain data. Times are milliseconds since the first request. */
export interface LimitCase {
  seed: number
  limit: LimitModel
  /** The limits that take its place. */
  changes: readonly { atMs: number; limit: LimitModel }[]
  /** Refusals that have nothing to do with the rate, and routes that are refused. */
  faults: Faults
  /** The time of an accepted answer. A refusal takes half of it. */
  answerMs: number
  /** How much of the first fixed window has gone by. */
  goneMs: number
  /** The end of the start: a minute, or the first window if that is longer. */
  startMs: number
  forMs: number
}

export type Shape = keyof typeof SHAPES

type Rule = Exclude<LimitRule, { kind: 'none' | 'concurrency' }>
type Made = Pick<LimitCase, 'limit'> & Partial<Pick<LimitCase, 'changes' | 'faults'>>
type Make = (draw: Draw) => Made

const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const FORMS: readonly [Omit<LimitModel, 'kind'>, ...Omit<LimitModel, 'kind'>[]] = [
  { hint: 'retry-after-seconds' },
  { hint: 'retry-after-date' },
  { hint: 'none', rateHeaders: true },
  { hint: 'none' },
]
/** A case costs time by its requests. */
const MOST_REQUESTS = 36_000
const WORK = 10 * MINUTE
const LEAST_WINDOWS = 3

/** A number between these, as often small as large. */
const between = (draw: Draw, least: number, most: number) =>
  least * (most / least) ** (draw.below(2 ** 20) / 2 ** 20)

const bucket = (draw: Draw, burst: number, leastRate = 0.5): Rule => ({
  kind: 'token-bucket',
  rate: Number(between(draw, leastRate, MOST_REQUESTS / (WORK / SECOND)).toPrecision(2)),
  burst,
})

const window =
  (kind: 'fixed-window' | 'sliding-window', leastMs: number, mostMs: number, leastRate = 0.5) =>
  (draw: Draw): Rule => {
    const windowMs = Math.round(between(draw, leastMs, mostMs) / SECOND) * SECOND
    const mostRate = MOST_REQUESTS / Math.max(WORK, LEAST_WINDOWS * windowMs)
    const count = between(draw, (leastRate * windowMs) / SECOND, mostRate * windowMs)
    return { kind, count: Math.max(1, Math.round(count)), windowMs }
  }

/** A limit that is learned within seconds. */
const quick = (draw: Draw, leastRate = 2): Rule =>
  draw.pick([
    () => bucket(draw, 1 + draw.below(20), leastRate),
    () => window('fixed-window', SECOND, 10 * SECOND, leastRate)(draw),
    () => window('sliding-window', SECOND, 10 * SECOND, leastRate)(draw),
  ])()

const times = (rule: Rule, factor: number): Rule =>
  rule.kind === 'token-bucket'
    ? { ...rule, rate: rule.rate * factor }
    : { ...rule, count: Math.max(1, Math.round(rule.count * factor)) }

const perSecond = (rule: Rule) =>
  rule.kind === 'token-bucket' ? rule.rate : rule.count / (rule.windowMs / SECOND)

const alone =
  (make: (draw: Draw) => LimitRule): Make =>
  draw => ({ limit: { ...make(draw), ...draw.pick(FORMS) } })

const changing =
  (factor: number): Make =>
  draw => {
    const form = draw.pick(FORMS)
    const rule = quick(draw)
    const then = { atMs: 5 * MINUTE, limit: { ...times(rule, factor), ...form } }
    return { limit: { ...rule, ...form }, changes: [then] }
  }

const SHAPES = {
  'a bucket without a burst': alone(draw => bucket(draw, 1)),
  'a bucket of any burst': alone(draw => bucket(draw, Math.round(between(draw, 2, 200)))),
  'a fixed window of seconds': alone(window('fixed-window', SECOND, 10 * SECOND)),
  'a fixed window of a minute to an hour': alone(window('fixed-window', MINUTE, HOUR)),
  'a sliding window of seconds': alone(window('sliding-window', SECOND, 10 * SECOND)),
  'a sliding window of a minute to an hour': alone(window('sliding-window', MINUTE, HOUR)),
  'one to twelve at once': alone(draw => ({ kind: 'concurrency', max: 1 + draw.below(12) })),
  'another client takes half for a while'(draw) {
    const rule = quick(draw)
    const other = { perSecond: perSecond(rule) / 2, fromMs: 3 * MINUTE, untilMs: 6 * MINUTE }
    return { limit: { ...rule, ...draw.pick(FORMS), other } }
  },
  'a limit that halves': changing(1 / 2),
  'a limit that doubles': changing(2),
  'a limit that pauses'(draw) {
    const limit = { ...quick(draw), ...draw.pick(FORMS) }
    const windowMs = draw.pick([20, 60, 100] as const) * SECOND
    const closed = { ...limit, kind: 'fixed-window', count: 0, windowMs } as const
    return {
      limit,
      changes: [
        { atMs: 5 * MINUTE, limit: closed },
        { atMs: 5 * MINUTE + windowMs, limit },
      ],
    }
  },
  'refusals at random'(draw) {
    const probability = draw.pick([0.002, 0.01, 0.03] as const)
    const fault = { kind: 'status', status: 429, probability } as const
    return {
      limit: { ...quick(draw, 20), ...draw.pick(FORMS) },
      faults: [draw.below(2) === 0 ? fault : { ...fault, retryAfter: 1 }],
    }
  },
  'a route that is always refused'(draw) {
    const fault = { kind: 'status', status: 429, route: REFUSED_ROUTE } as const
    return {
      limit: { ...quick(draw, 20), ...draw.pick(FORMS) },
      faults: [draw.below(2) === 0 ? fault : { ...fault, retryAfter: 3600 }],
    }
  },
} as const satisfies Record<string, Make>

/** The route of each tenth request. */
export const REFUSED_ROUTE = '/v2/meetings/{id}/transcript'

export const SHAPE_NAMES = Object.keys(SHAPES) as [Shape, ...Shape[]]

/** The seeds have the shapes in turn. */
export const shapeOf = (seed: number): Shape => SHAPE_NAMES[seed % SHAPE_NAMES.length] ?? SHAPE_NAMES[0]

export function limitCaseOf(seed: number): LimitCase {
  const draw = createDraw(seed)
  const made: Made = SHAPES[shapeOf(seed)](draw)
  const { limit, changes = [], faults = [] } = made
  const windowMs = 'windowMs' in limit ? limit.windowMs : SECOND
  // A pause starts with its window.
  const goneMs = limit.kind === 'fixed-window' && changes.length === 0 ? draw.below(windowMs) : 0
  // Whole windows: who knows the limit uses up each at its beginning.
  const toBoundary = (ms: number) => Math.ceil((ms + goneMs) / windowMs) * windowMs - goneMs
  // Many at once with fast answers would be too many requests.
  const leastMs = limit.kind === 'concurrency' ? Math.max(15, (limit.max * WORK) / MOST_REQUESTS) : 15
  return {
    seed,
    limit,
    changes,
    faults,
    answerMs: Math.round(between(draw, leastMs, 500)),
    goneMs,
    startMs: toBoundary(Math.max(MINUTE, windowMs)),
    forMs: toBoundary(Math.max(WORK, LEAST_WINDOWS * windowMs)),
  }
}
