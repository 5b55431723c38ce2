import { expect, test } from 'vitest'
import {
  type Bin,
  firstRequestAt,
  type KnownLimit,
  type RequestRecord,
  steadyFigures,
  timeToReach,
} from './limits-figures.ts'

const BIN_MS = 100
const BUCKET: KnownLimit = { kind: 'token-bucket', rate: 10, burst: 20 }

/** @param binAt the requests in the bin that begins at this time in ms */
function recordOf(seconds: number, binAt: (ms: number) => Bin): RequestRecord {
  const bins = Array.from({ length: (seconds * 1000) / BIN_MS }, (_, number) => binAt(number * BIN_MS))
  return { binMs: BIN_MS, bins, changes: [], endedMs: seconds * 1000 + 40 }
}

const none: Bin = [0, 0, 0]

test('a bucket is measured from 30 s after the first request, whatever came before', () => {
  const record = recordOf(100, ms => (ms < 5000 ? none : ms < 35_000 ? [9, 9, 9] : [1, 0, 2]))
  expect(firstRequestAt(record)).toBe(5000)
  expect(steadyFigures(BUCKET, record)).toMatchObject({
    span: { from: 35_000, to: 100_000 },
    accepted: 650,
    utilisation: 1,
    refusedShare: 0,
    heldMs: 2,
  })
})

test('a refused request counts as sent and not as used', () => {
  const record = recordOf(60, ms => (ms % 200 === 0 ? [1, 0, 0] : [0, 1, 0]))
  expect(steadyFigures(BUCKET, record)).toMatchObject({ utilisation: 0.5, refusedShare: 0.5 })
})

test('fixed windows are measured whole, after two of them, however a window is used', () => {
  const rule: KnownLimit = { kind: 'fixed-window', count: 600, windowMs: 60_000 }
  const record = recordOf(310, ms => (ms >= 7000 && ms % 60_000 < 10_000 ? [6, 0, 0] : none))
  expect(steadyFigures(rule, record)).toMatchObject({
    span: { from: 180_000, to: 300_000 },
    accepted: 1200,
    utilisation: 1,
  })
})

test('a sliding window is measured over a multiple of its length', () => {
  const rule: KnownLimit = { kind: 'sliding-window', count: 100, windowMs: 10_000 }
  const record = recordOf(59, ms => (ms % 10_000 === 0 ? [100, 0, 0] : none))
  expect(steadyFigures(rule, record)).toMatchObject({ span: { from: 30_000, to: 50_000 }, utilisation: 1 })
})

test('the utilisation of an in-flight limit is the share of time in which it is full', () => {
  const rule: KnownLimit = { kind: 'concurrency', max: 4 }
  // Each place in flight is used for 105 of 110 ms.
  const record = recordOf(63, ms => (ms % 1100 === 0 ? [40, 0, 40 * 105] : none))
  const steady = steadyFigures(rule, record)
  expect(steady?.utilisation).toBeCloseTo(105 / 110, 6)
  expect(steady?.allowed).toBeCloseTo((4 * 33_000) / 105, 6)
})

test('no accepted request means no utilisation, and too short a time means no figure', () => {
  expect(
    steadyFigures(
      { kind: 'concurrency', max: 4 },
      recordOf(60, () => [0, 1, 0]),
    ),
  ).toMatchObject({
    utilisation: 0,
    refusedShare: 1,
  })
  expect(
    steadyFigures(
      BUCKET,
      recordOf(30, () => [1, 0, 0]),
    ),
  ).toBeUndefined()
  expect(
    steadyFigures(
      BUCKET,
      recordOf(60, () => none),
    ),
  ).toBeUndefined()
})

test('the time to use a limit ends where the first 10 s that use it start', () => {
  const span = { from: 2000, to: 60_000 }
  const record = recordOf(60, ms => (ms < 20_000 ? none : [1, 0, 0]))
  // From 19 s on, nine of ten seconds are used.
  expect(timeToReach(record, { rule: BUCKET, span, utilisation: 0.9 })).toBe(17_000)
  expect(timeToReach(record, { rule: BUCKET, span: { from: 2000, to: 28_000 }, utilisation: 0.9 })).toBe(
    undefined,
  )
})

test('a limit counts as found only when hardly any request is refused', () => {
  const record = recordOf(60, ms => (ms === 30_000 ? [1, 2, 0] : [1, 0, 0]))
  const wanted = { rule: BUCKET, span: { from: 21_000, to: 60_000 }, utilisation: 0.9 }
  expect(timeToReach(record, wanted)).toBe(0)
  expect(timeToReach(record, { ...wanted, refusedShare: 0.01 })).toBe(9100)
})
