import { expect, test } from 'vitest'
import { runs } from '../support/effort.ts'
import { lifeOf, live } from './life.ts'

/** Each group of resources and each kind of deed has its part in some of them. The cheap ones come first. */
const SEEDS = [26, 8, 21, 1, 16, 15, 6, 13, 2, 3, 4, 9, 10, 11, 12, 14, 17, 19, 20, 23].slice(
  0,
  Math.max(8, runs(20)),
)

test.each(SEEDS)(
  'the warehouse says nothing untrue on any day, and equals the API once it rests, in the life of seed %i',
  async seed => {
    const life = lifeOf(seed)
    const { findings } = await live(life)
    expect(findings, JSON.stringify(life.deeds)).toEqual([])
  },
)
