import { expect, test } from 'vitest'
import { everyAction } from './hostile-actions.ts'
import { live } from './life.ts'

/** `lives.long.test.ts` does the same with a random seed in every run, and `test/torture/soak.ts` with any number. */

/** Changes, faults and kills in each life. */
const ACTIONS = 9

const DAY = 86_400_000

test.concurrent.each([
  ['compressed', 1],
  ['apart', 2],
  ['apart', 6],
] as const)(
  'the warehouse equals the API once the API rests, whatever was changed, refused or killed (times %s, %i)',
  async (scale, seed) => {
    const { told, ...wrong } = await live(seed, { actions: ACTIONS, scale })
    expect(wrong, told.join('\n')).toMatchObject({ differences: [], faults: [], rewritten: [] })
  },
)

// An API with wrong and late answers, a machine that sleeps, and a clock that is 40 days behind at the start.
test.concurrent('the warehouse is right in the end, loses nothing early, and keeps no byte of purged content', async () => {
  const options = {
    actions: everyAction(2),
    scale: 'compressed',
    clockOffMs: -40 * DAY,
    purges: true,
  } as const
  const { told, idle, ...wrong } = await live(2, options)
  expect(wrong, told.join('\n')).toMatchObject({ differences: [], faults: [], rewritten: [] })
  expect(idle).toEqual([])
})
