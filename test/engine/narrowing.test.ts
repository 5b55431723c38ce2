import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { feedNamed } from '../../src/catalog/feeds.ts'
import {
  aloneBackoffMs,
  FAILURES_OF_ONE_PAGE,
  type FailedSpanPage,
  halves,
  isNarrowest,
  limitAfter,
  MOST_FAILURES_IN_A_ROW,
  stepAfterFailedPage,
  stepAfterFailedPass,
} from '../../src/engine/modes/narrowing.ts'
import { baseQuery } from '../../src/engine/modes/timeline/query.ts'
import { attemptsOf } from '../../src/engine/requests/attempts.ts'

const NOW = Date.parse('2026-03-04T12:00:00.000Z')
const at = (ms: number) => new Date(NOW + ms).toISOString()

const page = (more: Partial<FailedSpanPage> = {}): FailedSpanPage => ({
  mode: 'timeline',
  isAnswered: true,
  attempts: 1,
  limit: 100,
  code: 'server',
  mayPass: false,
  from: at(-8000),
  to: at(0),
  now: NOW,
  listFailures: 1,
  rowsAgain: 0,
  pagesRead: 0,
  ...more,
})

describe('a failing page of a timeline', () => {
  test.each<[string, Partial<FailedSpanPage>, object]>([
    ['is asked for with a tenth of its rows', {}, { step: 'shrink', limit: 10 }],
    ['is then asked for with one row', { limit: 10 }, { step: 'shrink', limit: 1 }],
    ['is then cut in the middle of its span', { limit: 1 }, { step: 'cut', at: NOW - 4000, limit: 1 }],
    [
      'is cut into parts that are read with ten rows a page, after more than three pages of one row',
      { limit: 1, pagesRead: 4 },
      { step: 'cut', at: NOW - 4000, limit: 10 },
    ],
    [
      'is cut into parts that are read row by row, after three of them',
      { limit: 1, pagesRead: 3 },
      { step: 'cut', at: NOW - 4000, limit: 1 },
    ],
    [
      'without a lower end is cut below its top, further with each failure',
      { limit: 1, from: null, attempts: 3 },
      { step: 'cut', at: NOW - 64_000, limit: 1 },
    ],
    [
      'without an upper end is cut above now, so that new rows are not held up',
      { limit: 1, to: null, attempts: 3 },
      { step: 'cut', at: NOW + 64_000, limit: 1 },
    ],
    [
      'without an upper end is not cut by the daemon while all else of the list fails too',
      { limit: 1, to: null, attempts: 4, mayPass: true, listFailures: FAILURES_OF_ONE_PAGE + 1 },
      { step: 'wait' },
    ],
    [
      'is stepped over where the span cannot be cut any more',
      { limit: 1, from: at(-2) },
      { step: 'step-over' },
    ],
    [
      'is asked for with fewer rows before that, so that those above the bad one are read',
      { from: at(-2), rowsAgain: 100 },
      { step: 'shrink', limit: 10 },
    ],
    [
      'is stepped over at once where those rows are many',
      { from: at(-2), rowsAgain: 101 },
      { step: 'step-over' },
    ],
    [
      'is stepped over at the start of the axis',
      { limit: 1, from: null, to: '0001-01-01T00:00:00.000Z' },
      { step: 'step-over' },
    ],
    ['is asked for once more unchanged where that may help', { mayPass: true }, { step: 'wait' }],
    ['is narrowed after that', { mayPass: true, attempts: 2 }, { step: 'shrink', limit: 10 }],
    [
      'is narrowed at once where it is too large',
      { mayPass: true, code: 'response-too-large' },
      { step: 'shrink', limit: 10 },
    ],
    ['is left alone where the whole list is refused', { code: 'refused-403' }, { step: 'wait' }],
    ['is left alone where what was read before is refused', { code: 'lost-404' }, { step: 'wait' }],
    [
      'is narrowed where the refusal has no stated meaning',
      { code: 'refused-410' },
      { step: 'shrink', limit: 10 },
    ],
    [
      'is left alone where the feed answers nothing',
      { limit: 1, listFailures: MOST_FAILURES_IN_A_ROW + 1 },
      { step: 'wait' },
    ],
  ])('a failing page %s', (_, more, next) => {
    expect(stepAfterFailedPage(page(more))).toEqual(next)
  })

  test('a failing page is cut within its span until the row is alone, in some fifty steps', () => {
    const instant = fc.option(fc.integer({ min: -1e13, max: 1e11 }))
    fc.assert(
      fc.property(instant, fc.nat(1e12), instant, (from, span, bad) => {
        let [lower, upper] = [from, from === null ? 0 : from + span].map(ms => (ms === null ? null : at(ms)))
        let steps = 0
        for (let attempts = 3; ; attempts += 1) {
          const next = stepAfterFailedPage(
            page({ limit: 1, attempts, from: lower ?? null, to: upper ?? null }),
          )
          if (next.step !== 'cut') break
          const cut = new Date(next.at).toISOString()
          expect(cut > (lower ?? '') && cut < (upper ?? '~')).toBe(true)
          if (cut > at(bad ?? 0)) upper = cut
          else lower = cut
          steps += 1
        }
        expect(steps).toBeLessThan(70)
        expect(isNarrowest('timeline', { from: lower ?? null, to: upper ?? null }) || lower === null).toBe(
          true,
        )
      }),
    )
  })

  test('pages have the usual size again after ten smaller ones were answered', () => {
    expect([1, 9, 10, 11].map(pages => limitAfter(pages, 1, 100))).toEqual([1, 1, 10, 10])
    expect([9, 10].map(pages => limitAfter(pages, 10, 100))).toEqual([10, 100])
    expect(limitAfter(10, 10, 50)).toBe(50)
    expect(limitAfter(1000, 100, 100)).toBe(100)
  })
})

