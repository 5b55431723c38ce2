import { expect, test } from 'vitest'
import { blips } from './blips.ts'
import { everyAction } from './hostile-actions.ts'
import { live } from './life.ts'

/** A new one for every run; the titles show it. */
const ANY_SEED = 1000 + (Date.now() % 1_000_000)

const DAY = 86_400_000

test(`the warehouse is right in the end after every hostile action in any order (seed ${ANY_SEED})`, async () => {
  const options = {
    actions: everyAction(ANY_SEED),
    scale: 'apart',
    clockOffMs: 40 * DAY,
    purges: true,
  } as const
  const { told, idle: _, ...wrong } = await live(ANY_SEED, options)
  expect(wrong, told.join('\n')).toMatchObject({ differences: [], faults: [], rewritten: [] })
})

test(`one wrong answer from each route changes nothing while the API does not change (seed ${ANY_SEED})`, async () => {
  const { told, differences } = await blips(ANY_SEED, { rounds: 1 })
  expect(differences, told.join('\n')).toEqual([])
})

// A rate limit of a moment may leave this daemon a low learned rate, which needs minutes to grow back. Meanwhile it
// cannot read everything in a compressed week.
test('the warehouse equals the API once the API rests, whatever was changed, refused or killed (times compressed, 4)', async () => {
  const { told, ...wrong } = await live(4, { actions: 9, scale: 'compressed' })
  expect(wrong, told.join('\n')).toMatchObject({ differences: [], faults: [], rewritten: [] })
})
