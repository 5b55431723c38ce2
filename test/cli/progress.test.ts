import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { GovernorState } from '../../src/api/governor/governor.ts'
import { sizeText } from '../../src/base/size-text.ts'
import { wholeNumber } from '../../src/base/whole-number.ts'
import { drawBars, type Overall, type ResourceBar } from '../../src/commands/backfill/bars.ts'
import {
  type AnswerSample,
  type ResourceOutlook,
  recentRate,
  requestsLeft,
  timeLeft,
  withSample,
} from '../../src/commands/backfill/forecast.ts'
import type { ResourceName } from '../../src/declare/resource-names.ts'
import type { Workload } from '../../src/store/sync/workload.ts'
import { durationText, rateText, relativeTime, wrapText } from '../../src/terminal/wording.ts'

const governor: GovernorState = {
  ratePerSecond: 45,
  concurrency: 8,
  inFlight: 8,
  throttled: 3,
  accepted: 100,
  usedToday: 103,
  reservedToday: 103,
}

const overall: Overall = {
  finished: 5,
  resources: 17,
  requests: 12_345,
  throttled: 3,
  rate: 41.2,
  governor,
  trouble: undefined,
  confirmingUntil: undefined,
  now: 1_000_000,
  elapsedMs: 125_000,
  leftMs: 3_600_000,
  isStopping: false,
}

const bodies: ResourceBar = {
  resource: 'message_bodies',
  done: 250,
  total: 1000,
  isGuess: false,
  rows: 250,
}
const activities: ResourceBar = {
  resource: 'activities',
  done: 500,
  total: undefined,
  isGuess: false,
  rows: 500,
}
const wide = { columns: 100, rows: 30, colour: false }

describe('the picture of a backfill', () => {
  test('a resource with a known total has a bar, any other only a count', () => {
    const [body = '', activity = ''] = drawBars([bodies, activities], overall, wide)
    expect(body).toMatch(/^message_bodies +\[={10}> {29}\] +250 of 1,000 +250 rows$/)
    expect(activity).toMatch(/^activities +500 rows$/)
    expect(activity.length).toBe(body.length)
  })

  test('the footer shows the rate, throttled requests and the time left', () => {
    expect(drawBars([], overall, wide)).toEqual([
      '41 requests/s (at most 45, 8 at once), 12,345 requests, 3 refused (429)',
      '5 of 17 resources read, 2 min 5 s elapsed, about 1 h left',
    ])
  })

  test('the footer omits the time left while it is not known', () => {
    const lines = drawBars([], { ...overall, leftMs: undefined, rate: undefined }, wide)
    expect(lines.join('\n')).not.toMatch(/left|requests\/s/)
  })

  test.each([
    ['asked', 'Paused: the API asked to wait, 1 min 30 s left'],
    ['throttled', 'Paused: the API throttled requests (429), 1 min 30 s left'],
    ['requests-per-day', "Paused: today's requests are used up (api.max_requests_per_day), 1 min 30 s left"],
  ] as const)('a pause is shown with its reason (%s) and its remaining time', (pauseReason, line) => {
    const paused = { ...governor, pausedUntil: overall.now + 90_000, pauseReason }
    expect(drawBars([], { ...overall, governor: paused }, wide)).toContain(line)
  })

  test.each([
    [
      'silent',
      6000,
      'No request to the API has succeeded for 40 s (connection refused): next try in 6 s, gives up in 1 min 20 s',
    ],
    [
      'refused',
      -5,
      'The API has refused access for 40 s (connection refused): trying now, gives up in 1 min 20 s',
    ],
  ] as const)('an API that is %s is shown with its start and the next attempt', (kind, nextMs, line) => {
    const { now } = overall
    const trouble = {
      kind,
      since: now - 40_000,
      nextTryAt: now + nextMs,
      reason: 'connection refused',
      givesUpAt: now + 80_000,
    }
    expect(drawBars([], { ...overall, trouble }, { ...wide, columns: 120 })).toContain(line)
  })

  test('a long line about an outage is folded, not cut', () => {
    const reason = 'The connection was closed before the answer was complete (UND_ERR_SOCKET)'
    const times = {
      since: overall.now - 40_000,
      nextTryAt: overall.now + 1000,
      givesUpAt: overall.now + 80_000,
    }
    const lines = drawBars([], { ...overall, trouble: { kind: 'silent', reason, ...times } }, wide)
    expect(lines.slice(2)).toHaveLength(2)
    expect(lines.slice(2).join(' ')).toMatch(/next try in 1 s, gives up in 1 min 20 s$/)
  })

  test('a wait to confirm suspected deletions is shown with its end', () => {
    const now = Date.parse('2026-03-04T14:00:40.000Z')
    const waiting = { ...overall, now, confirmingUntil: now + 90_000 }
    expect(drawBars([], waiting, wide)).toContain(
      'Waiting until 14:02:10 UTC to confirm suspected deletions, 1 min 30 s left',
    )
  })

  test.each([20, 40, 60, 80, 200])('at %d columns no line is longer', columns => {
    const many = { ...bodies, done: 999_999, total: 1_234_567, rows: 999_999 }
    const paused = { ...governor, pausedUntil: overall.now + 90_000, pauseReason: 'asked' as const }
    const lines = drawBars([many, activities], { ...overall, governor: paused }, { ...wide, columns })
    expect(Math.max(...lines.map(({ length }) => length))).toBeLessThanOrEqual(columns)
  })

  test('resources that do not fit are counted', () => {
    const bars = Array.from({ length: 12 }, () => activities)
    const lines = drawBars(bars, overall, { ...wide, rows: 8 })
    expect(lines).toHaveLength(8)
    expect(lines).toContain('and 7 more')
  })
})