describe('a failing period of a log', () => {
  const period = { mode: 'periodic', attempts: 2, limit: 0, mayPass: true, listFailures: 2 } as const
  const HOUR = 3_600_000
  test.each<[string, object, object]>([
    ['is cut in the middle', {}, { step: 'cut', at: NOW - HOUR / 2, limit: 1 }],
    ['is asked for once more first where that may help', { attempts: 1 }, { step: 'wait' }],
    ['waits where nothing else of the log was answered', { isAnswered: false }, { step: 'wait' }],
    ['waits where the whole log fails', { listFailures: FAILURES_OF_ONE_PAGE + 1 }, { step: 'wait' }],
    ['waits where the whole log is refused', { code: 'refused-403' }, { step: 'wait' }],
    [
      'is cut where the refusal has no stated meaning',
      { code: 'refused-410' },
      { step: 'cut', at: NOW - HOUR / 2, limit: 1 },
    ],
    ['is stepped over where it is a minute', { from: at(-60_000) }, { step: 'step-over' }],
  ])('a failing period %s', (_, more, next) => {
    expect(stepAfterFailedPage(page({ ...period, from: at(-HOUR), ...more }))).toEqual(next)
  })
})

test('a failing page of a list that cannot be cut is requested with fewer rows once, and then postponed', () => {
  const passed = { attempts: 1, limit: 100, code: 'server', mayPass: false }
  expect(stepAfterFailedPass(passed)).toEqual({ step: 'shrink', limit: 10 })
  expect(stepAfterFailedPass({ ...passed, limit: 10 })).toEqual({ step: 'wait' })
  expect(stepAfterFailedPass({ ...passed, attempts: 3 })).toEqual({ step: 'wait' })
  const tooLarge = { ...passed, attempts: 3, code: 'response-too-large' }
  expect(stepAfterFailedPass(tooLarge)).toEqual({ step: 'shrink', limit: 10 })
  expect(stepAfterFailedPass({ ...passed, mayPass: true })).toEqual({ step: 'wait' })
  expect(stepAfterFailedPass({ ...passed, code: 'refused-400' })).toEqual({ step: 'wait' })
  expect(stepAfterFailedPass({ ...passed, code: 'refused-410' })).toEqual({ step: 'shrink', limit: 10 })
  // A list that was requested without a limit is still requested without one.
  expect(stepAfterFailedPass({ ...passed, limit: 0 })).toEqual({ step: 'wait' })
})

test('halving the keys of a request finds every bad key, whatever their number', () => {
  fc.assert(
    fc.property(fc.array(fc.boolean(), { minLength: 1, maxLength: 100 }), bad => {
      const found: number[] = []
      let requests = 0
      const ask = (keys: readonly number[]) => {
        requests += 1
        if (!keys.some(key => bad[key])) return
        if (keys.length === 1) found.push(...keys)
        for (const half of halves(keys)) ask(half)
      }
      ask(bad.map((_, key) => key))
      expect(found).toEqual(bad.flatMap((isBad, key) => (isBad ? [key] : [])))
      expect(requests).toBeLessThanOrEqual(1 + 14 * Math.max(found.length, 0.01))
    }),
  )
})

test('a bad key is retried after growing waits, finally once a week', () => {
  const hours = [1, 2, 3, 4, 10, 11, 100].map(failures => aloneBackoffMs(failures) / 3_600_000)
  expect(hours).toEqual([0.25, 0.5, 1, 2, 128, 168, 168])
})

test.each([
  ['that has never failed', {}, Number.POSITIVE_INFINITY],
  ['that has failed', { hasFailed: true }, 1],
  ['of part of what failed', { hasFailed: true, isPart: true }, 2],
])('a page %s has its number of attempts', (_, page, attempts) => {
  expect(attemptsOf(page)).toBe(attempts)
})

test.each([
  [
    'a span that ends at an instant ends a millisecond later',
    '2026-03-04T05:06:07.123Z',
    '2026-03-04T05:06:07.124Z',
  ],
  ['a span that ends with the year 9999 has no end', '9999-12-31T23:59:59.999Z', undefined],
  ['a span without an end has none', null, undefined],
])('in a query %s', (_, to, asked) => {
  const { feed } = feedNamed('activities.list')
  if (feed.mode !== 'timeline') throw new TypeError('activities are no timeline')
  expect(baseQuery(feed, { from: null, to })[feed.bounds.to]).toBe(asked)
})
