import { describe, expect, test } from 'vitest'
import { isoInstant } from '../../src/base/clock.ts'
import { createLog } from '../../src/base/log.ts'
import { growingBackoff } from '../../src/engine/context/feed-waits.ts'
import { auditInterval, auditIntervalFrom, passInterval } from '../../src/engine/context/intervals.ts'
import { createServerClock } from '../../src/engine/context/server-clock.ts'
import { dueAt } from '../../src/engine/due/by-time.ts'
import { cutAt, fits } from '../../src/engine/modes/timeline/tiling.ts'
import type { Gate } from '../../src/store/sync/gates.ts'
import { virtualClock } from '../api/virtual-clock.ts'
import { refused, startScriptedApi } from '../support/scripted-api.ts'
import { startTrial, uuid } from './trial-backfill.ts'
import { startTimed } from './trial-timed.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
const NOW = Date.parse('2026-03-04T05:06:07.000Z')
const ago = (ms: number) => new Date(NOW - ms).toISOString()

describe('the time until a span of event time is listed again', () => {
  test.each([
    ['now', 0, 5 * MINUTE],
    ['an hour ago', HOUR, 7.5 * MINUTE],
    ['a day ago', DAY, 3 * HOUR],
    ['a week ago', 7 * DAY, 21 * HOUR],
    ['56 days ago', 56 * DAY, 7 * DAY],
    ['ten years ago', 3650 * DAY, 7 * DAY],
    ['in the future', -DAY, 5 * MINUTE],
  ])('a span of event time from %s has its interval', (_, age, interval) => {
    expect(auditInterval(age)).toBe(interval)
  })
})

describe('the time until a span is listed again, from its age when it was listed', () => {
  test.each([
    [HOUR, 1],
    [10 * DAY, 1],
    [10 * DAY, 0.01],
    [10 * DAY, 4],
    [400 * DAY, 1],
  ])(
    'a span that was %d ms old falls due at its interval by its age then, with intervals scaled by %d',
    (age, intervalScale) => {
      const interval = auditIntervalFrom(age, { intervalScale })
      expect(interval).toBeCloseTo(intervalScale * auditInterval(age + interval), 3)
    },
  )

  test('with intervals scaled by more than eight, it is the scaled week', () => {
    expect(auditIntervalFrom(HOUR, { intervalScale: 10 })).toBe(70 * DAY)
  })
})

describe('when a segment is due', () => {
  const [AT_ONCE, NEVER] = [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY]
  const listed = { closed: false, listedAt: ago(HOUR), passStartedAt: null, unavailableSince: null }
  const facts = { now: NOW, intervalMs: 3 * HOUR, isNewEnough: true }
  test.each<[string, Partial<typeof listed> | object, object, number]>([
    ['its interval after its last pass', {}, {}, NOW + 2 * HOUR],
    ['at once when it was never read', { listedAt: null }, {}, AT_ONCE],
    ['at once while a pass is in progress', { passStartedAt: ago(MINUTE) }, {}, AT_ONCE],
    ['at once when it was unavailable', { unavailableSince: ago(DAY) }, {}, AT_ONCE],
    ['at once when a clock far ahead noted its pass', { listedAt: ago(-DAY) }, {}, AT_ONCE],
    ['never when it is closed', { closed: true, listedAt: null }, {}, NEVER],
    ['when it is wanted though it is closed', { closed: true }, { wantedAt: NOW + DAY }, NOW + DAY],
    ['never before the start of what is read', { listedAt: null }, { isNewEnough: false }, NEVER],
    ['when it is wanted', {}, { wantedAt: NOW + MINUTE }, NOW + MINUTE],
    ['no later when it is wanted later', {}, { wantedAt: NOW + DAY }, NOW + 2 * HOUR],
    [
      'after its wait for a failure, though it is wanted',
      {},
      { wantedAt: NOW, retryAt: NOW + HOUR },
      NOW + HOUR,
    ],
    ['at its interval when that is later than the wait', {}, { retryAt: NOW + HOUR }, NOW + 2 * HOUR],
    ['when a read can confirm, not earlier', { listedAt: null }, { confirmAt: NOW + HOUR }, NOW + HOUR],
    ['after its wait when that ends later', {}, { confirmAt: NOW, retryAt: NOW + HOUR }, NOW + HOUR],
  ])('a segment is due %s', (_, segment, more, due) => {
    expect(dueAt({ ...listed, ...segment }, { ...facts, ...more })).toBe(due)
  })
})

