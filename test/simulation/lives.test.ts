import { expect, test } from 'vitest'
import { lifeOf, live } from './life.ts'

/** Cheap ones, with each group of resources and each kind of deed in some of them. */
const SEEDS = [30, 69, 89, 32, 9, 21, 78, 68, 84, 74, 41, 57, 37, 81, 14, 12, 8, 17, 42, 72]

test.each(SEEDS)(
  'the warehouse says nothing untrue on any day, and equals the API once it rests, in the life of seed %i',
  async seed => {
    const life = lifeOf(seed)
    const { findings } = await live(life)
    expect(findings, JSON.stringify(life.deeds)).toEqual([])
  },
)
