import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { backoffMs, longestBackoffMs } from '../../src/base/backoff.ts'

const growth = { firstMs: 500, mostMs: 10_000 }
const never = () => {
  throw new Error('no random number is needed')
}

describe('the wait after consecutive failures', () => {
  test.each([
    [0, 0],
    [1, 500],
    [2, 1000],
    [5, 8000],
    [6, 10_000],
    [100_000, 10_000],
  ])('the wait after %i failures is at most %i ms', (failures, ms) => {
    expect(longestBackoffMs(growth, failures)).toBe(ms)
    expect(backoffMs({ ...growth, jitter: 0 }, failures, never)).toBe(ms)
  })

  test('the wait is between its fixed share and the longest wait', () => {
    const policies = fc.record({
      firstMs: fc.integer({ min: 1, max: 100_000 }),
      mostMs: fc.integer({ min: 1, max: 10_000_000 }),
      jitter: fc.double({ min: 0, max: 1, noNaN: true }),
    })
    const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })
    fc.assert(
      fc.property(policies, fc.integer({ min: 1, max: 5000 }), random, (policy, failures, drawn) => {
        const longest = longestBackoffMs(policy, failures)
        const wait = backoffMs(policy, failures, () => drawn)
        expect(wait).toBeLessThanOrEqual(longest * (1 + 1e-9))
        expect(wait).toBeGreaterThanOrEqual(longest * (1 - policy.jitter) * (1 - 1e-9))
        expect(longestBackoffMs(policy, failures + 1)).toBeGreaterThanOrEqual(longest)
      }),
    )
  })
})
