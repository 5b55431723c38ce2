import { expect, test } from 'vitest'
import { lifeOf, live } from './life.ts'

/** Cheap ones, with each group of resources and each kind of deed, change and wrong answer in some of them. */
const SEEDS = [37, 9, 43, 21, 18, 40, 41, 28, 30, 47, 7, 4, 32, 33, 14, 42, 22, 1, 24, 44]

test.each(SEEDS)(
  'the warehouse says nothing untrue on any day, and equals the API once it rests, in the life of seed %i',
  async seed => {
    const life = lifeOf(seed, { days: 1, rest: 0 })
    const { findings } = await live(life)
    expect(findings, JSON.stringify(life.deeds)).toEqual([])
  },
)
