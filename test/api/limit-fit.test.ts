import fc from 'fast-check'
import { expect, test } from 'vitest'
import { explainingRates, type RateAnswer } from '../../src/api/governor/limit-fit.ts'
import { createLimiter, type LimitRule } from '../../src/simulator/faults/limits.ts'
import { runs } from '../support/effort.ts'

const RANGE = { least: 0.5, most: 60 }

/** The answers of a limit to requests at a steady rate, with a pause of a second after each refusal. */
function answersOf(rule: LimitRule, rates: readonly number[]): RateAnswer[] {
  const limiter = createLimiter(rule)
  const answers: RateAnswer[] = []
  let at = 0
  for (const rate of rates) {
    for (let accepted = true; accepted; at += accepted ? 1000 / rate : 1000) {
      accepted = limiter.admit(at).isAllowed
      answers.push({ at, accepted, count: 1 })
    }
  }
  return answers
}

test('one refusal leaves many rates possible, and three leave few', () => {
  const rule: LimitRule = { kind: 'token-bucket', rate: 10, burst: 20 }
  const [one, three] = [[30], [30, 15, 12]].map(rates => explainingRates(answersOf(rule, rates), RANGE))
  expect(one?.least).toBeLessThan(2)
  expect(one?.most).toBeGreaterThan(20)
  expect(three?.least).toBeGreaterThan(9)
  expect(three?.most).toBeLessThan(11)
})

test('a few refusals distinguish a window of a second from a bucket', () => {
  const rule: LimitRule = { kind: 'fixed-window', count: 20, windowMs: 1000 }
  const rates = explainingRates(answersOf(rule, [47, 34, 26, 23]), RANGE)
  expect(rates?.least).toBeGreaterThan(19)
  expect(rates?.most).toBeLessThan(21)
})

test('no limit explains refusals of requests that were slower than others that were accepted', () => {
  const fast = Array.from({ length: 200 }, (_, index) => ({ at: index * 20, accepted: true, count: 1 }))
  const slow = Array.from({ length: 5 }, (_, index) => ({
    at: 60_000 + index * 5000,
    accepted: false,
    count: 1,
  }))
  expect(explainingRates([...fast, ...slow], RANGE)).toBeUndefined()
})

test('the rate of a bucket is found when each try was only a tenth above it', () => {
  for (const burst of [13, 16, 31]) {
    const answers = answersOf({ kind: 'token-bucket', rate: 11, burst }, [12.1, 12.1])
    expect(explainingRates(answers, RANGE)?.least).toBeLessThan(11.33)
  }
})

test.each([
  [2000, 60],
  [3000, 30],
  [5000, 40],
  [10_000, 100],
])('the rates that fit a burst into a window of %i ms include the one of that window', (windowMs, count) => {
  const rate = (1000 * count) / windowMs
  const answers = answersOf({ kind: 'sliding-window', count, windowMs }, [2 * rate, 2 * rate])
  expect(explainingRates(answers, RANGE)?.most).toBeGreaterThan(0.95 * rate)
})

test('the rates that fit the answers of a bucket include one near its own', () => {
  const bucket = fc.record({ rate: fc.integer({ min: 1, max: 20 }), burst: fc.integer({ min: 1, max: 40 }) })
  const faster = fc.array(fc.double({ min: 1.1, max: 3, noNaN: true }), { minLength: 1, maxLength: 5 })
  fc.assert(
    fc.property(bucket, faster, ({ rate, burst }, factors) => {
      const answers = answersOf(
        { kind: 'token-bucket', rate, burst },
        factors.map(factor => rate * factor),
      )
      const found = explainingRates(answers, RANGE)
      expect(found?.least).toBeLessThan(rate * 1.03)
      expect(found?.most).toBeGreaterThan(rate * 0.7)
    }),
    { numRuns: runs(60) },
  )
})
