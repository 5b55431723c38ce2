import { describe, expect, test } from 'vitest'
import { resourceNamed } from '../../src/catalog/catalog.ts'
import { planPeriods } from '../../src/engine/modes/periodic/periods.ts'
import { recordOutcome } from '../../src/engine/run/round-end.ts'
import {
  type Handler,
  refused,
  type ScriptedAnswer,
  type ScriptedRequest,
  startScriptedApi,
  v1Page,
} from '../support/scripted-api.ts'
import { outcomeOf, startTrial, stateOf } from './trial-backfill.ts'
import { startTimed } from './trial-timed.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR

interface Entry {
  occurred_at: string
  operation: string
}

/** The log, newest first. Its start is inclusive, its end exclusive. Equal times keep the order of `entries`. */
function log(entries: () => readonly Entry[], pageSize: number, end = 'to'): Handler {
  return ({ query }) => {
    const within = entries().filter(
      ({ occurred_at: at }) => !(at < (query['from'] ?? '')) && !(at >= (query[end] ?? '~')),
    )
    const start = Number(query['cursor'] ?? 0)
    const next = start + pageSize < within.length ? String(start + pageSize) : null
    return v1Page(within.slice(start, start + pageSize), next)
  }
}

/** One instant for all answers: an entry whose time moves between two of them is another entry. */
const NOW = Math.floor(Date.now() / 1000) * 1000

const ago = (ms: number) => new Date(NOW - ms).toISOString()
const entry = (ms: number, operation: string): Entry => ({ occurred_at: ago(ms), operation })

const ROUTE = '/v1/public-api-access-logs'
const OPERATIONS = 'SELECT operation FROM access_logs ORDER BY occurred_at DESC, operation'

