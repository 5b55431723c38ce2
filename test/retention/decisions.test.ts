import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { DAY_MS } from '../../src/base/clock.ts'
import { MAINTENANCE, nextOccurrence } from '../../src/config/calendar.ts'
import {
  type Copy,
  type CopyRules,
  clockTrust,
  type Fate,
  fatesOf,
  isMissed,
  REBUILT_UP_TO_BYTES,
  rebuildFor,
} from '../../src/retention/what-to-remove.ts'

const NOW = Date.parse('2026-03-04T10:00:00.000Z')
const daysAgo = (days: number) => NOW - days * DAY_MS

test.each([
  [undefined, 'unknown'],
  [0, 'agreed'],
  [DAY_MS, 'agreed'],
  [-DAY_MS, 'agreed'],
  [DAY_MS + 1, 'clocks-differ'],
  [-40 * DAY_MS, 'clocks-differ'],
])('a server whose clock differs by %s ms makes this machine’s clock %s', (difference, trust) => {
  const server = difference === undefined ? undefined : NOW + difference
  expect(clockTrust({ machine: NOW, server })).toBe(trust)
})

const nextNight = (after: number) => nextOccurrence(MAINTENANCE, after)

test.each([
  ['was never done', undefined, true],
  ['was last done today', NOW - 3_600_000, false],
  ['was last done two days ago', daysAgo(2), true],
  ['was last done in the future, under a wrong clock', NOW + 40 * DAY_MS, true],
])('maintenance that %s is due: %s', (_, doneAt, due) => {
  expect(isMissed(doneAt, NOW, nextNight)).toBe(due)
})

const OURS = 'ours'
const RULES: CopyRules = {
  now: NOW,
  identity: OURS,
  before: daysAgo(30),
  purgedAt: daysAgo(0),
  firstMaintainedAt: daysAgo(1000),
}

function copy(days: number, other: Partial<Copy> = {}): Copy {
  const at = daysAgo(days)
  return {
    path: `${days}`,
    namedAt: at,
    modifiedAt: at,
    identity: OURS,
    maintainedAt: undefined,
    purgedAt: undefined,
    isInOwnFolder: true,
    isKeptByRestore: false,
    isSnapshot: true,
    ...other,
  }
}