describe('the time until a whole list is read again', () => {
  test.each([
    ['is the usual one while a pass takes little', 6 * HOUR, 6 * MINUTE, 1, 6 * HOUR],
    ['is the usual one before any pass', 6 * HOUR, null, 1, 6 * HOUR],
    ['is twenty times what a long pass took', HOUR, 10 * MINUTE, 1, 200 * MINUTE],
    ['is a week at most', HOUR, DAY, 1, 7 * DAY],
    ['is a scaled week at most', 36_000, DAY, 0.01, 7 * DAY * 0.01],
  ])('the interval of a whole list %s', (_, usualMs, passMs, intervalScale, interval) => {
    expect(passInterval(usualMs, { passMs }, { intervalScale })).toBe(interval)
  })
})

describe('segments by age', () => {
  test.each([
    ['the newest segment is never cut', { from: ago(365 * DAY), to: null }, undefined],
    [
      'a segment that spans the last year is cut at half an hour',
      { from: ago(365 * DAY), to: ago(0) },
      ago(30 * MINUTE),
    ],
    ['a segment without a start is cut at three times its age', { from: null, to: ago(DAY) }, ago(3 * DAY)],
    ['a segment that spans six times its age is not cut', { from: ago(6 * DAY), to: ago(DAY) }, undefined],
    ['a segment older than any interval is not cut', { from: null, to: ago(60 * DAY) }, undefined],
  ])('%s', (_, segment, at) => {
    expect(cutAt(segment, NOW)).toBe(at)
  })

  test.each([
    ['the newest segment is not joined', { to: null }, { from: ago(0) }, false],
    ['young segments are joined', { to: ago(0) }, { from: ago(30 * MINUTE) }, true],
    ['segments are joined up to three times the age', { to: ago(DAY) }, { from: ago(3 * DAY) }, true],
    ['segments beyond three times the age are not joined', { to: ago(DAY) }, { from: ago(3.1 * DAY) }, false],
    ['all old segments are joined', { to: ago(60 * DAY) }, { from: null }, true],
  ])('%s', (_, newer, older, joined) => {
    expect(fits(newer, older, NOW)).toBe(joined)
  })
})

