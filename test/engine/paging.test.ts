import { describe, expect, test } from 'vitest'
import { createPageGuard } from '../../src/engine/modes/page-guard.ts'
import {
  refused,
  type ScriptedAnswer,
  type ScriptedRequest,
  startScriptedApi,
  v1Page,
  v2Page,
} from '../support/scripted-api.ts'
import { scriptedList } from '../support/scripted-lists.ts'
import { message, minutesBack, outcomeOf, startTrial, stateOf, type Trial, uuid } from './trial-backfill.ts'
import { startTimed } from './trial-timed.ts'

const HOUR = 3_600_000
const BOUNDS = { time: 'received_at', from: 'received_from', to: 'received_to' } as const

const reasonOf = (trial: Trial, resource: string) =>
  String(trial.column(`SELECT reason FROM sync_status WHERE resource = '${resource}'`)[0])

const ids = 'SELECT id FROM message_copies ORDER BY id'
const MEMBERS = 'SELECT id FROM members ORDER BY 1'

/** A page of a list by page numbers, with the members m1, m2 and so on. */
function numbered({ size, total }: { size: number; total: number }, page: number): ScriptedAnswer {
  const data = Array.from({ length: size }, (_, index) => ({ id: `m${index + 1}`, name: 'x' }))
  const pagination = { page, limit: 2, total_size: total, total_pages: Math.ceil(total / 2) }
  return { body: { data: data.slice(2 * page - 2, 2 * page), pagination } }
}

const pageOf = ({ query }: ScriptedRequest) => Number(query['page'] ?? 1)
const uuids = (...numbers: number[]) => numbers.map(uuid)