const COUNTS = { requests: 1, throttled: 0, rowsRead: 0, rowsChanged: 0, rowsNew: 0, rowsDeleted: 0 }

function outlook(resource: ResourceName, workload: Workload, rest: Partial<ResourceOutlook> = {}) {
  return {
    resource,
    counts: COUNTS,
    finished: false,
    isUnread: false,
    areParentsFinished: true,
    workload,
    ...rest,
  }
}
const share = (done: number, total: number | undefined) => ({ done, total, isGuess: false })

describe('the remaining requests', () => {
  test('a single read counts one request, a list its pages, a finished resource none', () => {
    const left = requestsLeft([
      outlook('message_bodies', { items: share(250, 1000) }),
      outlook('activities', { lists: { ...share(100, 1050), ended: false } }),
      outlook('members', { lists: { ...share(0, 500), ended: false } }, { finished: true }),
    ])
    expect(left).toBe(750 + 10)
  })

  test('the remaining requests are unknown while a list of unknown length is read', () => {
    expect(requestsLeft([outlook('messages', { lists: { ...share(100, undefined), ended: false } })])).toBe(
      undefined,
    )
  })

  test('the remaining requests are unknown while the parents of a resource are not finished', () => {
    const waiting = { counts: { ...COUNTS, requests: 0 }, areParentsFinished: false }
    expect(requestsLeft([outlook('crm_record_links', { items: share(0, 0) }, waiting)])).toBe(undefined)
  })
})

describe('the remaining time', () => {
  const steady = (seconds: number): readonly AnswerSample[] =>
    Array.from({ length: seconds + 1 }, (_, second) => ({ at: second * 1000, answered: second * 40 })).reduce<
      readonly AnswerSample[]
    >((samples, sample) => withSample(samples, sample), [])

  test('the remaining time follows from the rate of the last minute, plus a current pause', () => {
    const rate = recentRate(steady(300))
    expect(rate).toBeCloseTo(40)
    expect(steady(300).length).toBeLessThanOrEqual(62)
    expect(timeLeft(4000, rate, 30_000)).toBeCloseTo(130_000)
  })

  test('the shown rate is that of the last seconds, so that it falls when nothing is sent', () => {
    const silent = Array.from({ length: 10 }, (_, second) => ({
      at: (301 + second) * 1000,
      answered: 12_000,
    }))
    const samples = silent.reduce<readonly AnswerSample[]>((all, one) => withSample(all, one), steady(300))
    expect(recentRate(samples)).toBeGreaterThan(30)
    expect(recentRate(samples, 9000)).toBe(0)
  })

  test('the remaining time is unknown after too short a time or without responses', () => {
    expect(recentRate(steady(2))).toBe(undefined)
    expect(timeLeft(4000, undefined, 0)).toBe(undefined)
    expect(timeLeft(4000, 0, 0)).toBe(undefined)
    expect(timeLeft(undefined, 40, 0)).toBe(undefined)
  })
})

describe('numbers in words', () => {
  test.each([
    [420, '420 ms'],
    [9_900, '9 s'],
    [184_000, '3 min 4 s'],
    [7_200_000, '2 h'],
    [93_784_000, '1 d 2 h'],
  ])('%d ms is written %s', (ms, text) => {
    expect(durationText(ms)).toBe(text)
  })

  test.each([
    [null, '-'],
    ['2026-06-30T11:59:59.800Z', 'now'],
    ['2026-06-30T11:57:00.000Z', '3 min ago'],
    ['2026-06-29T11:00:00.000Z', '1 day ago'],
    ['2026-07-03T12:00:00.000Z', 'in 3 days'],
  ])('%s is written %s', (instant, text) => {
    expect(relativeTime(instant, Date.parse('2026-06-30T12:00:00.000Z'))).toBe(text)
  })

  test('sizes and rates keep the digits that matter', () => {
    expect([sizeText(999), sizeText(14_528_512), sizeText(1_234_000_000)]).toEqual([
      '999 bytes',
      '14.5 MB',
      '1.2 GB',
    ])
    expect([rateText(0.033), rateText(4.25), rateText(1234.6)]).toEqual(['0.03', '4.3', '1,235'])
  })

  test('any whole number has commas between its thousands, as in English', () => {
    const english = new Intl.NumberFormat('en-US')
    const exactly = fc.maxSafeInteger().filter(value => !Object.is(value, -0))
    fc.assert(
      fc.property(exactly, value => {
        expect(wholeNumber(value)).toBe(english.format(value))
      }),
    )
  })

  test('sentences are broken between words, and a longer word stays whole', () => {
    expect(wrapText('to be read from the very-beginning-of-time on', 12)).toEqual([
      'to be read',
      'from the',
      'very-beginning-of-time',
      'on',
    ])
  })
})
