import { expect, test } from 'vitest'
import { lifeOf, live } from './life.ts'

/** Cheap ones, with each group of resources and each kind of deed in some of them. */
const SEEDS = [37, 17, 9, 41, 11, 44, 46, 10, 8, 4, 7, 42, 43, 51, 18, 55, 80, 2, 12, 16]

test.each(SEEDS)(
  'the warehouse says nothing untrue on any day, and equals the API once it rests, in the life of seed %i',
  async seed => {
    const life = lifeOf(seed)
    const { findings } = await live(life)
    expect(findings, JSON.stringify(life.deeds)).toEqual([])
  },
)