describe('the end of a list', () => {
  test('has_next_page alone decides: a cursor on the last page is no next page', async () => {
    const api = await startScriptedApi()
    api.on('/v2/messages', () => v2Page([message(1), message(2)]))
    const trial = await startTrial(api)
    const result = await trial.run(['messages'])
    expect(result.complete).toBe(true)
    expect(api.asked('/v2/messages')).toHaveLength(1)
    expect(trial.column(ids)).toEqual(uuids(1, 2))
  })

  test('an empty page with has_next_page does not end the list', async () => {
    const api = await startScriptedApi()
    api.on('/v2/messages', ({ query }) =>
      query['cursor'] === 'second' ? v2Page([message(1)]) : v2Page([], 'second'),
    )
    const trial = await startTrial(api)
    expect((await trial.run(['messages'])).complete).toBe(true)
    expect(trial.column(ids)).toEqual(uuids(1))
  })

  test.each([
    ['messages', '/v2/messages', (cursor: string) => v2Page([], cursor), v2Page([message(1)])],
    [
      'collections',
      '/v1/collections',
      (cursor: string) => v1Page([], cursor),
      v1Page([{ id: 'a', name: 'A' }]),
    ],
  ] as const)(
    'a pass over %s with twenty pages in a row without an item waits, and goes on at its cursor',
    async (resource, route, empty, last) => {
      const api = await startScriptedApi()
      api.on(route, ({ query }) => {
        const page = Number(query['cursor'] ?? 0)
        return page < 50 ? empty(String(page + 1)) : last
      })
      const trial = await startTrial(api)
      const cursors = () => api.requests.map(({ query }) => Number(query['cursor'] ?? 0))
      await trial.run([resource])
      expect(cursors()).toEqual(Array.from({ length: 20 }, (_, page) => page))
      expect(reasonOf(trial, resource)).toMatch(/20 pages in a row without a new item/)
      for (let run = 2; run <= 3; run += 1) {
        trial.passTime(8 * 86_400_000)
        await trial.run([resource])
      }
      expect(cursors().slice(20, 51)).toEqual(Array.from({ length: 31 }, (_, page) => 20 + page))
      expect(trial.column(`SELECT rows_live FROM sync_status WHERE resource = '${resource}'`)).toEqual([1])
    },
  )

  test('has_next_page without a cursor is an error: the resource fails and the checkpoint stays', async () => {
    const api = await startScriptedApi()
    let broken = true
    api.on('/v2/messages', ({ query }) => {
      if (query['cursor'] === undefined) return v2Page([message(1)], 'second')
      if (!broken) return v2Page([message(2)])
      return { body: { data: [message(2)], page_info: { end_cursor: null, has_next_page: true } } }
    })
    const trial = await startTrial(api)
    expect(outcomeOf(await trial.run(['messages']), 'messages')).toBe('failed')
    expect(trial.column('SELECT cursor FROM sync_segments')).toEqual(['{"cursor":"second"}'])
    broken = false
    const asked = api.requests.length
    expect((await trial.run(['messages'])).complete).toBe(true)
    expect(api.requests[asked]?.query['cursor']).toBe('second')
    expect(trial.column(ids)).toEqual(uuids(1, 2))
  })

  test('a null next_cursor ends a v1 list', async () => {
    const api = await startScriptedApi()
    const collection = (id: string) => ({ id, name: id })
    api.on('/v1/collections', ({ query }) =>
      query['cursor'] === 'second' ? v1Page([collection('b')]) : v1Page([collection('a')], 'second'),
    )
    const trial = await startTrial(api)
    expect((await trial.run(['collections'])).complete).toBe(true)
    expect(trial.column('SELECT id FROM collections ORDER BY 1')).toEqual(['a', 'b'])
  })

  test('total_pages ends a page-numbered list', async () => {
    const api = await startScriptedApi()
    api.on('/v1/members', request => numbered({ size: 5, total: 5 }, pageOf(request)))
    const trial = await startTrial(api)
    expect((await trial.run(['members'])).complete).toBe(true)
    expect(trial.column(MEMBERS)).toEqual(['m1', 'm2', 'm3', 'm4', 'm5'])
    expect(api.asked('/v1/members')).toHaveLength(3)
  })

  test('a page-numbered list whose last page is full ends there', async () => {
    const api = await startScriptedApi()
    api.on('/v1/members', request =>
      pageOf(request) > 2 ? refused(500) : numbered({ size: 4, total: 4 }, pageOf(request)),
    )
    const trial = await startTrial(api)
    expect((await trial.run(['members'])).complete).toBe(true)
    expect(api.asked('/v1/members')).toHaveLength(2)
  })

  test('a page-numbered list that shows more rows than it states ends where a page repeats', async () => {
    const api = await startScriptedApi()
    api.on('/v1/members', request => numbered({ size: 4, total: 1 }, Math.min(pageOf(request), 2)))
    const trial = await startTrial(api)
    expect((await trial.run(['members'])).complete).toBe(true)
    expect(trial.column(MEMBERS)).toEqual(['m1', 'm2', 'm3', 'm4'])
  })

  test.each([
    ['none', 0],
    ['one', 1],
  ])('a page-numbered list that states %s of its rows is read completely', async (_what, total) => {
    const api = await startScriptedApi()
    api.on('/v1/members', request => numbered({ size: 5, total }, pageOf(request)))
    const trial = await startTrial(api)
    expect((await trial.run(['members'])).complete).toBe(true)
    expect(trial.column(MEMBERS)).toEqual(['m1', 'm2', 'm3', 'm4', 'm5'])
  })

  test('an object without a list is an error and not an empty list', async () => {
    const api = await startScriptedApi()
    api.on('/v1/meetings', () => v1Page([{ meeting_id: 'm1' }]))
    api.on('/v1/meetings/{id}', () => ({
      body: { data: { meeting_id: 'm1', overview_status: 'COMPLETED' } },
    }))
    const trial = await startTrial(api)
    await trial.run(['activities', 'meetings'])
    api.on('/v1/meetings', () => ({ body: { message: 'try later' } }))
    expect(outcomeOf(await trial.run(['activities', 'meetings']), 'meetings')).toBe('failed')
    expect(stateOf(trial, 'meetings')).toBe('failing')
    expect(trial.column('SELECT id FROM meetings WHERE _deleted_at IS NULL')).toEqual(['m1'])
  })

  test.each([
    ['a bare array', (rows: unknown[]) => rows],
    ['a v2 page', (data: unknown[]) => ({ data, page_info: { end_cursor: 'x', has_next_page: false } })],
    ['a v1 page', (data: unknown[]) => ({ data, pagination: { next_cursor: null } })],
    ['a numbered page', (data: unknown[]) => ({ data, pagination: { page: 1, total_pages: 1 } })],
    ['a list of its own name', (meetings: unknown[]) => ({ meetings })],
  ])('the meeting list is read from %s, by meeting_id or id', async (_shape, shape) => {
    const api = await startScriptedApi()
    api.on('/v1/meetings', () => ({ body: shape([{ meeting_id: 'm1' }, { id: 'm2' }]) }))
    api.on('/v1/meetings/{id}', ({ params }) => ({ body: { data: { meeting_id: params[0] } } }))
    const trial = await startTrial(api)
    expect((await trial.run(['activities', 'meetings'])).complete).toBe(true)
    expect(trial.column('SELECT id FROM meetings ORDER BY 1')).toEqual(['m1', 'm2'])
    expect(api.asked('/v1/meetings')[0]?.query).toEqual({})
  })

  test('a list that refuses limit is read without it', async () => {
    const api = await startScriptedApi()
    api.on('/v1/meetings', ({ query }) => {
      if (query['limit'] !== undefined) return refused(400)
      return query['cursor'] === 'second'
        ? v1Page([{ meeting_id: 'm2' }])
        : v1Page([{ meeting_id: 'm1' }], 'second')
    })
    api.on('/v1/meetings/{id}', ({ params }) => ({ body: { data: { meeting_id: params[0] } } }))
    const trial = await startTrial(api)
    expect((await trial.run(['activities', 'meetings'])).complete).toBe(true)
    expect(trial.column('SELECT id FROM meetings ORDER BY 1')).toEqual(['m1', 'm2'])
  })
})

