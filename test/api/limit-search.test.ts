import { expect, test } from 'vitest'
import {
  NEW_SEARCH,
  nextRateStep,
  type RateSearch,
  withAnswer,
  withRefusal,
} from '../../src/api/governor/limit-search.ts'
import { createLimiter, type LimitRule } from '../../src/simulator/faults/limits.ts'

/** Tries the rates that the search returns until it has found the limit. Each refusal costs a second. */
function searched(rule: LimitRule, firstRate: number): { rate: number; refusals: number } {
  const limiter = createLimiter(rule)
  let search: RateSearch = NEW_SEARCH
  let rate = firstRate
  let refusals = 0
  for (let at = 0; at < 60_000; ) {
    const accepted = limiter.admit(at).isAllowed
    search = withAnswer(search, { at, accepted })
    if (!accepted) search = withRefusal(search, rate)
    refusals += accepted ? 0 : 1
    const step = nextRateStep(search)
    if (step?.isFound) return { rate: step.rate, refusals }
    search = step?.search ?? search
    rate = step?.rate ?? rate
    at += accepted ? 1000 / rate : 1000
  }
  throw new Error(
    `the limit was not found within a minute: ${rate} requests a second after ${refusals} refusals`,
  )
}

test.each<[string, LimitRule, number]>([
  ['3 a second, in bursts of 5', { kind: 'token-bucket', rate: 3, burst: 5 }, 3],
  ['3 a second, never two at once', { kind: 'token-bucket', rate: 3, burst: 1 }, 3],
  ['20 a second, in bursts of 5', { kind: 'token-bucket', rate: 20, burst: 5 }, 20],
  ['10 a second, in bursts of 20', { kind: 'token-bucket', rate: 10, burst: 20 }, 10],
  ['20 in any second', { kind: 'sliding-window', count: 20, windowMs: 1000 }, 20],
])('a limit of %s is found within a minute with few refusals', (_, rule, limit) => {
  const { rate, refusals } = searched(rule, 2 * limit)
  expect(Math.abs(rate - limit) / limit).toBeLessThan(0.06)
  expect(refusals).toBeLessThanOrEqual(5)
})

test('a window of ten seconds that a slow start has used up is not taken for a slow bucket', () => {
  const limiter = createLimiter({ kind: 'sliding-window', count: 100, windowMs: 10_000 })
  // The first requests wait for others, such as those of a parent.
  const used = Array.from({ length: 100 }, (_, sent) => 7900 * (sent / 100) ** 0.6)
  let search: RateSearch = NEW_SEARCH
  for (const at of [...used, 7902, 8100, 8300]) {
    const accepted = limiter.admit(at).isAllowed
    search = withAnswer(search, { at, accepted })
    if (!accepted) search = withRefusal(search, 40)
  }
  expect(nextRateStep(search)?.rate).toBeGreaterThan(5)
})

test('no search starts before the first refusal', () => {
  expect(nextRateStep(withAnswer(NEW_SEARCH, { at: 0, accepted: true }))).toBeUndefined()
})

test('a search ends when no limit explains the answers', () => {
  let search = withRefusal(
    withAnswer(withAnswer(NEW_SEARCH, { at: 0, accepted: true }), { at: 1000, accepted: false }),
    30,
  )
  for (let at = 2000; at < 7000; at += 50) search = withAnswer(search, { at, accepted: true })
  search = withAnswer(search, { at: 7000, accepted: false })
  search = withAnswer(search, { at: 8000, accepted: true })
  expect(nextRateStep(search)).toBeUndefined()
})

test('a search for a limit that refused the sixth of a quick burst starts near the rate of the burst', () => {
  let search: RateSearch = NEW_SEARCH
  for (const at of [0, 10, 20, 30, 40]) search = withAnswer(search, { at, accepted: true })
  search = withRefusal(withAnswer(search, { at: 50, accepted: false }), 170)
  expect(search.range?.most).toBeGreaterThan(75)
})

test('a search ends when every answer that it remembers was accepted, and it remembers a bounded number', () => {
  let search = withRefusal(
    withAnswer(withAnswer(NEW_SEARCH, { at: 0, accepted: true }), { at: 20, accepted: false }),
    30,
  )
  let steps = 0
  for (let at = 1000; steps < 2000; at += 200, steps++) {
    search = withAnswer(search, { at, accepted: true })
    const step = nextRateStep(search)
    if (step === undefined) break
    search = step.search
  }
  expect(steps).toBeLessThan(600)
})
