import fc from 'fast-check'
import { expect, test } from 'vitest'
import { guardDecision, liveRowsToCount, lossToReport } from '../../src/engine/deletions/guard.ts'
import { temporaryStore } from '../store/temporary-store.ts'
import { runs } from '../support/effort.ts'

const loss = (live: number, confirmed: number, undecided: number) => ({
  table: 'members',
  rows: confirmed,
  live,
  confirmed,
  undecided,
})

test('the mass-deletion guard decides the same when it counts only as many live rows as it needs', () => {
  fc.assert(
    fc.property(
      fc.nat(2000),
      fc.nat(300),
      fc.nat(300),
      fc.nat(50),
      (live, confirmed, undecided, deletedBefore) => {
        const gone = confirmed === 0 ? 0 : confirmed + deletedBefore
        const counted = Math.min(live, liveRowsToCount(gone + undecided))
        expect(guardDecision([loss(counted + deletedBefore, gone, undecided)]).kind).toBe(
          guardDecision([loss(live + deletedBefore, gone, undecided)]).kind,
        )
      },
    ),
    { numRuns: runs(2000) },
  )
})

test('a report names the loss for which the guard holds deletions back, and else the one with the most rows', () => {
  const own = { ...loss(1, 1, 0), table: 'crm_objects' }
  const cascade = { ...loss(50, 50, 0), table: 'crm_records' }
  // More rows than the cascade has, but of a table so large that the guard lets them go.
  const many = { ...loss(1000, 60, 0), table: 'activities' }
  expect(lossToReport([own, many, cascade])).toBe(cascade)
  expect(lossToReport([own, many])).toBe(many)
  expect(lossToReport([])).toBeUndefined()
})

test('live rows are counted up to a number and no further', () => {
  const store = temporaryStore()
  store.put(
    'members',
    ['a', 'b', 'c', 'd', 'e'].map(id => ({ id })),
  )
  store.tombstone('members', [['b']], '2026-03-04T05:06:07.000Z')
  expect([0, 3, 100].map(atMost => store.suspicions.liveRows('members', atMost))).toEqual([0, 3, 4])
})