describe('a list that returns the same cursors', () => {
  test.each([
    ['one page', ['a']],
    ['two pages', ['a', 'b']],
    ['three pages', ['a', 'b', 'c']],
  ])('a cycle of %s ends with an error and not in a loop', async (_name, circle) => {
    const api = await startScriptedApi()
    const next = (cursor: string | undefined) => circle[(circle.indexOf(cursor ?? '') + 1) % circle.length]
    const rows = [message(1), message(2), message(3)]
    const page = ({ query }: { query: Readonly<Record<string, string>> }) =>
      api.requests.length > 200 ? v2Page([]) : v2Page(rows, next(query['cursor']))
    api.on('/v2/messages', page)
    const trial = await startTrial(api)
    const result = await trial.run(['messages'])
    expect(api.requests.length).toBeLessThan(60)
    expect(outcomeOf(result, 'messages')).toBe('failed')
    expect(result.complete).toBe(false)
    expect(trial.column('SELECT outcome FROM sync_runs')).toEqual(['failed'])
    expect(trial.column("SELECT reason FROM sync_status WHERE resource = 'messages'")[0]).toMatch(
      /cursor twice/,
    )
  })

  test.each([
    ['/v1/collections', 'collections', ['collections']],
    ['/v1/public-api-access-logs', 'access_logs', ['access_logs']],
  ] as const)('a cycle on %s ends with an error too', async (route, resource, resources) => {
    const api = await startScriptedApi()
    api.on(route, ({ query }) =>
      api.requests.length > 200 ? v1Page([]) : v1Page([{ id: 'a' }], query['cursor'] === 'a' ? 'b' : 'a'),
    )
    const trial = await startTrial(api)
    expect(outcomeOf(await trial.run(resources), resource)).toBe('failed')
    expect(api.requests.length).toBeLessThan(60)
  })

  test('a cycle in the links of a record ends with an error too', async () => {
    const api = await startScriptedApi()
    const row = (object: string, number: number) => ({
      id: uuid(number),
      object,
      visibility: 'workspace',
      fields: {},
    })
    api.on('/v2/objects', () => ({ body: { data: [{ name: 'deal' }] } }))
    api.on('/v2/objects/{object}', ({ params: [name] }) => ({ body: { name, fields: [] } }))
    api.on('/v2/objects/{object}/records', ({ params: [object = ''], query }) => {
      if (query['related_id'] === undefined) return v2Page([row(object, object.length)])
      return api.requests.length > 200 ? v2Page([]) : v2Page([], query['cursor'] === 'a' ? 'b' : 'a')
    })
    const trial = await startTrial(api)
    const result = await trial.run(['crm_objects', 'crm_records', 'crm_record_links'])
    expect(outcomeOf(result, 'crm_record_links')).toBe('failed')
    expect(api.requests.length).toBeLessThan(60)
  })
})