describe('the backoff of a feed', () => {
  const AT = '2026-03-01T00:00:00.000Z'
  const started = (elapsed: () => number, before: readonly Gate[] = []) =>
    growingBackoff({
      clock: { now: () => Date.parse(AT) + elapsed(), elapsed },
      random: () => 1,
      unavailableMs: DAY,
      refusedMs: MINUTE,
      before,
    })

  test('a failing feed waits longer each time, up to 15 minutes, and other feeds do not wait', () => {
    let elapsed = 0
    const backoffs = started(() => elapsed)
    const waits: number[] = []
    for (let failure = 0; failure < 10; failure += 1) {
      backoffs.failed('members.list', '')
      expect(backoffs.isWaiting('teams.list')).toBe(false)
      const wait = backoffs.waitMs('members.list')
      waits.push(wait)
      elapsed += wait
      expect(backoffs.isWaiting('members.list')).toBe(false)
    }
    expect(waits.slice(0, 4)).toEqual([5000, 10_000, 20_000, 40_000])
    expect(Math.max(...waits)).toBe(15 * MINUTE)
  })

  test('once a wait is over, one request tries, and others wait for its result', () => {
    let elapsed = 0
    const backoffs = started(() => elapsed)
    const isWaiting = () => ['deal', 'company'].map(scope => backoffs.isWaiting('crm_records.list', scope))
    backoffs.trying('crm_records.list', 'deal')
    expect(isWaiting()).toEqual([false, false])
    backoffs.failed('crm_records.list', 'deal')
    elapsed = HOUR
    const isOver = backoffs.trying('crm_records.list', 'deal')
    expect(isWaiting()).toEqual([true, false])
    isOver()
    backoffs.failed('crm_records.list', '')
    elapsed = 2 * HOUR
    const isOverForAll = backoffs.trying('crm_records.list', 'deal')
    expect(isWaiting()).toEqual([true, true])
    backoffs.answered('crm_records.list', 'deal')
    isOverForAll()
    expect(isWaiting()).toEqual([false, false])
  })

  test('the backoff starts again with short times after an answer', () => {
    let elapsed = 0
    const backoffs = started(() => elapsed)
    for (let failure = 0; failure < 5; failure += 1) backoffs.failed('members.list', '')
    elapsed = HOUR
    backoffs.answered('members.list')
    backoffs.failed('members.list', '')
    expect(backoffs.waitMs('members.list')).toBe(5000)
  })

  test('a failing scope delays no other scope, and a failing feed delays all of them', () => {
    const backoffs = started(() => 0)
    backoffs.unavailable('crm_records.list', 'deal', { reason: 'the API answers 404', wasOffered: false })
    expect([
      backoffs.isWaiting('crm_records.list', 'deal'),
      backoffs.isWaiting('crm_records.list', 'company'),
    ]).toEqual([true, false])
    backoffs.failed('crm_records.list', '')
    expect(backoffs.isWaiting('crm_records.list', 'company')).toBe(true)
  })

  test('a wait of an earlier process may be tried at once, and goes on from its length if that fails', () => {
    let elapsed = 0
    const earlier = started(() => elapsed)
    for (let failure = 0; failure < 4; failure += 1) {
      earlier.failed('crm_records.list', 'deal')
      elapsed += earlier.waitMs('crm_records.list', 'deal')
    }
    const [gate, ...others] = earlier.closed(30_000)
    expect(gate).toEqual({
      what: 'feed:crm_records.list/deal',
      kind: 'failing',
      reason: expect.any(String),
      since: AT,
      until: isoInstant(Date.parse(AT) + 75_000),
      tries: 4,
      resources: ['crm_records'],
    })
    expect(others).toEqual([])
    const later = started(() => elapsed, earlier.closed(0))
    expect(later.isWaiting('crm_records.list', 'deal')).toBe(false)
    later.failed('crm_records.list', 'deal')
    expect(later.waitMs('crm_records.list', 'deal')).toBe(80_000)
  })

  test('a gate that has not been tried for a week after its end is open, also after a start', () => {
    let elapsed = 0
    const gone = started(() => elapsed)
    gone.unavailable('crm_records.list', 'deal', { reason: 'the API answers 404', wasOffered: false })
    const gates = gone.closed(0)
    elapsed = 8 * DAY
    expect(gone.closed(0)).toEqual(gates)
    expect(started(() => elapsed, gates).closed(0)).toEqual(gates)
    elapsed += 1
    expect(gone.closed(0)).toEqual([])
    expect(started(() => elapsed, gates).closed(0)).toEqual([])
  })

  test('a short wait is no gate, and an answer opens a gate', () => {
    const backoffs = started(() => 0)
    let changes = 0
    backoffs.onChange(() => {
      changes += 1
    })
    backoffs.failed('members.list', '')
    expect(backoffs.closed(30_000)).toEqual([])
    backoffs.unavailable('teams.list', '', { reason: 'the API answers 404', wasOffered: false })
    expect(backoffs.closed(30_000)).toMatchObject([{ what: 'feed:teams.list', kind: 'unavailable' }])
    backoffs.answered('teams.list')
    expect(backoffs.closed(0)).toMatchObject([{ what: 'feed:members.list' }])
    expect(changes).toBe(3)
  })
})