describe('the entries of the access log', () => {
  test.each([1, 2, 3, 50])(
    'entries that are equal in every field are stored as often as they are listed (%i a page)',
    async size => {
      const api = await startScriptedApi()
      const [early, late] = [entry(2 * DAY, 'a'), entry(DAY, 'b')]
      const entries = [
        late,
        late,
        late,
        { ...late, operation: 'c' },
        late,
        early,
        early,
        entry(40 * DAY, 'd'),
      ]
      api.on(
        ROUTE,
        log(() => entries, size),
      )
      const trial = await startTrial(api)
      expect((await trial.run(['access_logs'])).complete).toBe(true)
      const expected = ['b', 'b', 'b', 'b', 'c', 'a', 'a', 'd']
      expect(trial.column(OPERATIONS)).toEqual(expected)
      const ids = trial.column('SELECT id FROM access_logs ORDER BY id')
      trial.moveClock(2 * HOUR)
      await trial.run(['access_logs'])
      trial.moveClock(2 * HOUR)
      const result = await trial.run(['access_logs'])
      expect(trial.column('SELECT id FROM access_logs ORDER BY id')).toEqual(ids)
      expect(result.resources[0]?.rowsChanged).toBe(0)
    },
  )

  test('a period that is read again adds its new entries, and none twice', async () => {
    const api = await startScriptedApi()
    const repeated = entry(600_000, 'a')
    let entries = [repeated]
    api.on(
      ROUTE,
      log(() => entries, 50),
    )
    const trial = await startTrial(api)
    await trial.run(['access_logs'])
    entries = [entry(300_000, 'b'), repeated, repeated]
    await trial.run(['access_logs'])
    expect(trial.column(OPERATIONS)).toEqual(['b', 'a', 'a'])
  })

  test('entries that the API no longer lists stay', async () => {
    const api = await startScriptedApi()
    let entries = [entry(600_000, 'a')]
    api.on(
      ROUTE,
      log(() => entries, 50),
    )
    const trial = await startTrial(api)
    await trial.run(['access_logs'])
    entries = []
    expect((await trial.run(['access_logs'])).complete).toBe(true)
    expect(trial.column('SELECT operation FROM live_access_logs')).toEqual(['a'])
  })

  test('the log is read backwards over gaps until three periods of 31 days in a row are empty, one period at a time', async () => {
    const api = await startScriptedApi()
    const entries = [entry(DAY, 'a'), entry(100 * DAY, 'b'), entry(300 * DAY, 'too far')]
    api.on(
      ROUTE,
      log(() => entries, 50),
    )
    const trial = await startTrial(api)
    expect((await trial.run(['access_logs'])).complete).toBe(true)
    expect(trial.column(OPERATIONS)).toEqual(['a', 'b'])
    // The very first request only asks for the server's time.
    const asked = api.asked(ROUTE).flatMap(({ query }) => (query['limit'] === '1' ? [] : [query]))
    for (const { from = '', to = '' } of asked) {
      expect(Date.parse(to) - Date.parse(from)).toBeLessThanOrEqual(31 * DAY)
    }
    const periods = [...new Map(asked.map(query => [query['from'], query['to']]))].sort().reverse()
    periods.slice(1).forEach(([, to], index) => {
      expect(to).toBe(periods[index]?.[0])
    })
  })

  test('a period that two passes an hour apart have read alike after its end is not read again', async () => {
    const api = await startScriptedApi()
    api.on(
      ROUTE,
      log(() => [entry(DAY, 'a')], 50),
    )
    const trial = await startTrial(api)
    for (let runs = 0; runs < 2; runs += 1) {
      await trial.run(['access_logs'])
      trial.passTime(3 * HOUR)
    }
    const before = api.requests.length
    await trial.run(['access_logs'])
    trial.passTime(3 * HOUR)
    await trial.run(['access_logs'])
    const later = api.requests.slice(before)
    expect(later.length).toBeLessThan(12)
    for (const { query } of later)
      expect(Date.parse(query['from'] ?? '')).toBeGreaterThan(trial.clock.now() - 10 * HOUR)
  })

  test('an entry that appears after its period was closed arrives with a resync', async () => {
    const api = await startScriptedApi()
    let entries = [entry(5 * DAY, 'a')]
    api.on(
      ROUTE,
      log(() => entries, 50),
    )
    const trial = await startTrial(api)
    for (let pass = 0; pass < 3; pass += 1) {
      await trial.run(['access_logs'])
      trial.passTime(2 * HOUR)
    }
    entries = [entry(4 * DAY, 'late'), ...entries]
    await trial.run(['access_logs'])
    expect(trial.column(OPERATIONS)).toEqual(['a'])
    await trial.store.transaction(() => trial.store.resync(['access_logs'], ago(0)))
    await trial.run(['access_logs'])
    expect(trial.column(OPERATIONS)).toEqual(['late', 'a'])
  })

  test('while the whole log fails, no further period is added', async () => {
    const api = await startScriptedApi()
    api.on(
      ROUTE,
      log(() => [entry(DAY, 'a')], 50),
    )
    const trial = await startTrial(api)
    await trial.run(['access_logs'])
    const timed = await startTimed(api, trial, ['access_logs'])
    const periods = () => trial.column('SELECT id FROM sync_segments').length
    const plan = () => trial.store.transaction(() => planPeriods(timed.context, 'access_logs.log'))
    timed.passTime(3 * HOUR)
    await plan()
    const before = periods()
    for (let hour = 0; hour < 20; hour += 1) {
      timed.passTime(HOUR)
      timed.context.backoffs.failed('access_logs.log', '')
      await plan()
    }
    expect(periods()).toBe(before)
    timed.context.backoffs.answered('access_logs.log')
    await plan()
    expect(periods()).toBeGreaterThan(before)
  })

  test('a log that seems empty at first is read once more, and its oldest periods again after 30 days', async () => {
    const api = await startScriptedApi()
    let entries: Entry[] = []
    api.on(
      ROUTE,
      log(() => entries, 50),
    )
    const trial = await startTrial(api)
    await trial.run(['access_logs'])
    const early = entry(20 * DAY, 'early')
    entries = [early]
    trial.passTime(2 * HOUR)
    await trial.run(['access_logs'])
    expect(trial.column(OPERATIONS)).toEqual(['early'])
    for (let runs = 0; runs < 2; runs += 1) {
      trial.passTime(2 * HOUR)
      await trial.run(['access_logs'])
    }
    entries = [early, entry(100 * DAY, 'old')]
    trial.passTime(20 * DAY)
    await trial.run(['access_logs'])
    expect(trial.column(OPERATIONS)).toEqual(['early'])
    trial.passTime(12 * DAY)
    await trial.run(['access_logs'])
    expect(trial.column(OPERATIONS)).toEqual(['early', 'old'])
  })

  test('entries that one answer lists without a time are stored with it when their period is read again', async () => {
    const api = await startScriptedApi()
    const a = entry(DAY, 'a')
    const entries = [a, a]
    const list = log(() => entries, 50)
    let isOdd = true
    api.on(ROUTE, request => {
      if (!isOdd) return list(request)
      return v1Page(entries.map(each => ({ ...each, occurred_at: null })))
    })
    const trial = await startTrial(api)
    await trial.run(['access_logs'])
    isOdd = false
    trial.passTime(3 * HOUR)
    await trial.run(['access_logs'])
    expect(trial.column('SELECT occurred_at FROM access_logs')).toEqual([a.occurred_at, a.occurred_at])
    trial.passTime(3 * HOUR)
    await trial.run(['access_logs'])
    const requests = api.requests.length
    await trial.run(['access_logs'])
    const again = api.requests
      .slice(requests)
      .filter(({ query: { from = '', to = '~' } }) => from <= a.occurred_at && a.occurred_at < to)
    expect(again).toEqual([])
  })

  test('an entry that a later answer lists without its time is stored once', async () => {
    const api = await startScriptedApi()
    const a = entry(DAY, 'a')
    const list = log(() => [a], 50)
    let isOdd = false
    api.on(ROUTE, request => (isOdd ? v1Page([{ ...a, occurred_at: null }]) : list(request)))
    const trial = await startTrial(api)
    const entries = () => trial.column('SELECT occurred_at FROM access_logs ORDER BY 1')
    await trial.run(['access_logs'])
    isOdd = true
    trial.passTime(3 * HOUR)
    await trial.run(['access_logs'])
    expect(entries()).toEqual([null, a.occurred_at])
    isOdd = false
    trial.passTime(3 * HOUR)
    await trial.run(['access_logs'])
    expect(entries()).toEqual([a.occurred_at])
  })

  test('entries that every answer lists without a time stay, and keep no period open', async () => {
    const api = await startScriptedApi()
    const undated = [
      { ...entry(DAY, 'a'), occurred_at: null },
      { ...entry(DAY, 'b'), occurred_at: null },
    ]
    const dated = entry(DAY, 'a')
    const list = log(() => [dated], 50)
    api.on(ROUTE, async request => {
      const { body } = await list(request)
      const { data } = body as { data: object[] }
      return v1Page([...data, ...undated])
    })
    const trial = await startTrial(api)
    for (let run = 0; run < 3; run++) {
      await trial.run(['access_logs'])
      trial.passTime(3 * HOUR)
    }
    expect(trial.column('SELECT operation FROM access_logs ORDER BY 1')).toEqual(['a', 'a', 'b'])
    const open = trial.column('SELECT from_at FROM sync_segments WHERE NOT closed')
    expect(open.map(at => String(at) > ago(DAY))).toEqual(open.map(() => true))
  })

  test('the log has few periods however often it was read, none longer than 31 days, and none twice', async () => {
    const api = await startScriptedApi()
    api.on(
      ROUTE,
      log(() => [entry(DAY, 'a')], 50),
    )
    const trial = await startTrial(api)
    await trial.run(['access_logs'])
    const before = trial.column('SELECT id FROM sync_segments').length
    for (let run = 0; run < 20; run++) {
      trial.passTime(2 * DAY)
      await trial.run(['access_logs'])
    }
    const [from, to] = [
      trial.column('SELECT from_at FROM sync_segments ORDER BY from_at DESC'),
      trial.column('SELECT to_at FROM sync_segments ORDER BY to_at DESC'),
    ]
    expect(to.length).toBeLessThanOrEqual(before + 4)
    expect(to.slice(1)).toEqual(from.slice(0, -1))
    const spans = from.map((at, index) => Date.parse(String(to[index])) - Date.parse(String(at)))
    expect(Math.max(...spans)).toBeLessThanOrEqual(31 * DAY)
  })

  test.each([
    ['ignores', (handler: Handler): Handler => handler],
    [
      'refuses',
      (handler: Handler): Handler =>
        request =>
          request.query['to'] === undefined ? handler(request) : refused(400),
    ],
  ])(
    'a log that %s the end parameter is read, and its reason names the wrong setting',
    async (_what, wrap) => {
      const api = await startScriptedApi()
      const entries = [entry(60_000, 'a'), entry(5 * DAY, 'b'), entry(20 * DAY, 'c'), entry(40 * DAY, 'd')]
      api.on(ROUTE, wrap(log(() => entries, 2, 'until')))
      const trial = await startTrial(api)
      const result = await trial.run(['access_logs'])
      expect(outcomeOf(result, 'access_logs')).toBe('failed')
      expect(stateOf(trial, 'access_logs')).toBe('failing')
      expect(trial.logged()).toContain('end-parameter')
      expect(trial.column(OPERATIONS)).toEqual(['a', 'b', 'c', 'd'])
      expect(api.requests.length).toBeLessThan(60)
      const right = await trial.run(['access_logs'], { endParameter: 'until' })
      expect(right.complete).toBe(true)
      expect(stateOf(trial, 'access_logs')).toBe('ok')
      expect(trial.column(OPERATIONS)).toEqual(['a', 'b', 'c', 'd'])
    },
  )

  test.each<[what: string, isRefused: (query: ScriptedRequest['query']) => boolean, words: string]>([
    ['requires an end of another name', ({ until }) => until === undefined, 'from and until are required'],
    ['refuses the limit', ({ limit }) => limit === '50', 'limit is too large'],
  ])(
    'the reason of a log that %s has the words of the API and the setting of the end',
    async (_what, isRefused, words) => {
      const api = await startScriptedApi()
      const whole = log(() => [entry(60_000, 'a')], 50, 'until')
      api.on(ROUTE, request => (isRefused(request.query) ? refused(400, words) : whole(request)))
      const trial = await startTrial(api)
      for (let run = 0; run < 2; run += 1) {
        expect(outcomeOf(await trial.run(['access_logs']), 'access_logs')).toBe('failed')
        const [reason] = trial.column("SELECT reason FROM sync_status WHERE resource = 'access_logs'")
        expect(reason).toContain(`neither with ?to= as its end nor without an end`)
        expect(reason).toContain(words)
        expect(reason).toContain('access_log.end_parameter')
      }
      expect(trial.logged()).not.toContain('does not accept ?to=')
      api.on(ROUTE, whole)
      expect((await trial.run(['access_logs'], { endParameter: 'until' })).complete).toBe(true)
    },
  )

  test('the end of a period is sent again a day after a single 400 for it', async () => {
    const api = await startScriptedApi()
    const entries = log(() => [entry(60_000, 'a'), entry(5 * DAY, 'b')], 50)
    let left = 0
    api.on(ROUTE, request => {
      if (request.query['to'] === undefined || left === 0) return entries(request)
      left -= 1
      return refused(400)
    })
    const trial = await startTrial(api)
    await trial.run(['access_logs'])
    const timed = await startTimed(api, trial, ['access_logs'])
    const asked = async () => {
      const before = api.requests.length
      timed.passTime(2 * HOUR)
      await timed.drain()
      return api.requests.slice(before).map(({ query }) => query['to'] !== undefined)
    }
    expect(await asked()).not.toContain(false)
    left = 1
    expect(await asked()).toContain(false)
    expect(await asked()).not.toContain(true)
    timed.passTime(DAY)
    expect(await asked()).not.toContain(false)
  })

  test.each([
    [
      'requires',
      (query: Readonly<Record<string, string>>) => query['from'] === undefined || query['to'] === undefined,
    ],
    [
      'requires, and refuses to tell the time alone,',
      ({ from, to, limit }: Readonly<Record<string, string>>) =>
        from === undefined || to === undefined || limit === '1',
    ],
  ])('a log that %s both bounds of a period is read completely', async (_what, isRefused) => {
    const api = await startScriptedApi()
    const whole = log(() => [entry(60_000, 'a'), entry(5 * DAY, 'b')], 50)
    api.on(ROUTE, request => (isRefused(request.query) ? refused(400) : whole(request)))
    const trial = await startTrial(api)
    expect((await trial.run(['access_logs'])).complete).toBe(true)
    expect(trial.column(OPERATIONS)).toEqual(['a', 'b'])
  })

  test('the periods follow the clock of the API, also when only a refusal shows it', async () => {
    const api = await startScriptedApi()
    const aheadMs = 5 * DAY
    const date = () => ({ date: new Date(Date.now() + aheadMs).toUTCString() })
    const whole = log(() => [entry(-aheadMs + 60_000, 'a')], 50)
    api.on(ROUTE, request => {
      const answer = request.query['limit'] === '1' ? refused(400) : whole(request)
      return { ...(answer as ScriptedAnswer), headers: date() }
    })
    const trial = await startTrial(api)
    expect((await trial.run(['access_logs'])).complete).toBe(true)
    expect(trial.column(OPERATIONS)).toEqual(['a'])
  })

  test('a failing period is left out, and read once it answers', async () => {
    const api = await startScriptedApi()
    const entries = [entry(60_000, 'a'), entry(5 * DAY, 'b'), entry(40 * DAY, 'c')]
    let isBad = true
    const whole = log(() => entries, 50)
    api.on(ROUTE, request => {
      const { from = '', limit } = request.query
      return isBad && limit !== '1' && from > ago(2 * HOUR) ? refused(500) : whole(request)
    })
    const trial = await startTrial(api)
    expect(outcomeOf(await trial.run(['access_logs']), 'access_logs')).toBe('failed')
    expect(stateOf(trial, 'access_logs')).toBe('failing')
    expect(trial.column(OPERATIONS)).toEqual(['b', 'c'])
    isBad = false
    expect((await trial.run(['access_logs'])).complete).toBe(true)
    expect(trial.column(OPERATIONS)).toEqual(['a', 'b', 'c'])
  })

  test('only the minute around a failing entry is left out, in a month and in the oldest minute', async () => {
    const api = await startScriptedApi()
    const [bad, oldest] = [entry(5 * DAY, 'bad'), entry(50 * DAY, 'bad too')]
    const good = [
      entry(60_000, 'a'),
      entry(5 * DAY - 120_000, 'b'),
      entry(5 * DAY + 120_000, 'c'),
      entry(90 * DAY, 'd'),
      entry(150 * DAY, 'e'),
    ]
    let isBad = true
    const whole = log(
      () => [...good, bad, oldest].sort((one, two) => (one.occurred_at < two.occurred_at ? 1 : -1)),
      50,
    )
    const spoils =
      ({ from = '', to = '~' }: Readonly<Record<string, string>>) =>
      ({ occurred_at: at }: Entry) =>
        at >= from && at < to
    api.on(ROUTE, request => {
      const isSpoilt = isBad && request.query['limit'] !== '1' && [bad, oldest].some(spoils(request.query))
      return isSpoilt ? refused(500) : whole(request)
    })
    const trial = await startTrial(api)
    expect(outcomeOf(await trial.run(['access_logs']), 'access_logs')).toBe('failed')
    expect(trial.column(OPERATIONS)).toEqual(['a', 'b', 'c', 'd', 'e'])
    const unread = () => trial.all('SELECT item, reason FROM sync_rejects WHERE resolved_at IS NULL')
    expect(unread()).toHaveLength(2)
    for (const { item } of unread()) {
      const { from, to } = JSON.parse(String(item))
      expect(Date.parse(to) - Date.parse(from)).toBeLessThanOrEqual(60_000)
    }
    const asked = api.asked(ROUTE).length
    // Two entries, each found by sixteen halvings of a month.
    expect(asked).toBeLessThan(140)
    // The next run reads each part once more, and what comes after it reads none of them.
    trial.passTime(2 * HOUR)
    await trial.run(['access_logs'])
    const twice = api.asked(ROUTE).length
    trial.passTime(2 * HOUR)
    await trial.run(['access_logs'])
    expect(api.asked(ROUTE).length - twice).toBeLessThan(10)

    isBad = false
    trial.moveClock(7 * DAY)
    await trial.run(['access_logs'])
    expect(stateOf(trial, 'access_logs')).toBe('ok')
    expect(trial.column(OPERATIONS)).toEqual(['a', 'b', 'bad', 'c', 'bad too', 'd', 'e'])
    expect(unread()).toEqual([])
  })

  test('the daemon ends the first round of a log without the minute around an entry that always fails', async () => {
    const api = await startScriptedApi()
    const [good, bad] = [entry(60_000, 'a'), entry(5 * DAY, 'bad')]
    const whole = log(() => [good, bad], 50)
    api.on(ROUTE, request => {
      const { from = '', to = '~' } = request.query
      return bad.occurred_at >= from && bad.occurred_at < to ? refused(500) : whole(request)
    })
    const trial = await startTrial(api)
    const timed = await startTimed(api, trial, ['access_logs'])
    for (let hour = 0; hour < 48; hour += 1) {
      await timed.drain()
      await trial.store.transaction(() => recordOutcome(timed.context, resourceNamed('access_logs'), true))
      timed.context.runs.begin('access_logs')
      trial.passTime(HOUR)
    }
    expect(trial.column(OPERATIONS)).toEqual(['a'])
    expect(
      trial.column("SELECT first_complete_at IS NULL FROM sync_resources WHERE resource = 'access_logs'"),
    ).toEqual([0])
  })

  test('a log that was always refused is unavailable, and one that was read before is failing', async () => {
    const api = await startScriptedApi()
    const whole = log(() => [entry(60_000, 'a')], 50)
    api.on(ROUTE, () => refused(403))
    const trial = await startTrial(api)
    const run = async () => outcomeOf(await trial.run(['members', 'access_logs']), 'access_logs')
    expect([await run(), stateOf(trial, 'access_logs')]).toEqual(['unavailable', 'unavailable'])
    api.on(ROUTE, whole)
    expect([await run(), stateOf(trial, 'access_logs')]).toEqual(['complete', 'ok'])
    api.on(ROUTE, () => refused(403))
    expect([await run(), stateOf(trial, 'access_logs')]).toEqual(['failed', 'failing'])
    expect(trial.column('SELECT operation FROM live_access_logs')).toEqual(['a'])
    expect(trial.column("SELECT reason FROM sync_status WHERE resource = 'access_logs'")).toEqual([
      expect.stringMatching(/ answers 403 .*\. Grant the key this permission again; stored rows are kept\.$/),
    ])
  })

  test('--since limits the requests for the log', async () => {
    const api = await startScriptedApi()
    api.on(
      ROUTE,
      log(() => [entry(DAY, 'a'), entry(3 * DAY, 'b'), entry(40 * DAY, 'c')], 50),
    )
    const trial = await startTrial(api)
    const since = ago(2 * DAY)
    expect((await trial.run(['access_logs'], { since })).complete).toBe(true)
    expect(trial.column(OPERATIONS)).toEqual(['a'])
    for (const { query } of api.asked(ROUTE)) expect((query['from'] ?? '') >= since).toBe(true)
    expect((await trial.run(['access_logs'])).complete).toBe(true)
    expect(trial.column(OPERATIONS)).toEqual(['a', 'b', 'c'])
  })
})

test.each<[how: string, ScriptedAnswer]>([
  ['with an error', refused(500)],
  ['without an answer', { cut: true }],
  ['with a page of a gateway', { status: 502, text: '<html>' }],
])('a log whose first request ends %s is read by the clock of the server', async (_, first) => {
  const api = await startScriptedApi()
  const trial = await startTrial(api)
  trial.moveClock(2 * DAY)
  const route = '/v1/public-api-access-logs'
  api.on(route, () => (api.asked(route).length === 1 ? first : v1Page([])))
  expect((await trial.run(['access_logs'])).complete).toBe(true)
  const [newest] = trial.column('SELECT max(to_at) FROM sync_segments')
  expect(Date.parse(String(newest))).toBeLessThan(Date.now() + HOUR)
})
