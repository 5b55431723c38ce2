import { expect, test } from 'vitest'
import { live } from './life.ts'

/** Changes, faults and kills in each life. `test/torture/soak.ts` does the same for far more seeds. */
const DEEDS = 9

test.concurrent.each([
  ['compressed', 1],
  ['compressed', 4],
  ['apart', 2],
  ['apart', 6],
] as const)(
  'whatever was changed, refused or killed, the warehouse equals the world once that rests (times %s, %i)',
  async (scale, seed) => {
    const { told, ...wrong } = await live(seed, { deeds: DEEDS, scale })
    expect(wrong, told.join('\n')).toMatchObject({ differences: [], rewritten: [] })
  },
)
