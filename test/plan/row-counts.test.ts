import { expect, test } from 'vitest'
import {
  type Amount,
  exactly,
  nextBound,
  rowsWithin,
  type SeenPage,
  type Span,
} from '../../src/engine/estimate/row-counts.ts'

const DAY = 86_400_000
const END = Date.UTC(2026, 5, 30, 12)

function draws(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

/** When rows happened, by a draw from 0 up to 1 and a second one. */
const HISTORIES: Readonly<Record<string, (one: number, other: number) => number>> = {
  'an even history': one => END - one * 730 * DAY,
  'one that grows ever faster': one => Math.max(END + Math.log(one + 1e-9) * 100 * DAY, END - 1500 * DAY),
  'one that has nearly all in the last two months': (one, other) =>
    END - (other < 0.95 ? one * 60 : one * 2000) * DAY,
  'one that has nearly all in two months long ago': (one, other) =>
    END - (other < 0.95 ? 700 + one * 60 : one * 760) * DAY,
  'one with a few rows that are far older': (one, other) =>
    END - (other < 0.999 ? one * 400 : one * 6000) * DAY,
}

const PAGE_ROWS = 100

interface Counted {
  amount: Amount
  asked: number
}

/** Counts times in rising order from at most this many pages. */
function count(times: Float64Array, span: Span, most: number, part: Span = span): Counted {
  const seen: SeenPage[] = []
  for (let to = span.to, isEnough = false; !isEnough && seen.length < most; ) {
    const upTo = to ?? Number.POSITIVE_INFINITY
    const within = times.filter(time => time <= upTo && time >= (span.from ?? Number.NEGATIVE_INFINITY))
    const page = [...within.slice(-PAGE_ROWS)].reverse()
    seen.push({ at: to ?? page[0] ?? 0, times: page, more: within.length > PAGE_ROWS })
    seen.sort((one, other) => other.at - one.at)
    to = nextBound(seen, span)
    isEnough = to === undefined
  }
  return { amount: rowsWithin(seen, part, span.from), asked: seen.length }
}

const UNBOUNDED: Span = { from: undefined, to: undefined }

function made(happened: (one: number, other: number) => number, count: number): Float64Array {
  const draw = draws(7919)
  return Float64Array.from({ length: count }, () => Math.floor(happened(draw(), draw()))).sort()
}

test.each(
  Object.entries(HISTORIES).flatMap(([name, happened]) =>
    [20_000, 100_000].map(rows => ({ name, rows, happened })),
  ),
)('$rows rows of $name are counted to a third with 18 pages', ({ rows, happened }) => {
  const { amount, asked } = count(made(happened, rows), UNBOUNDED, 18)
  expect(asked).toBeLessThanOrEqual(18)
  expect(amount.value / rows).toBeGreaterThan(2 / 3)
  expect(amount.value / rows).toBeLessThan(4 / 3)
  expect(amount.certainty).toBe('about')
})

test('a list of one page is counted exactly with one request', () => {
  const times = made(one => END - one * DAY, PAGE_ROWS)
  expect(count(times, UNBOUNDED, 18)).toEqual({ asked: 1, amount: exactly(PAGE_ROWS) })
})

test('an empty list is counted exactly with one request', () => {
  expect(count(new Float64Array(), UNBOUNDED, 18)).toEqual({ asked: 1, amount: exactly(0) })
})

test('pages with a lower bound request and count nothing older', () => {
  const times = made(one => END - one * 730 * DAY, 50_000)
  const from = END - 100 * DAY
  const { amount } = count(times, { from, to: undefined }, 18)
  const wanted = times.filter(time => time >= from).length
  expect(amount.value / wanted).toBeGreaterThan(0.8)
  expect(amount.value / wanted).toBeLessThan(1.2)
  expect(amount.certainty).toBe('about')
})

test('a part of the span has its share of the rows', () => {
  const times = made(one => END - one * 730 * DAY, 50_000)
  const [from, to] = [END - 500 * DAY, END - 200 * DAY]
  const { amount } = count(times, UNBOUNDED, 18, { from, to })
  const wanted = times.filter(time => time >= from && time <= to).length
  expect(amount.value / wanted).toBeGreaterThan(0.8)
  expect(amount.value / wanted).toBeLessThan(1.2)
})

test('with too few requests to find the oldest row, the count is a lower bound and says so', () => {
  const times = made(one => END - one * 730 * DAY, 100_000)
  const { amount, asked } = count(times, UNBOUNDED, 4)
  expect(asked).toBe(4)
  expect(amount.certainty).toBe('at least')
  expect(amount.value).toBeLessThan(100_000)
})
