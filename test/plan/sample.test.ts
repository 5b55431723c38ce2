import { expect, test } from 'vitest'
import { type Estimate, PAGE_ROWS, type Span, sampleList } from '../../src/engine/estimate/sample.ts'

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

interface Sampled {
  estimate: Estimate
  asked: number
}

/** Runs a sampling against times in rising order. */
function sample(times: Float64Array, span: Span, budget: number): Sampled {
  const sampling = sampleList(span, budget)
  let asked = 0
  for (let step = sampling.next(); ; ) {
    if (step.done) return { estimate: step.value, asked }
    asked += 1
    const { from, to } = step.value
    const within = times.filter(
      time => time <= (to ?? Number.POSITIVE_INFINITY) && time >= (from ?? Number.NEGATIVE_INFINITY),
    )
    const page = [...within.slice(-PAGE_ROWS)].reverse()
    step = sampling.next({ times: page, more: within.length > PAGE_ROWS })
  }
}

function made(happened: (one: number, other: number) => number, count: number): Float64Array {
  const draw = draws(7919)
  return Float64Array.from({ length: count }, () => Math.floor(happened(draw(), draw()))).sort()
}

test.each(
  Object.entries(HISTORIES).flatMap(([name, happened]) =>
    [20_000, 100_000].map(count => ({ name, count, happened })),
  ),
)('$count rows of $name are counted to a fifth with 30 requests', ({ count, happened }) => {
  const { estimate, asked } = sample(made(happened, count), { from: undefined, to: undefined }, 30)
  expect(asked).toBeLessThanOrEqual(30)
  expect(estimate.rows / count).toBeGreaterThan(0.8)
  expect(estimate.rows / count).toBeLessThan(1.2)
  expect(estimate.certainty).toBe('about')
})

test('a list of one page is counted exactly with one request', () => {
  const times = made(one => END - one * DAY, PAGE_ROWS)
  expect(sample(times, { from: undefined, to: undefined }, 30)).toMatchObject({
    asked: 1,
    estimate: { rows: PAGE_ROWS, certainty: 'exact' },
  })
})

test('an empty list is counted exactly with one request', () => {
  expect(sample(new Float64Array(), { from: undefined, to: undefined }, 30)).toMatchObject({
    asked: 1,
    estimate: { rows: 0, certainty: 'exact' },
  })
})

test('a sample with a bound requests and counts nothing older', () => {
  const times = made(one => END - one * 730 * DAY, 50_000)
  const from = END - 100 * DAY
  const { estimate } = sample(times, { from, to: undefined }, 20)
  const wanted = times.filter(time => time >= from).length
  expect(estimate.rows / wanted).toBeGreaterThan(0.8)
  expect(estimate.rows / wanted).toBeLessThan(1.2)
})

test('with too few requests to find the oldest row, the count is a lower bound and says so', () => {
  const times = made(one => END - one * 730 * DAY, 100_000)
  const { estimate, asked } = sample(times, { from: undefined, to: undefined }, 4)
  expect(asked).toBeLessThanOrEqual(4)
  expect(estimate.certainty).toBe('at least')
  expect(estimate.rows).toBeLessThan(100_000)
})
