import { expect, test } from 'vitest'
import type { ApiReader } from '../../src/api/reader.ts'
import { feedNamed } from '../../src/catalog/feeds.ts'
import type { SourceRow } from '../../src/declare/resource.ts'
import { RESOURCE_NAMES, type ResourceName } from '../../src/declare/resource-names.ts'
import { createStored, type Stored } from '../../src/engine/estimate/already-stored.ts'
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

const NOW = '2026-06-30T12:00:00Z'

/** An API that gives the same answer to each request; undefined: it refuses all of them. */
function apiWith(body?: unknown): ApiReader {
  let used = 0
  return {
    async read(_, parse) {
      used += 1
      return body === undefined
        ? { kind: 'refused', status: 400, message: 'no', isForeign: false }
        : { kind: 'answer', value: parse(body), serverTime: undefined, localTime: 0 }
    },
    used: () => used,
    answerMs: () => undefined,
    requireAccess: () => undefined,
  }
}

async function linesOf(
  chosen: readonly ResourceName[],
  body: unknown,
  { since = null, ...stored }: Partial<Stored> & { since?: string | null } = {},
) {
  const nothing = createStored(undefined, { since, now: NOW, chosen })
  const { lines } = await estimateRequests(apiWith(body), {
    chosen,
    stored: { ...nothing, ...stored },
    since,
    budget: 60,
  })
  return lines.map(({ resource, requests }) => [resource, requests])
}

test('no request is sent after the last one that the plan may send, and the other lists are unknown', async () => {
  const api = apiWith()
  const chosen = RESOURCE_NAMES
  const stored = createStored(undefined, { since: null, now: NOW, chosen })
  const { lines } = await estimateRequests(api, { chosen, stored, since: null, budget: 5 })
  expect(api.used()).toBe(5)
  expect(lines).toContainEqual(
    expect.objectContaining({ requests: UNKNOWN, because: 'not asked, since 5 requests were sent' }),
  )
})

test('a list that states its length is counted exactly, from one page', async () => {
  const body = { data: [{ id: 'a' }], pagination: { page: 1, limit: 200, total_pages: 3, total_size: 450 } }
  expect(await linesOf(['members'], body)).toEqual([['members', exactly(3)]])
})

test('single reads that the warehouse knows count only when they are due', async () => {
  const body = ['a', 'b', 'c', 'd', 'e'].map(id => ({ id }))
  expect(await linesOf(['playbooks'], body, { items: () => ({ known: 4, due: 3 }) })).toEqual([
    ['playbooks', exactly(1)],
    ['playbooks', exactly(3 + 2 * 5 - 4)],
  ])
})

test('meetings that the list shows to be older than `since` are not read', async () => {
  const times = ['2026-06-01T00:00:00Z', '2026-05-01T00:00:00Z', '2026-01-01T00:00:00Z']
  const body = times.map((start_time, index) => ({ id: String(index), start_time }))
  expect(await linesOf(['meetings'], body, { since: '2026-04-01T00:00:00.000Z' })).toEqual([
    ['meetings', exactly(1)],
    // Activities may name a meeting that the list does not have.
    ['meetings', about(2)],
  ])
})

test('rows that a timeline lists again are counted as stored, so their number is not exact', async () => {
  const timeline = () => [{ again: 250, unread: undefined }]
  expect(await linesOf(['messages'], undefined, { timeline })).toEqual([['messages', about(3)]])
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
