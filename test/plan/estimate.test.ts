import { expect, test } from 'vitest'
import type { ApiReader } from '../../src/api/reader.ts'
import { feedNamed } from '../../src/catalog/feeds.ts'
import type { SourceRow } from '../../src/declare/resource.ts'
import { RESOURCE_NAMES } from '../../src/declare/resource-names.ts'
import { createStored } from '../../src/engine/estimate/already-stored.ts'
import { ratesOf, secondsFor } from '../../src/engine/estimate/duration.ts'
import { estimateRequests, rowsOf, singleReads } from '../../src/engine/estimate/estimate.ts'
import {
  type Amount,
  about,
  atLeast,
  exactly,
  pages,
  sum,
  UNKNOWN,
} from '../../src/engine/estimate/row-counts.ts'

test.each<[parts: Amount[], total: Amount]>([
  [[exactly(2), exactly(3)], exactly(5)],
  [[exactly(2), about(3)], about(5)],
  [[about(2), atLeast(3)], atLeast(5)],
  [[exactly(2), UNKNOWN], atLeast(2)],
  [[UNKNOWN, UNKNOWN], UNKNOWN],
])('the sum of %j is %j: as uncertain as its least certain part', (parts, total) => {
  expect(sum(...parts)).toEqual(total)
})

test('even an empty list costs a request', () => {
  expect([pages(exactly(0), 100), pages(exactly(100), 100), pages(about(101), 100)]).toEqual([
    exactly(1),
    exactly(1),
    about(2),
  ])
})

test('no request is sent after the last one that the plan may send, and the other lists are unknown', async () => {
  let used = 0
  const api: ApiReader = {
    async read() {
      used += 1
      return { kind: 'refused', status: 400, message: 'no', isForeign: false }
    },
    used: () => used,
    answerMs: () => undefined,
  }
  const chosen = RESOURCE_NAMES
  const stored = createStored(undefined, { since: null, now: '2026-06-30T12:00:00Z', chosen })
  const { lines, isAccessRefused } = await estimateRequests(api, { chosen, stored, since: null, budget: 5 })
  expect({ used, isAccessRefused }).toEqual({ used: 5, isAccessRefused: false })
  expect(lines).toContainEqual(
    expect.objectContaining({ requests: UNKNOWN, because: 'not asked, since 5 requests were sent' }),
  )
})

let copies = 0
const copy = (header: string | null): SourceRow[] => {
  copies += 1
  return rowsOf('message_copies', [{ id: String(copies), header_message_id: header }])
}

test.each<[what: string, messages: SourceRow[][], reads: number]>([
  ['copies of one e-mail are read once', [copy('a'), copy('a'), copy('b')], 2],
  ['without a header id every message is a separate e-mail', [copy(null), copy(''), copy(null)], 3],
])('%s', (_, messages, reads) => {
  expect(singleReads(feedNamed('messages.list'), messages.flat())).toBe(reads)
})

test('an activity causes the read of its meeting, and any other activity none', () => {
  const sources = ['MEETING', 'MESSAGE', 'MEETING', 'OBJECT_CHANGE_EVENT']
  const rows = sources.map(source_type => ({ source_type }))
  expect(singleReads(feedNamed('activities.list'), rows)).toBe(2)
})

const NOTHING = { learned: undefined, ceilings: {}, answerMs: undefined, throttledTo: undefined }

test('the rate is unknown before the first answer', () => {
  expect(ratesOf(NOTHING)).toEqual([])
})

test('the slowest of several rates counts, and its source is named', () => {
  const fastest = (facts: Partial<Parameters<typeof ratesOf>[0]>) => ratesOf({ ...NOTHING, ...facts }).at(-1)
  const learned = { ratePerSecond: 20, concurrency: 8, limited: true }
  expect(fastest({ learned, answerMs: 10 })).toEqual({
    perSecond: 20,
    from: 'learned by earlier runs',
  })
  expect(fastest({ learned, ceilings: { requestsPerSecond: 5 }, answerMs: 10 })).toEqual({
    perSecond: 5,
    from: 'the ceiling api.max_requests_per_second',
  })
  expect(fastest({ answerMs: 200 })).toMatchObject({ perSecond: 20 })
  expect(fastest({ ceilings: { concurrency: 1 }, answerMs: 200 })).toMatchObject({ perSecond: 5 })
})

test.each<[what: string, facts: Partial<Parameters<typeof ratesOf>[0]>, perSecond: number[]]>([
  ['nothing answered: no time', {}, []],
  ['an unknown limit: 5, 20 and none', { answerMs: 20 }, [5, 20, 200]],
  ['slow answers: no faster limit is told', { answerMs: 400 }, [5, 10]],
  ['answers slower than any limit: one time', { answerMs: 2000 }, [2]],
  [
    'a run that was never refused: still unknown',
    { answerMs: 20, learned: { ratePerSecond: 90, concurrency: 4, limited: false } },
    [5, 20, 200],
  ],
  [
    'a learned limit: one time',
    { answerMs: 20, learned: { ratePerSecond: 40, concurrency: 4, limited: true } },
    [40],
  ],
  [
    'a learned number at a time: one time',
    { answerMs: 20, learned: { ratePerSecond: 1e4, concurrency: 2, limited: false, crowded: true } },
    [100],
  ],
  ["the owner's ceiling: one time", { answerMs: 20, ceilings: { requestsPerSecond: 30 } }, [30]],
  ["a refusal of the plan's own requests: one time", { answerMs: 20, throttledTo: 8 }, [8]],
])('the rates for the plan follow from %s', (_, facts, perSecond) => {
  expect(ratesOf({ ...NOTHING, ...facts }).map(rate => rate.perSecond)).toEqual(perSecond)
})

test('a used-up daily ceiling makes the plan longer', () => {
  const rate = { perSecond: 10, from: '' }
  expect(secondsFor(1000, rate, undefined)).toBe(100)
  expect(secondsFor(1000, rate, { perDay: 5000, usedToday: 100 })).toBe(100)
  expect(secondsFor(12_000, rate, { perDay: 5000, usedToday: 0 })).toBe(2 * 86_400)
})
