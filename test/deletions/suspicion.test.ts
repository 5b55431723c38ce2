import { describe, expect, test } from 'vitest'
import { verdictOnDenial } from '../../src/engine/deletions/deletion-states.ts'
import { type DeletionCounts, guardDecision } from '../../src/engine/deletions/guard.ts'
import type { Suspicion } from '../../src/store/deletions/suspicions.ts'

const NOW = Date.parse('2026-03-04T12:00:00.000Z')
const MINUTE = 60_000

const since = (ms: number, more: Partial<Suspicion> = {}): Suspicion => ({
  since: new Date(NOW - ms).toISOString(),
  means: 'absent',
  confirmed: false,
  ...more,
})

const verdict = (
  known: Suspicion | undefined,
  more: { means?: Suspicion['means']; confirms?: boolean } = {},
) =>
  verdictOnDenial(known, { means: 'absent', confirms: true, now: NOW, confirmAfterMs: 2 * MINUTE, ...more })

describe('the effects of a denial', () => {
  test.each([
    [
      'a first denial raises a suspicion',
      undefined,
      {},
      { state: 'suspected', since: NOW, askAgainMs: 2 * MINUTE },
    ],
    [
      'a second denial a minute later is too early',
      since(MINUTE),
      {},
      { state: 'suspected', since: NOW - MINUTE, askAgainMs: MINUTE },
    ],
    ['a second denial two minutes later confirms', since(2 * MINUTE), {}, { state: 'confirmed' }],
    [
      'a denial that may not confirm leaves the suspicion open, however old it is',
      since(60 * MINUTE),
      { confirms: false },
      { state: 'suspected', since: NOW - 60 * MINUTE, askAgainMs: 0 },
    ],
    [
      'after a denial that may not confirm, another can at once when the wait is nearly over',
      since(1.9 * MINUTE),
      { confirms: false },
      { state: 'suspected', since: NOW - 1.9 * MINUTE, askAgainMs: 0 },
    ],
    [
      'another denial leaves a confirmed row confirmed',
      since(3 * MINUTE, { confirmed: true }),
      {},
      { state: 'confirmed' },
    ],
    [
      'a denial with another meaning raises a separate suspicion',
      since(60 * MINUTE),
      { means: 'withheld' as const },
      { state: 'suspected', since: NOW, askAgainMs: 2 * MINUTE },
    ],
    [
      'a suspicion that was noted under a clock ahead starts again',
      since(-60 * MINUTE),
      {},
      { state: 'suspected', since: NOW, askAgainMs: 2 * MINUTE },
    ],
  ])('%s', (_, known, more, expected) => {
    expect(verdict(known, more)).toEqual(expected)
  })
})

describe('the mass-deletion guard', () => {
  const loss = (live: number, confirmed: number, undecided = 0): DeletionCounts => ({
    table: 't',
    rows: confirmed,
    live,
    confirmed,
    undecided,
  })

  test.each([
    ['the guard applies 20 rows of any number', [loss(20, 20)], 'apply'],
    ['the guard applies a fifth of any number', [loss(1000, 200)], 'apply'],
    ['the guard holds back more than 20 rows and more than a fifth', [loss(100, 21)], 'hold'],
    ['the guard waits when undecided rows may make it too much', [loss(100, 15, 10)], 'wait'],
    ['the guard applies while only undecided rows would be too much', [loss(100, 0, 90)], 'apply'],
    ['the guard counts the rows that are deleted along', [loss(100, 1), loss(400, 300)], 'hold'],
  ])('%s', (_, losses, kind) => {
    expect(guardDecision(losses).kind).toBe(kind)
  })
})
