import { describe, expect, test } from 'vitest'
import { guardDecision, type Loss } from '../../src/engine/deletions/guard.ts'
import { verdictOf } from '../../src/engine/deletions/suspicion.ts'
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
) => verdictOf(known, { means: 'absent', confirms: true, now: NOW, confirmAfterMs: 2 * MINUTE, ...more })

describe('a denial', () => {
  test.each([
    [
      'the first one raises a suspicion',
      undefined,
      {},
      { state: 'suspected', since: NOW, askAgainMs: 2 * MINUTE },
    ],
    [
      'a second one a minute later is too early',
      since(MINUTE),
      {},
      { state: 'suspected', since: NOW - MINUTE, askAgainMs: MINUTE },
    ],
    ['a second one two minutes later confirms', since(2 * MINUTE), {}, { state: 'confirmed' }],
    [
      'one that may not confirm leaves the suspicion open, however old it is',
      since(60 * MINUTE),
      { confirms: false },
      { state: 'suspected', since: NOW - 60 * MINUTE, askAgainMs: 0 },
    ],
    [
      'one more leaves a confirmed row confirmed',
      since(3 * MINUTE, { confirmed: true }),
      {},
      { state: 'confirmed' },
    ],
    [
      'one that means something else begins a suspicion of its own',
      since(60 * MINUTE),
      { means: 'withheld' as const },
      { state: 'suspected', since: NOW, askAgainMs: 2 * MINUTE },
    ],
    [
      'a suspicion noted by a clock that was ahead begins again',
      since(-60 * MINUTE),
      {},
      { state: 'suspected', since: NOW, askAgainMs: 2 * MINUTE },
    ],
  ])('%s', (_, known, more, expected) => {
    expect(verdict(known, more)).toEqual(expected)
  })
})

describe('the mass-deletion guard', () => {
  const loss = (live: number, confirmed: number, undecided = 0): Loss => ({
    table: 't',
    live,
    confirmed,
    undecided,
  })

  test.each([
    ['applies 20 rows of any number', [loss(20, 20)], 'apply'],
    ['applies a fifth of any number', [loss(1000, 200)], 'apply'],
    ['holds more than 20 rows and more than a fifth', [loss(100, 21)], 'hold'],
    ['waits where undecided rows may make it too much', [loss(100, 15, 10)], 'wait'],
    ['applies while only undecided rows would be too much', [loss(100, 0, 90)], 'apply'],
    ['holds for what goes with the rows', [loss(100, 1), loss(400, 300)], 'hold'],
  ])('%s', (_, losses, kind) => {
    expect(guardDecision(losses).kind).toBe(kind)
  })
})
