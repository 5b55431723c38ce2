import { expect, test } from 'vitest'
import { live } from './life.ts'

/** Changes, faults and kills in each life. `test/torture/soak.ts` does the same for far more seeds. */
const DEEDS = 9

test.concurrent.each([1, 2, 4])(
  'whatever was changed, refused or killed, the warehouse equals the world once that rests (%i)',
  async seed => {
    const { told, ...wrong } = await live(seed, { deeds: DEEDS })
    expect(wrong, told.join('\n')).toMatchObject({ differences: [], rewritten: [] })
  },
)
