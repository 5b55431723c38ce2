import { expect, test } from 'vitest'
import { runs } from '../support/effort.ts'
import { lifeOf, live } from './life.ts'

/** Each group of resources and each kind of deed has its part in some of them. */
const SEEDS = Array.from({ length: runs(15) }, (_, index) => index + 1)

test.each(SEEDS)(
  'the warehouse says nothing untrue on any day, and equals the API once it rests, in the life of seed %i',
  async seed => {
    const life = lifeOf(seed)
    const { findings } = await live(life)
    expect(findings, JSON.stringify(life.deeds)).toEqual([])
  },
)
