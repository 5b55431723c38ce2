import { describe, expect, it, test } from 'vitest'
import { startPace } from '../../src/api/governor/pace.ts'
import {
  type RefusedSpan,
  type StrayRefusals,
  spanToReturnTo,
  startStray,
  strayAfter,
} from '../../src/api/governor/stray-refusals.ts'
import { createDraw } from '../../src/simulator/base/random.ts'
import { drive, limitedTo, unlimited } from './simulated-pace.ts'

type Span = readonly [rate: number, mean: number, accepted: number]

const spansOf = (spans: readonly Span[]): RefusedSpan[] =>
  spans.map(([rate, mean, accepted]) => ({ rate, mean, accepted, refused: 1 }))

test.each<[string, readonly Span[], number | undefined]>([
  [
    'three lower rates are refused as often',
    [
      [30, 20, 60],
      [15, 12, 70],
      [12, 10, 50],
      [10, 8, 60],
    ],
    30,
  ],
  [
    'a higher rate is accepted later than three lower ones were refused',
    [
      [10, 8, 60],
      [9, 7, 70],
      [8, 6, 50],
      [40, 25, 60],
    ],
    40,
  ],
  [
    'two lower rates are refused as often',
    [
      [30, 20, 60],
      [15, 12, 70],
      [12, 10, 50],
    ],
    undefined,
  ],
  [
    'three rates near the mean are refused as often',
    [
      [30, 20, 60],
      [19, 17, 70],
      [18, 16, 50],
      [17, 15, 60],
    ],
    undefined,
  ],
  [
    'three lower rates are refused more often, as when the limit has dropped',
    [
      [30, 20, 200],
      [15, 9, 10],
      [12, 9, 15],
      [10, 9, 30],
    ],
    undefined,
  ],
])('when %s, the rate to return to is right', (_, spans, rate) => {
  expect(spanToReturnTo(spansOf(spans))?.rate).toBe(rate)
})

describe('the refusals that do not lower the rate', () => {
  const stray = startStray(
    spansOf([
      [30, 20, 99],
      [20, 15, 99],
    ]),
  )
  const afterMany = (state: StrayRefusals | undefined, accepted: number, refused: number) => {
    let next = state
    for (let sent = 0; sent < accepted; sent += 1) next = next && strayAfter(next, true)
    for (let sent = 0; sent < refused; sent += 1) next = next && strayAfter(next, false)
    return next
  }

  it('are as many as before the rate was lowered', () => {
    let state: StrayRefusals | undefined = stray
    for (let refusals = 0; refusals < 20; refusals += 1) state = afterMany(state, 99, 1)
    expect(state?.credit).toBeGreaterThan(0)
    expect(state?.share).toBeCloseTo(0.01, 2)
  })

  it('are none any more when the rate that was returned to is refused at once', () => {
    expect(afterMany(stray, 5, 3)).toBeUndefined()
  })

  it('use up their credit when the share doubles and more, and earn it again', () => {
    const proven = afterMany(stray, 300, 0)
    const spent = afterMany(proven, 0, 6)
    expect(spent?.credit).toBe(0)
    expect(afterMany(spent, 200, 0)?.credit).toBeGreaterThan(1)
  })

  it('are none any more when nothing was refused for long', () => {
    expect(afterMany(stray, 2000, 0)).toBeUndefined()
  })
})

test('spans with several refusals count by their share of refusals', () => {
  const lower = [15, 12, 10].map(rate => ({ rate, mean: rate - 2, accepted: 60, refused: 6 }))
  const best = { rate: 30, mean: 20, accepted: 10, refused: 1 }
  expect(spanToReturnTo([best, ...lower])).toBe(best)
  expect(startStray([best, ...lower]).share).toBeCloseTo(1 / 11)
  expect(spanToReturnTo([{ ...best, accepted: 60 }, ...lower])).toBeUndefined()
})

test('one refusal in ten that comes at random leaves twenty requests a second, not one', () => {
  const perSecond = [1, 2, 3, 4, 5, 6].map(seed => {
    const draw = createDraw(seed, 0, 0)
    const api = { ...unlimited, ask: () => ({ accepted: draw.below(10) > 0 }) }
    const jitter = () => draw.below(100) / 100
    const { requests } = drive(startPace({}, undefined), { api, untilMs: 600_000, latencyMs: 100, jitter })
    return requests.filter(({ at, accepted }) => accepted && at >= 300_000).length / 300
  })
  expect(perSecond.filter(accepted => accepted > 20).length).toBeGreaterThanOrEqual(4)
})

test('two refusals in a hundred that come at random leave most of the rate in most orders', () => {
  const perSecond = [1, 2, 3, 4, 5, 6, 7, 8].map(seed => {
    const draw = createDraw(seed, 0, 0)
    const limited = limitedTo({ kind: 'token-bucket', rate: 40, burst: 10 }, 'none')
    const api = {
      ...limited,
      ask: (at: number) => (draw.below(50) === 0 ? { accepted: false } : limited.ask(at)),
    }
    const { requests } = drive(startPace({}, undefined), { api, untilMs: 400_000 })
    return requests.filter(({ at, accepted }) => accepted && at >= 100_000).length / 300
  })
  expect(perSecond.filter(accepted => accepted > 25).length).toBeGreaterThanOrEqual(6)
})