describe('a cursor that the API refuses with 400', () => {
  const five = [1, 2, 3, 4, 5].map(number => message(number))

  test('a refused cursor restarts the pass from the top and loses no row', async () => {
    const api = await startScriptedApi()
    const list = scriptedList({
      ...BOUNDS,
      rows: five,
      pageSize: 2,
      instead: ({ number }) => (number === 2 ? refused(400, 'The cursor has expired') : undefined),
    })
    api.on('/v2/messages', list.handler)
    const trial = await startTrial(api)
    expect((await trial.run(['messages'])).complete).toBe(true)
    expect(trial.column(ids)).toEqual(uuids(1, 2, 3, 4, 5))
  })

  test('a refused cursor restarts a list without event time once', async () => {
    const api = await startScriptedApi()
    let refusals = 0
    api.on('/v1/collections', ({ query }) => {
      if (query['cursor'] === undefined) return v1Page([{ id: 'a' }], 'second')
      refusals += 1
      return refusals === 1 ? refused(400) : v1Page([{ id: 'b' }])
    })
    const trial = await startTrial(api)
    expect((await trial.run(['collections'])).complete).toBe(true)
    expect(trial.column('SELECT id FROM collections ORDER BY 1')).toEqual(['a', 'b'])
    expect(api.asked('/v1/collections').map(({ query }) => query['cursor'])).toEqual([
      undefined,
      'second',
      undefined,
      'second',
    ])
  })

  test('a second refusal fails the resource, with all rows kept and nothing deleted', async () => {
    const api = await startScriptedApi()
    let refusing = false
    api.on('/v1/collections', ({ query }) => {
      if (query['cursor'] === undefined) return v1Page([{ id: 'a' }], 'second')
      return refusing ? refused(400) : v1Page([{ id: 'b' }])
    })
    const trial = await startTrial(api)
    await trial.run(['collections'])
    refusing = true
    const result = await trial.run(['collections'])
    expect(outcomeOf(result, 'collections')).toBe('failed')
    expect(api.asked('/v1/collections')).toHaveLength(2 + 4)
    expect(trial.column('SELECT id FROM collections WHERE _deleted_at IS NULL ORDER BY 1')).toEqual([
      'a',
      'b',
    ])
  })

  test.each([
    ['a snapshot', '/v1/collections', 'collections'],
    ['a log', '/v1/public-api-access-logs', 'access_logs'],
  ] as const)(
    'a refused cursor in one run does not keep %s from being read in the next',
    async (_name, route, resource) => {
      const api = await startScriptedApi()
      let run = 1
      api.on(route, ({ query: { cursor } }) => {
        if (cursor === undefined) return v1Page([{ id: 'a' }], `given in run ${run}`)
        return run > 1 && cursor === 'given in run 2'
          ? v1Page([{ id: 'b' }])
          : refused(400, 'The cursor has expired')
      })
      const trial = await startTrial(api)
      expect(outcomeOf(await trial.run([resource]), resource)).toBe('failed')
      run = 2
      expect(outcomeOf(await trial.run([resource]), resource)).toBe('complete')
    },
  )

  test('a refused cursor in one run does not keep a timeline with rows of one instant from being read in the next', async () => {
    const api = await startScriptedApi()
    const rows = [1, 2, 3].map(number => message(number, { received_at: minutesBack(0) }))
    let refusing = true
    const list = scriptedList({
      ...BOUNDS,
      rows,
      pageSize: 2,
      instead: ({ query }) => (refusing && query['cursor'] !== undefined ? refused(400) : undefined),
    })
    api.on('/v2/messages', list.handler)
    const trial = await startTrial(api)
    expect(outcomeOf(await trial.run(['messages']), 'messages')).toBe('failed')
    refusing = false
    list.expireCursors()
    expect(outcomeOf(await trial.run(['messages']), 'messages')).toBe('complete')
    expect(trial.column(ids)).toEqual(uuids(1, 2, 3))
  })

  test('a refused cursor loses no row whose time has digits below the millisecond', async () => {
    const api = await startScriptedApi()
    const rows = [9, 7, 5, 3, 1].map((digit, index) =>
      message(index + 1, { received_at: `2026-03-04T12:00:00.000${digit}00Z` }),
    )
    rows.push(message(6), message(7))
    const list = scriptedList({
      ...BOUNDS,
      rows,
      pageSize: 3,
      instead: ({ number }) => (number === 2 ? refused(400, 'The cursor has expired') : undefined),
    })
    api.on('/v2/messages', list.handler)
    const trial = await startTrial(api)
    expect((await trial.run(['messages'])).complete).toBe(true)
    expect(trial.column(ids)).toEqual(uuids(1, 2, 3, 4, 5, 6, 7))
  })
})

test.each([
  ['collections', '/v1/collections', v1Page, (number: number) => ({ id: `c${number}` })],
  ['messages', '/v2/messages', v2Page, (number: number) => message(number)],
] as const)('a cursor of %s that the API no longer finds is given up', async (resource, path, page, row) => {
  const api = await startScriptedApi()
  const stopping = new AbortController()
  let isForgotten = false
  api.on(path, ({ query }) => {
    if (query['ids'] !== undefined) return v2Page([])
    if (query['cursor'] === undefined) return page([row(1)], isForgotten ? 'new' : 'old')
    if (query['cursor'] === 'new') return page([row(2)])
    if (isForgotten) return refused(404, 'Cursor not found')
    stopping.abort()
    return page([row(2)], 'older')
  })
  const trial = await startTrial(api)
  await trial.run([resource], { signal: stopping.signal })
  isForgotten = true
  expect(outcomeOf(await trial.run([resource]), resource)).toBe('complete')
  const table = resource === 'messages' ? 'message_copies' : resource
  expect(trial.column(`SELECT count(*) FROM ${table}`)).toEqual([2])
})

