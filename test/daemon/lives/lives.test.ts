import { describe, expect, test } from 'vitest'
import { blips } from './blips.ts'
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

describe('an API with wrong and late answers, a machine that sleeps, and a clock that is wrong at the start', () => {
  test.concurrent.each([
    ['compressed', 2, -40],
    ['apart', 3, 40],
  ] as const)(
    'the warehouse is right in the end, loses nothing early, and keeps no byte of purged content (times %s, seed %i, %i days off)',
    async (scale, seed, daysOff) => {
      const options = { actions: everyAction(seed), scale, clockOffMs: daysOff * DAY, purges: true }
      const { told, idle, ...wrong } = await live(seed, options)
      expect(wrong, told.join('\n')).toMatchObject({ differences: [], faults: [], rewritten: [] })
      // With a week of minutes, the answers that an action makes wrong may not be requested while it lasts.
      expect(idle.length, idle.join('\n')).toBeLessThanOrEqual(scale === 'apart' ? 3 : 0)
    },
  )
})

// Seed 157476 once left a resource failing for a week.
test.concurrent.each([3, 157_476])(
  'one wrong answer from each route changes nothing while the API does not change (seed %i)',
  async seed => {
    const { told, hits, differences } = await blips(seed, { rounds: 1 })
    expect(differences, told.join('\n')).toEqual([])
    expect(hits).toBeGreaterThan(0)
  },
)
