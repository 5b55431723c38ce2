import { expect, test } from 'vitest'
import { stepAfter } from '../../src/store/reporting/follow.ts'

test.each([
  [20, 10, 40],
  [2000, 10, 2000],
  [40, 70, 40],
  [40, 200, 20],
  [1, 900, 1],
])('after %i keys in %i ms, a transaction follows %i', (keys, tookMs, next) => {
  expect(stepAfter(keys, tookMs)).toBe(next)
})