describe('the estimate of the server’s clock', () => {
  async function started(apartMs: number) {
    let lines = ''
    let jumpedMs = 0
    const virtual = virtualClock(NOW)
    const clock = { ...virtual, now: () => virtual.now() + jumpedMs }
    const log = await createLog({ level: 'warn', stream: { write: (text: string) => (lines += text) } })
    const server = createServerClock(clock, log)
    /** An answer now. Its `Date` is truncated to the second. */
    const answer = () => server.observe(Math.floor((virtual.now() + apartMs) / 1000) * 1000, 0)
    return {
      clock,
      server,
      answer,
      warnings: () => lines.split('\n').length - 1,
      jump: (ms: number) => (jumpedMs += ms),
    }
  }

  test('the server’s clock is this machine’s until the first answer', async () => {
    const { server, answer } = await started(-HOUR)
    expect([server.isKnown(), server.now()]).toEqual([false, NOW])
    answer()
    expect([server.isKnown(), server.now()]).toEqual([true, NOW - HOUR])
  })

  test('the server’s clock runs evenly when this machine’s jumps', async () => {
    const { clock, server, answer, jump } = await started(0)
    answer()
    jump(5 * HOUR)
    await clock.advance(MINUTE)
    expect(server.now()).toBe(NOW + MINUTE)
  })

  test('the server’s clock is as exact as the best answer, although each is truncated to the second', async () => {
    const { clock, server, answer } = await started(0)
    for (let at = 0; at < 20; at += 1) {
      answer()
      await clock.advance(130)
    }
    expect(Math.abs(server.now() - clock.now())).toBeLessThan(130)
  })

  test('a single answer that is far from the others does not move the server’s clock', async () => {
    const { clock, server, answer } = await started(0)
    answer()
    for (const wrong of [HOUR, -HOUR, HOUR]) {
      server.observe(clock.now() + wrong, 0)
      await clock.advance(MINUTE)
      answer()
    }
    expect(server.now()).toBe(clock.now())
  })

  test.each([
    ['back', 9000, 1],
    ['ahead, after a wrong first answer', -9000, 1],
    ['back, after answers that agreed', 9000, 5],
  ])('two answers that agree move the server’s clock %s', async (_, apartMs, before) => {
    const { clock, server } = await started(0)
    for (let answers = 0; answers < before; answers += 1) server.observe(clock.now() + apartMs, 0)
    for (let answers = 0; answers < 2; answers += 1) server.observe(clock.now(), 0)
    expect(server.now()).toBe(clock.now())
  })

  test('the server’s clock moves ahead after fifteen answers in a row, as when it is set', async () => {
    const { clock, server, answer } = await started(0)
    for (let answers = 0; answers < 3; answers += 1) answer()
    for (let answers = 0; answers < 14; answers += 1) server.observe(clock.now() + HOUR, 0)
    expect(server.now()).toBe(clock.now())
    server.observe(clock.now() + HOUR, 0)
    expect(server.now()).toBe(clock.now() + HOUR)
  })

  test('replicas whose clock is ahead do not move it, whatever their share', async () => {
    const { clock, server, answer } = await started(0)
    answer()
    for (let answers = 0; answers < 100; answers += 1) {
      if (answers % 10 === 0) answer()
      else server.observe(clock.now() + HOUR, 0)
      await clock.advance(1000)
    }
    expect(Math.abs(server.now() - clock.now())).toBeLessThan(1000)
  })

  test('slow answers do not disturb the server’s clock', async () => {
    const { clock, server, answer } = await started(0)
    answer()
    const made = clock.now()
    await clock.advance(50_000)
    for (let answers = 0; answers < 3; answers += 1) server.observe(made, 50_000)
    expect(Math.abs(server.now() - clock.now())).toBeLessThan(10)
  })

  test('the server’s clock follows a drift', async () => {
    const { clock, server } = await started(0)
    for (let hour = 1; hour <= 48; hour += 1) {
      await clock.advance(HOUR)
      server.observe(clock.now() - hour * 100, 0)
    }
    expect(Math.abs(server.now() - (clock.now() - 4800))).toBeLessThan(1000)
  })

  test('a clock difference of more than 30 s is logged as one warning', async () => {
    const near = await started(29_000)
    near.answer()
    const far = await started(31_000)
    for (let answers = 0; answers < 5; answers += 1) far.answer()
    expect([near.warnings(), far.warnings()]).toEqual([0, 1])
  })
})

describe('the next due time of tasks that are never read', () => {
  test.each([
    ['a text from before sync.since', 'message_bodies', 'message_bodies.read', uuid(1)],
    ['a key that no list of ids can name', 'messages', 'messages.list.probe', 'no uuid'],
  ] as const)('%s keeps no idle daemon awake', async (_what, resource, feed, key) => {
    const api = await startScriptedApi()
    const trial = await startTrial(api)
    const since = new Date(Date.now() - DAY).toISOString()
    const { context, drain, nextDueMs } = await startTimed(api, trial, [resource], { since })
    await trial.store.transaction(() =>
      trial.store.tasks.demand({ feed, key, sortAt: ago(365 * DAY), dueAt: context.now() }),
    )
    await drain()
    expect(nextDueMs()).toBeGreaterThan(0)
  })
})

test.each([
  ['bot_definition', '/v1/bot-definition'],
  ['access_logs', '/v1/public-api-access-logs'],
] as const)(
  '%s counts as failed when its first request fails, before it has a segment',
  async (resource, route) => {
    const api = await startScriptedApi()
    api.on(route, () => refused(410))
    const trial = await startTrial(api)
    const { context, drain } = await startTimed(api, trial, [resource])
    await drain()
    expect(context.runs.failure(resource)).toBeDefined()
  },
)