describe('the copies that parley has made', () => {
  const CASES: [name: string, copies: Copy[], rules: Partial<CopyRules>, fates: Fate[]][] = [
    [
      'copies from before the purge limit are removed',
      [copy(1), copy(29), copy(31)],
      {},
      ['keep', 'keep', 'remove'],
    ],
    [
      'no copy is removed while purging is turned off',
      [copy(1), copy(4000)],
      { before: undefined },
      ['keep', 'keep'],
    ],
    [
      'copies of another warehouse stay',
      [copy(31, { identity: 'other', isInOwnFolder: false })],
      {},
      ['keep'],
    ],
    [
      'copies of another warehouse stay even in the folder that is named after this one',
      [copy(1), copy(31, { identity: 'other' })],
      {},
      ['keep', 'keep'],
    ],
    [
      'a database that a restore has kept is removed at the same age, though the restored copy has another identity',
      [29, 31].map(days => copy(days, { identity: 'other', isKeptByRestore: true, isSnapshot: false })),
      {},
      ['keep', 'remove'],
    ],
    [
      'unreadable copies are removed only from the folder that is named after this database',
      [31, 32].map(days => copy(days, { identity: undefined, isInOwnFolder: days === 31 })),
      {},
      ['remove', 'ask'],
    ],
    [
      'the newest copy stays when nothing was purged since it was made',
      [copy(100), copy(31)],
      { purgedAt: daysAgo(32) },
      ['remove', 'keep'],
    ],
    [
      'the newest copy is removed when something was purged since it was made',
      [copy(100), copy(31)],
      {},
      ['remove', 'remove'],
    ],
    [
      'copies from before the last purge are removed once a later snapshot was made after it',
      [
        copy(0, { purgedAt: daysAgo(1) }),
        copy(2, { purgedAt: daysAgo(3) }),
        copy(3),
        copy(2, { isSnapshot: false }),
      ],
      {},
      ['keep', 'remove', 'remove', 'remove'],
    ],
    [
      'copies from before a purge stay while no later snapshot was made',
      [copy(2), copy(1, { purgedAt: daysAgo(1), isSnapshot: false })],
      {},
      ['keep', 'keep'],
    ],
    [
      'a snapshot made after a restore stays, although a discarded one had less content',
      [copy(0, { purgedAt: daysAgo(5) }), copy(1, { purgedAt: daysAgo(2) })],
      {},
      ['keep', 'keep'],
    ],
    [
      'the newest copy of this warehouse stays, whatever copies of another one are next to it',
      [copy(31), copy(1, { identity: 'other' })],
      { purgedAt: undefined },
      ['keep', 'keep'],
    ],
    [
      'the age of a copy made under a clock ahead is counted from now',
      [copy(1), copy(-400)],
      {},
      ['keep', 'recount'],
    ],
    [
      'the age of a copy made under a clock behind is counted from now',
      [copy(1), copy(9000, { maintainedAt: daysAgo(2) })],
      {},
      ['keep', 'recount'],
    ],
    [
      'a copy whose age is counted from a later day is removed when it is old enough by that',
      [copy(1), copy(9000, { maintainedAt: daysAgo(60), modifiedAt: daysAgo(31) })],
      {},
      ['keep', 'remove'],
    ],
    [
      'a copy that was named under a clock ahead may contain what was purged before its name',
      [copy(40, { modifiedAt: daysAgo(70) })],
      { purgedAt: daysAgo(60) },
      ['remove'],
    ],
    [
      'a file that was copied lately is as old as its name says',
      [copy(1), copy(31, { modifiedAt: daysAgo(0) })],
      {},
      ['keep', 'remove'],
    ],
    [
      'the age of an upgrade copy is that of its file, and it does not count as the last backup',
      [copy(31, { namedAt: undefined, isSnapshot: false })],
      { purgedAt: undefined },
      ['remove'],
    ],
  ]
  test.each(CASES)('%s', (_, copies, rules, fates) => {
    expect(fatesOf(copies, { ...RULES, ...rules })).toEqual(fates)
  })

  /** Whether a snapshot has less content that was purged than an earlier copy of the same warehouse. */
  const isSuccessor = (other: Copy, { identity, purgedAt = 0 }: Copy) =>
    other.isSnapshot &&
    identity !== undefined &&
    other.identity === identity &&
    (other.purgedAt ?? 0) > purgedAt

  test('a foreign copy, a young copy without a cleaner successor, and the last copy without purged content are never removed', () => {
    const day = fc.integer({ min: -500, max: 500 }).map(daysAgo)
    const maybe = <T>(one: fc.Arbitrary<T>) => fc.option(one, { nil: undefined })
    const copies = fc.array(
      fc.record<Copy>({
        path: fc.uuid(),
        namedAt: maybe(day),
        modifiedAt: day,
        identity: maybe(fc.constantFrom(OURS, 'other')),
        maintainedAt: maybe(day),
        purgedAt: maybe(day),
        isInOwnFolder: fc.boolean(),
        isKeptByRestore: fc.boolean(),
        isSnapshot: fc.boolean(),
      }),
    )
    fc.assert(
      fc.property(copies, maybe(day), maybe(day), maybe(day), (all, purgedAt, before, firstMaintainedAt) => {
        const fates = fatesOf(all, { now: NOW, identity: OURS, before, purgedAt, firstMaintainedAt })
        const gone = all.filter((_, at) => fates[at] === 'remove')
        for (const one of gone) {
          if (!one.isKeptByRestore) expect(one.identity ?? OURS).toBe(OURS)
          if (all.some(other => isSuccessor(other, one))) continue
          // Made before any clock was known to be right, it is not older than that.
          if (one.maintainedAt === undefined)
            expect(firstMaintainedAt ?? 0).toBeLessThan(before ?? Number.NaN)
          expect(Math.min(one.namedAt ?? one.modifiedAt, one.modifiedAt)).toBeLessThan(before ?? Number.NaN)
          expect(one.identity === OURS || one.isInOwnFolder || one.isKeptByRestore).toBe(true)
        }
        const left = all.some(
          (one, at) =>
            one.isSnapshot &&
            (one.identity === OURS || one.isKeptByRestore || (!one.identity && one.isInOwnFolder)) &&
            fates[at] !== 'remove',
        )
        const hadSnapshot = gone.some(one => one.isSnapshot)
        if (hadSnapshot && !left) expect(purgedAt).toBeDefined()
        // The cleanest of the newest snapshots has no successor, so a purge alone never removes the last one.
        if (before !== undefined && all.every(one => Math.min(one.namedAt ?? NOW, one.modifiedAt) >= before))
          expect(left || !hadSnapshot).toBe(true)
      }),
    )
  })
})

describe('a database that may contain remains of purged content', () => {
  const MB = 1024 ** 2
  test.each([
    ['is small', 32 * MB, undefined, 'now'],
    ['is small and was tried a moment ago', MB, NOW, 'now'],
    ['is large', 33 * MB, undefined, 'alone'],
    ['is large and was last tried a week ago', 33 * MB, daysAgo(7), 'alone'],
    ['is large and was tried this week', 33 * MB, daysAgo(6), 'none'],
    ['is large and was tried in the future, under a wrong clock', 33 * MB, daysAgo(-6), 'alone'],
    ['is too large for any rewrite', REBUILT_UP_TO_BYTES + 1, undefined, 'none'],
  ] as const)('a database that %s is rebuilt as it should be', (_, bytes, triedAt, rebuild) => {
    expect(rebuildFor({ bytes, triedAt, now: NOW })).toBe(rebuild)
  })
})
