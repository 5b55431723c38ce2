import { expect, test } from 'vitest'
import { systemClock } from '../../src/base/clock.ts'
import { virtualClock } from './virtual-clock.ts'

test.each([
  ['of this machine', systemClock()],
  ['that a test moves', virtualClock(0)],
])('a sleep on the clock %s ends at once when its signal is already aborted', async (_, clock) => {
  await expect(clock.sleep(2 ** 40, AbortSignal.abort())).resolves.toBeUndefined()
})
