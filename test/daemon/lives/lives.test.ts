import { describe, expect, test } from 'vitest'
import { createDraw } from '../../torture/draw.ts'
import { blips } from './blips.ts'
import type { Deed } from './deeds.ts'
import { HOSTILE } from './hostile-deeds.ts'
import { live } from './life.ts'

/** `test/torture/soak.ts` does the same for far more seeds. */

/** Changes, faults and kills in each life. */
const DEEDS = 9

/** Another one with every run; it stands in the title. */
const ANY_SEED = 1000 + (Date.now() % 1_000_000)

const DAY = 86_400_000

test.concurrent.each([
  ['compressed', 1],
  ['compressed', 4],
  ['apart', 2],
  ['apart', 6],
] as const)(
  'whatever was changed, refused or killed, the warehouse equals the world once that rests (times %s, %i)',
  async (scale, seed) => {
    const { told, ...wrong } = await live(seed, { deeds: DEEDS, scale })
    expect(wrong, told.join('\n')).toMatchObject({ differences: [], faults: [], rewritten: [] })
  },
)

/** Every hostile deed once, in an order that the seed gives. */
function everyDeed(seed: number): Deed[] {
  const draw = createDraw(seed)
  const left: Deed[] = Object.values(HOSTILE).flat()
  return Array.from({ length: left.length }, () => left.splice(draw.below(left.length), 1)).flat()
}

describe('an API that lies, blinks and lags, a machine that sleeps, and a clock that is wrong at the start', () => {
  test.concurrent.each([
    ['compressed', 2, -40],
    ['apart', ANY_SEED, 40],
  ] as const)(
    'leave nothing wrong, nothing destroyed early, and no byte of what was withdrawn (times %s, seed %i, %i days off)',
    async (scale, seed, daysOff) => {
      const options = { deeds: everyDeed(seed), scale, clockOffMs: daysOff * DAY, purges: true }
      const { told, idle, ...wrong } = await live(seed, options)
      expect(wrong, told.join('\n')).toMatchObject({ differences: [], faults: [], rewritten: [] })
      // Where a week takes minutes, what a deed spoils may not have been asked for while it lasted.
      expect(idle.length, idle.join('\n')).toBeLessThanOrEqual(scale === 'apart' ? 3 : 0)
    },
  )
})

test.concurrent.each([3, ANY_SEED])(
  'one wrong answer from each route changes nothing in the warehouse of a world that stands still (seed %i)',
  async seed => {
    const { told, struck, differences } = await blips(seed, { rounds: 1 })
    expect(differences, told.join('\n')).toEqual([])
    expect(struck).toBeGreaterThan(0)
  },
)
