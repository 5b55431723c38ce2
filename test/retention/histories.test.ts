import fc from 'fast-check'
import { expect, test } from 'vitest'
import { DAY_MS } from '../../src/retention/decisions.ts'
import { type Happening, startHistory, WITHDRAWN_DAYS } from './history.ts'

const HOUR_MS = 3_600_000
const OFFSETS = [0, 2 * HOUR_MS, -5 * HOUR_MS, 40 * DAY_MS, -40 * DAY_MS, 3650 * DAY_MS, -3650 * DAY_MS]

const night = (diesAtStep?: number): Happening => ({ kind: 'night', diesAtStep })
const days = (count: number): Happening => ({ kind: 'time', hours: count * 24 })

const happening = fc.oneof<[fc.WeightedArbitrary<Happening>, ...fc.WeightedArbitrary<Happening>[]]>(
  { weight: 3, arbitrary: fc.constant({ kind: 'read' }) },
  { weight: 3, arbitrary: fc.nat({ max: 4 }).map(which => ({ kind: 'withdraw', which })) },
  { weight: 3, arbitrary: fc.constantFrom(20, 30, 100, 400, 800).map(hours => ({ kind: 'time', hours })) },
  { weight: 2, arbitrary: fc.constantFrom(...OFFSETS).map(offsetMs => ({ kind: 'clock', offsetMs })) },
  { weight: 1, arbitrary: fc.boolean().map(answers => ({ kind: 'api', answers })) },
  { weight: 4, arbitrary: fc.option(fc.nat({ max: 7 }), { nil: undefined }).map(night) },
  { weight: 3, arbitrary: fc.boolean().map(isCutShort => ({ kind: 'snapshot', isCutShort })) },
  { weight: 1, arbitrary: fc.boolean().map(isOwn => ({ kind: 'folder', isOwn })) },
)

/** The clock is set right, the API answers, and nights follow that are long enough apart for everything to be old. */
const END: readonly Happening[] = [
  { kind: 'clock', offsetMs: 0 },
  { kind: 'api', answers: true },
  ...Array.from({ length: 3 }, () => [days(WITHDRAWN_DAYS + 1), night()]).flat(),
]

const clock = (offsetMs: number): Happening => ({ kind: 'clock', offsetMs })
const read: Happening = { kind: 'read' }
const withdraw: Happening = { kind: 'withdraw', which: 0 }
const snapshot: Happening = { kind: 'snapshot', isCutShort: false }

/** What made-up histories might not come upon. */
const EXAMPLES: readonly Happening[][] = [
  // Killed between each two steps of the night in which it is purged.
  ...[1, 2, 3, 4, 5, 6].map(step => [read, night(), withdraw, snapshot, days(31), night(step)]),
  // One night under a clock that is ahead, or in which the API does not answer.
  [read, snapshot, night(), withdraw, days(5), clock(40 * DAY_MS), night(), clock(0), days(1), night()],
  [read, night(), withdraw, clock(3650 * DAY_MS), { kind: 'api', answers: false }, night()],
  // Withdrawn, and copied, under a clock that is ahead or behind.
  [read, night(), clock(3650 * DAY_MS), snapshot, withdraw, clock(0), days(1), night()],
  [read, night(), clock(-3650 * DAY_MS), snapshot, withdraw, clock(0), days(1), night()],
  // Everything begins under a clock that is behind, which is then set right.
  [clock(-40 * DAY_MS), read, snapshot, withdraw, night(), clock(0), snapshot, night(), days(5), night()],
  // A folder that is another's as well, and is left for one of its own.
  [read, { kind: 'folder', isOwn: false }, snapshot, night(), { kind: 'folder', isOwn: true }, withdraw],
  // The last snapshot of all holds what is purged afterwards.
  [read, snapshot, night(), withdraw],
  [read, withdraw, clock(40 * DAY_MS), snapshot],
  [read, { kind: 'snapshot', isCutShort: true }, withdraw],
]

test('whatever nights, kills and wrong clocks there were, what was withdrawn is in no byte in the end, and nothing else was destroyed', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(happening, { minLength: 5, maxLength: 25 }), async history => {
      const world = await startHistory()
      try {
        for (const one of [...history, ...END]) {
          await world.happen(one)
          if (one.kind === 'night') expect(world.losses()).toEqual([])
        }
        expect(world.remains()).toEqual([])
      } finally {
        world.close()
      }
    }),
    { numRuns: EXAMPLES.length + 12, examples: EXAMPLES.map(one => [one]) },
  )
})