describe('an API that answers each cursor with the first page and a new cursor', () => {
  const same: Readonly<Record<string, (cursor: string) => ScriptedAnswer>> = {
    '/v1/members': () => ({ body: { data: [{ id: 'm' }], pagination: {} } }),
    '/v1/collections': cursor => v1Page([{ id: 'c' }], cursor),
    '/v2/messages': cursor => v2Page([message(1), message(2)], cursor),
    '/v1/public-api-access-logs': cursor => v1Page([], cursor),
  }

  test.each([
    ['members', '/v1/members'],
    ['collections', '/v1/collections'],
    ['messages', '/v2/messages'],
    ['access_logs', '/v1/public-api-access-logs'],
  ] as const)(
    'gets a bounded number of requests for %s, and a reason in the state',
    async (resource, path) => {
      const api = await startScriptedApi()
      let cursors = 0
      api.on(path, () => {
        cursors += 1
        return same[path]?.(String(cursors)) ?? refused(500)
      })
      const trial = await startTrial(api)
      await trial.run([resource])
      expect(api.asked(path).length).toBeLessThan(60)
      expect(reasonOf(trial, resource)).toMatch(/20 pages in a row without a new item/)
    },
  )

  test('gives each entry of the access log once, and the log waits longer after each further page', async () => {
    const api = await startScriptedApi()
    const trial = await startTrial(api)
    const entries = [1, 2, 3].map(minutes => ({
      occurred_at: new Date(trial.clock.now() - minutes * 60_000).toISOString(),
      path: '/a',
    }))
    let cursors = 0
    api.on('/v1/public-api-access-logs', () => {
      cursors += 1
      return v1Page(entries, String(cursors))
    })
    const timed = await startTimed(api, trial, ['access_logs'])
    const attempts = async () => {
      await timed.drain()
      timed.passTime(HOUR)
      return trial.column('SELECT max(attempts) FROM sync_segments')[0]
    }
    expect([await attempts(), await attempts(), await attempts()]).toEqual([1, 2, 3])
    expect(trial.column('SELECT count(*) FROM access_logs')).toEqual([3])
  })

  test('gets a bounded number of requests for rows by their ids', async () => {
    const api = await startScriptedApi()
    let listed = [message(1), message(2)]
    let cursors = 0
    api.on('/v2/messages', ({ query }) => {
      if (query['ids'] === undefined) return v2Page(listed)
      cursors += 1
      return v2Page([], String(cursors))
    })
    const trial = await startTrial(api)
    await trial.run(['messages'])
    listed = [message(1)]
    trial.passTime(86_400_000)
    await trial.run(['messages'])
    expect(cursors).toBeGreaterThan(0)
    expect(cursors).toBeLessThan(120)
    expect(trial.column(ids)).toEqual(uuids(1, 2))
  })
})

test.each([
  ['with the next cursor, and the same entries', '2', ['a', 'b'], true],
  ['with the next cursor, and other entries', '2', ['a', 'c'], false],
  ['with the next cursor, and no entry', '2', [], false],
  ['that is requested again, since it could not be stored', '1', ['a', 'b'], false],
] as const)('whether a page repeats the one before it: a page %s', (_, cursor, entries, expected) => {
  const guard = createPageGuard()
  guard.isSamePage({ cursor: '1' }, ['a', 'b'])
  expect(guard.isSamePage({ cursor }, entries)).toBe(expected)
})

describe('the guard against repeated cursors', () => {
  const next = (cursor: string) => ({ cursor })

  test('a repeated cursor is noticed, at once or later', () => {
    const guard = createPageGuard()
    for (const cursor of [null, next('a'), next('b')]) guard.asking(cursor)
    expect([null, ...['a', 'b', 'c'].map(next)].map(guard.repeats)).toEqual([false, true, true, false])
  })

  test('a full guard forgets only its oldest cursor', () => {
    const guard = createPageGuard(2)
    for (const cursor of ['a', 'b', 'c']) guard.asking(next(cursor))
    expect(['b', 'c', 'a'].map(next).map(guard.repeats)).toEqual([true, true, false])
  })
})
