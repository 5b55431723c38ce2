import { expect, test } from 'vitest'
import { live } from './world.ts'

/** Changes, faults and kills in each life. `test/torture/soak.ts` does the same for far more seeds. */
const DEEDS = 9

test.concurrent.each([1, 2, 4])(
  'whatever was changed, refused or killed, the warehouse equals the world once that rests (%i)',
  async seed => {
    const { told, differences, rewritten } = await live(seed, { deeds: DEEDS })
    expect(differences, told.join('\n')).toEqual([])
    expect(rewritten, told.join('\n')).toEqual([])
  },
)
