import { expect, test } from 'vitest'
import { live } from './nightly/life.ts'

/** Different in every run; the title shows it. */
const ANY_SEED = 1000 + (Date.now() % 1_000_000)

test.each([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, ANY_SEED])(
  'backfills converge after any changes, wrong answers and aborted runs, and one wrong answer deletes nothing (seed %i)',
  async seed => {
    const { told, ...wrong } = await live(seed)
    expect(wrong, told.join('\n')).toEqual({ differences: [], lost: [] })
  },
)
