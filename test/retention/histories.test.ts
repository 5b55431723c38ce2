import fc from 'fast-check'
import { expect, test } from 'vitest'
import { DAY_MS } from '../../src/base/clock.ts'
import { runs } from '../support/effort.ts'
import { type Happening, startHistory, WITHDRAWN_DAYS } from './history.ts'

const HOUR_MS = 3_600_000
const OFFSETS = [0, 2 * HOUR_MS, -5 * HOUR_MS, 40 * DAY_MS, -40 * DAY_MS, 3650 * DAY_MS, -3650 * DAY_MS]

const night = (diesAtStep?: number): Happening => ({ kind: 'night', diesAtStep })
const days = (count: number): Happening => ({ kind: 'time', hours: count * 24 })

const happening = fc.oneof<[fc.WeightedArbitrary<Happening>, ...fc.WeightedArbitrary<Happening>[]]>(
  { weight: 3, arbitrary: fc.constant({ kind: 'read' }) },
  { weight: 3, arbitrary: fc.nat({ max: 4 }).map(which => ({ kind: 'delete', which })) },
  { weight: 3, arbitrary: fc.constantFrom(20, 30, 100, 400, 800).map(hours => ({ kind: 'time', hours })) },
  { weight: 2, arbitrary: fc.constantFrom(...OFFSETS).map(offsetMs => ({ kind: 'clock', offsetMs })) },
  { weight: 1, arbitrary: fc.boolean().map(answers => ({ kind: 'api', answers })) },
  { weight: 4, arbitrary: fc.option(fc.nat({ max: 7 }), { nil: undefined }).map(night) },
  { weight: 3, arbitrary: fc.boolean().map(isCutShort => ({ kind: 'snapshot', isCutShort })) },
  { weight: 1, arbitrary: fc.boolean().map(isOwn => ({ kind: 'folder', isOwn })) },
)

/** The clock is set right, the API answers, and maintenance runs late enough for everything to be old. */
const END: readonly Happening[] = [
  { kind: 'clock', offsetMs: 0 },
  { kind: 'api', answers: true },
  ...Array.from({ length: 3 }, () => [days(WITHDRAWN_DAYS + 1), night()]).flat(),
]

const clock = (offsetMs: number): Happening => ({ kind: 'clock', offsetMs })
const read: Happening = { kind: 'read' }
const deletion: Happening = { kind: 'delete', which: 0 }
const snapshot: Happening = { kind: 'snapshot', isCutShort: false }

/** Histories that random ones might miss. */
const EXAMPLES: readonly Happening[][] = [
  // The maintenance that purges is killed between any two of its steps.
  ...[1, 2, 3, 4, 5, 6].map(step => [read, night(), deletion, snapshot, days(31), night(step)]),
  // One maintenance under a clock ahead, or while the API does not answer.
  [read, snapshot, night(), deletion, days(5), clock(40 * DAY_MS), night(), clock(0), days(1), night()],
  [read, night(), deletion, clock(3650 * DAY_MS), { kind: 'api', answers: false }, night()],
  // Rows are deleted and copied under a clock ahead or behind.
  [read, night(), clock(3650 * DAY_MS), snapshot, deletion, clock(0), days(1), night()],
  [read, night(), clock(-3650 * DAY_MS), snapshot, deletion, clock(0), days(1), night()],
  // The history starts under a clock behind, which is then set right.
  [clock(-40 * DAY_MS), read, snapshot, deletion, night(), clock(0), snapshot, night(), days(5), night()],
  // A shared folder, and later a separate one.
  [read, { kind: 'folder', isOwn: false }, snapshot, night(), { kind: 'folder', isOwn: true }, deletion],
  // The last snapshot contains what is purged afterwards.
  [read, snapshot, night(), deletion],
  [read, deletion, clock(40 * DAY_MS), snapshot],
  [read, { kind: 'snapshot', isCutShort: true }, deletion],
]

test('purged content is in no byte in the end, and nothing else is destroyed, whatever maintenance, kills and wrong clocks there were', async () => {
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
    { numRuns: EXAMPLES.length + runs(12), examples: EXAMPLES.map(one => [one]) },
  )
})
