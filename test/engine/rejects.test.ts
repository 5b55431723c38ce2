import { describe, expect, test } from 'vitest'
import { resourceNamed } from '../../src/catalog/catalog.ts'
import type { ResourceName } from '../../src/declare/resource-names.ts'
import { recordOutcome } from '../../src/engine/run/round-end.ts'
import {
  numberedPage,
  refused,
  type ScriptedAnswer,
  signal,
  startScriptedApi,
  v1Page,
  v2Page,
} from '../support/scripted-api.ts'
import { message, startTrial } from './trial-backfill.ts'
import { startTimed } from './trial-timed.ts'

const MINUTE = 60_000
const DAY = 1440 * MINUTE
const UNRESOLVED = 'SELECT count(*) FROM sync_rejects WHERE resolved_at IS NULL'

test.each([
  ['a timeline', 'messages', '2026-01-01T00:00:00.000Z', undefined],
  ['a timeline that is read from a date on', 'messages', '2026-01-01T00:00:00.000Z', '2025-06-01'],
  [
    'a timeline, older than the date from which it is read',
    'messages',
    '2024-01-01T00:00:00.000Z',
    '2025-06-01',
  ],
  ['the access log', 'access_logs', undefined, undefined],
] as const)(
  'a reject of %s is resolved when no complete round lists it any more',
  async (_, resource, at, since) => {
    const api = await startScriptedApi()
    let isListed = true
    const rejected = () =>
      isListed ? [resource === 'messages' ? { ...message(1), id: '', received_at: at } : 'odd'] : []
    api.on('/v2/messages', () => v2Page(rejected()))
    api.on('/v1/public-api-access-logs', () => v1Page(rejected()))
    const trial = await startTrial(api)
    const resources: readonly ResourceName[] = [resource]
    await trial.run(resources)
    expect(trial.column(UNRESOLVED)).not.toEqual([0])
    isListed = false
    // The period of the reject is closed by then.
    trial.moveClock(3 * DAY)
    await trial.run(resources, since === undefined ? {} : { since })
    expect(trial.column(UNRESOLVED)).toEqual([0])
  },
)

test('equal rejects of an answer have one row, and of many different ones 1,000 are stored and the others counted', async () => {
  const api = await startScriptedApi()
  const odd = Array.from({ length: 1500 }, (_, index) => `odd ${index}`)
  api.on('/v1/members', () => numberedPage([{ id: 'mem_1' }, ...odd.slice(0, 100), ...odd]))
  const trial = await startTrial(api)
  await trial.run(['members'])
  expect(
    trial.all(`SELECT reason, count(*) AS rows FROM sync_rejects GROUP BY reason ORDER BY rows`),
  ).toEqual([
    { reason: 'not an object, and 500 other items of this answer', rows: 1 },
    { reason: 'not an object', rows: 999 },
  ])
})

test.each([
  ['activities', '/v2/activities', v2Page, (odd: number) => ({ odd })],
  ['members', '/v1/members', numberedPage, (odd: number) => ({ odd })],
  ['meetings', '/v1/meetings', v1Page, (odd: number) => ({ odd })],
  ['access_logs', '/v1/public-api-access-logs', v1Page, (odd: number) => `odd ${odd}`],
] as const)(
  'a page of %s of which no item can be stored fails, unless it has a few items',
  async (resource, path, pageOf, item) => {
    const api = await startScriptedApi()
    let items = 20
    api.on(path, () => pageOf(Array.from({ length: items }, (_, number) => item(number))))
    const trial = await startTrial(api)
    expect((await trial.run([resource])).complete).toBe(true)
    items = 21
    const { complete, resources } = await trial.run([resource])
    expect(complete).toBe(false)
    expect(resources.find(one => one.resource === resource)?.reason).toMatch(
      /None of the 21 items of a page could be stored/,
    )
  },
)

test.each([
  ['members', 'members', '/v1/members', 'id'],
  ['meetings of a collection', 'collection_meetings', '/v1/meetings', 'meeting_id'],
] as const)(
  'no row of %s counts as missing while the list has items without an id, since one may be that row',
  async (_, table, path, id) => {
    const api = await startScriptedApi()
    api.on('/v1/collections', () => v1Page([{ id: 'c' }]))
    const [first, second, unnamed, third] = [{ [id]: 'a' }, { [id]: 'b' }, { key: 'b' }, { [id]: 'c' }]
    let pages = [[first], [second]]
    api.on(path, ({ query }) => {
      const page = Number(query['page'] ?? 1)
      const pagination = { page, limit: 1, total_pages: pages.length }
      return { body: { data: pages[page - 1], pagination } }
    })
    const trial = await startTrial(api)
    const live = async () => {
      for (let run = 0; run < 4; run += 1) {
        trial.moveClock(DAY)
        await trial.run(['collections', table])
      }
      return trial.column(`SELECT ${id} FROM ${table === 'members' ? 'live_members' : table} ORDER BY ${id}`)
    }
    expect(await live()).toEqual(['a', 'b'])
    for (const order of [
      [unnamed, first],
      [first, unnamed],
    ]) {
      pages = order.map(item => [item])
      expect(await live()).toEqual(['a', 'b'])
    }
    pages = [[first], [third]]
    expect(await live()).toEqual(['a', 'c'])
  },
)

test('parts of a meeting that cannot be stored deny none that are stored', async () => {
  const api = await startScriptedApi()
  const detail = { meeting_id: 'm', overview_status: 'COMPLETED', start_time: '2026-01-01T00:00:00Z' }
  const result = (id: string) => ({ id, playbook_id: id, playbook_name: id })
  let [entries, results]: [unknown[], unknown[]] = [[{ text: 'x' }], [result('a'), result('b')]]
  api.on('/v1/meetings', () => v1Page([{ meeting_id: 'm' }]))
  api.on('/v1/meetings/{id}', () => ({ body: { data: detail } }))
  api.on('/v1/meetings/{id}/transcript', () => ({ body: { data: entries } }))
  api.on('/v1/meetings/{id}/playbook-results', () => ({ body: { data: results } }))
  const trial = await startTrial(api)
  const stored = async (runs: number) => {
    for (let run = 0; run < runs; run += 1) {
      trial.passTime(8 * DAY)
      await trial.run(['meetings', 'transcripts', 'playbook_results'])
    }
    const texts = trial.column('SELECT text FROM live_transcript_entries')
    return [...texts, ...trial.column('SELECT id FROM live_playbook_results ORDER BY id')]
  }
  expect(await stored(1)).toEqual(['x', 'a', 'b'])
  ;[entries, results] = [['x'], [result('a'), { key: 'b' }]]
  expect(await stored(3)).toEqual(['x', 'a', 'b'])
  ;[entries, results] = [[], [result('a')]]
  expect(await stored(3)).toEqual(['a'])
})

test('the reject of a member id that cannot be stored names the team', async () => {
  const api = await startScriptedApi()
  api.on('/v1/teams', () => numberedPage([{ id: 't1', name: 'East', member_ids: ['m', null, 7] }]))
  const trial = await startTrial(api)
  await trial.run(['teams'])
  const reason = 'no identity: member_id is missing or not text (in member_ids of t1)'
  expect(trial.all('SELECT item, reason FROM sync_rejects ORDER BY item')).toEqual([
    { item: '7', reason },
    { item: 'null', reason },
  ])
  expect(trial.column('SELECT member_id FROM team_members')).toEqual(['m'])
})

test('a text with half a surrogate pair is stored without it, and as sent in _extra until it is replaced', async () => {
  const api = await startScriptedApi()
  let text = 'half \ud83d'
  api.on('/v2/messages', ({ query }) => v2Page(query['ids'] ? [] : [message(1)]))
  api.on('/v2/messages/{id}', () => ({ body: { ...message(1), text } }))
  const trial = await startTrial(api)
  const stored = () => [
    ...trial.column('SELECT text FROM live_messages'),
    ...trial.column('SELECT _extra FROM message_copies'),
  ]
  await trial.run(['messages', 'message_bodies'])
  expect(stored()).toEqual(['half \ufffd', '{"text":"half \\ud83d"}'])
  expect(trial.column(UNRESOLVED)).toEqual([0])
  text = 'whole'
  await trial.store.transaction(() =>
    trial.store.tasks.demand({
      feed: 'message_bodies.read',
      key: String(message(1)['id']),
      dueAt: trial.store.dueClock.after(0),
    }),
  )
  await trial.run(['messages', 'message_bodies'])
  expect(stored()).toEqual(['whole', null])
})

test('a text of another form leaves the stored text and is a reject', async () => {
  const api = await startScriptedApi()
  let text: unknown = 'hello'
  api.on('/v2/messages', ({ query }) => v2Page(query['ids'] ? [] : [message(1)]))
  api.on('/v2/messages/{id}', () => ({ body: { ...message(1), text } }))
  const trial = await startTrial(api)
  const read = async () => {
    await trial.store.transaction(() =>
      trial.store.tasks.demand({
        feed: 'message_bodies.read',
        key: String(message(1)['id']),
        dueAt: trial.store.dueClock.after(0),
      }),
    )
    trial.moveClock(DAY)
    await trial.run(['messages', 'message_bodies'])
    return trial.column('SELECT text FROM live_messages')
  }
  expect(await read()).toEqual(['hello'])
  text = { plain: 'hello' }
  for (let run = 0; run < 3; run += 1) expect(await read()).toEqual(['hello'])
  expect(trial.column(UNRESOLVED)).toEqual([1])
  text = 'hello again'
  expect(await read()).toEqual(['hello again'])
  expect(trial.column(UNRESOLVED)).toEqual([0])
})

const READ_ONE_BY_ONE = [
  ['meetings', '/v1/meetings', '/v1/meetings/{id}', v1Page, 'meeting_id', { overview_status: 'COMPLETED' }],
  ['playbooks', '/v1/playbooks', '/v1/playbooks/{id}', numberedPage, 'id', {}],
] as const

describe.each(READ_ONE_BY_ONE)(
  'a listed record of %s whose single read fails',
  (resource, list, single, pageOf, id, fields) => {
    const startFailing = async () => {
      const api = await startScriptedApi()
      const state = {
        isListed: true,
        answer: (): ScriptedAnswer => refused(500),
      }
      api.on(list, () => pageOf([{ [id]: 'one' }, ...(state.isListed ? [{ [id]: 'two' }] : [])]))
      api.on(single, ({ params: [key] }) =>
        key === 'two' ? state.answer() : { body: { data: { [id]: key, ...fields } } },
      )
      const trial = await startTrial(api)
      return {
        state,
        async rejected() {
          await trial.run(['activities', resource])
          trial.passTime(2 * DAY)
          return trial.column(`SELECT rejected FROM sync_status WHERE resource = '${resource}'`)[0]
        },
        reads: () =>
          trial.all(`SELECT key FROM sync_tasks WHERE feed = '${resource}.detail' AND key = 'two'`),
        stored: () => trial.column(`SELECT id FROM ${resource}`),
      }
    }

    test.each([
      ['with a fault of the server', refused(500)],
      ['with a refusal', refused(422)],
      ['with another record', { body: { data: { [id]: 'three', ...fields } } }],
      ['with a 404, twice', refused(404)],
    ])('%s counts as rejected until it is stored', async (_, answer) => {
      const { state, rejected, stored } = await startFailing()
      state.answer = () => answer
      expect([await rejected(), await rejected()]).toEqual([1, 1])
      expect(stored()).toEqual(['one'])
      state.answer = () => ({ body: { data: { [id]: 'two', ...fields } } })
      expect(await rejected()).toBe(0)
      expect(stored()).toEqual(['one', 'two'])
    })

    test('counts as rejected, too, when the failure becomes a 404, and not for a single 404', async () => {
      const { state, rejected } = await startFailing()
      expect(await rejected()).toBe(1)
      state.answer = () => refused(404)
      expect(await rejected()).toBe(1)
      const again = await startFailing()
      let answers = 0
      again.state.answer = () => {
        answers += 1
        return answers === 1 ? refused(404) : { body: { data: { [id]: 'two', ...fields } } }
      }
      expect(await again.rejected()).toBe(0)
    })

    test('counts as rejected until no list has shown it for a week, and is then read no more', async () => {
      const { state, rejected, reads } = await startFailing()
      expect(await rejected()).toBe(1)
      state.isListed = false
      expect([await rejected(), await rejected(), await rejected(), await rejected()]).toEqual([1, 1, 1, 0])
      expect(reads()).toEqual([])
    })

    test('counts as rejected while it answers 404, until its list shows it no more, and is then read no more', async () => {
      const { state, rejected, reads } = await startFailing()
      state.answer = () => refused(404)
      expect([await rejected(), await rejected()]).toEqual([1, 1])
      state.isListed = false
      expect(await rejected()).toBe(0)
      expect(reads()).toEqual([])
    })
  },
)

describe('a stored meeting that answers 404 twice while a backfill reads its list', () => {
  const rejectsIn = async ({ isShown }: { isShown: boolean }) => {
    const api = await startScriptedApi()
    let isThere = true
    const reads = () => api.asked('/v1/meetings/{id}').filter(({ params: [id] }) => id === 'two').length
    let before = 0
    const isFirstPageStored = signal()
    api.on('/v1/meetings', ({ query: { cursor } }) => {
      if (isThere) return v1Page([{ meeting_id: 'one' }, { meeting_id: 'two' }])
      const page = Number(cursor ?? 0)
      if (page > 0) isFirstPageStored.give()
      trial.passTime(MINUTE)
      const meetings = page === 0 ? ['one', ...(isShown ? ['two'] : [])] : [`more ${page}`]
      const isLast = page > 0 && reads() - before >= 2
      return v1Page(
        meetings.map(meeting_id => ({ meeting_id })),
        isLast ? null : String(page + 1),
      )
    })
    api.on('/v1/meetings/{id}', async ({ params: [meeting_id] }) => {
      if (isThere || meeting_id !== 'two')
        return { body: { data: { meeting_id, overview_status: 'COMPLETED' } } }
      await isFirstPageStored.promise
      return refused(404)
    })
    const trial = await startTrial(api)
    await trial.run(['activities', 'meetings'])
    isThere = false
    before = reads()
    await trial.run(['activities', 'meetings'])
    return {
      noted: trial.column("SELECT json_extract(item, '$.meeting_id') FROM sync_rejects"),
      live: trial.column("SELECT id FROM live_meetings WHERE id = 'two'"),
    }
  }

  test('is no reject where the list does not show it, and is deleted', async () => {
    expect(await rejectsIn({ isShown: false })).toEqual({ noted: [], live: [] })
  })

  test('is a reject where the list has shown it', async () => {
    expect(await rejectsIn({ isShown: true })).toEqual({ noted: ['two'], live: ['two'] })
  })
})

test('the daemon resolves the reject of a single read that fails two days after a list has shown its record', async () => {
  const api = await startScriptedApi()
  let listed = ['one', 'two']
  api.on('/v1/meetings', () => v1Page(listed.map(meeting_id => ({ meeting_id }))))
  api.on('/v1/meetings/{id}', ({ params: [id] }) =>
    id === 'two' ? refused(500) : { body: { data: { meeting_id: id, overview_status: 'COMPLETED' } } },
  )
  const trial = await startTrial(api)
  const timed = await startTimed(api, trial, ['activities', 'meetings'])
  const rejectedAfterADay = async () => {
    await timed.drain()
    for (const name of ['activities', 'meetings'] as const) {
      await trial.store.transaction(() => recordOutcome(timed.context, resourceNamed(name), true))
      timed.context.runs.begin(name)
    }
    timed.passTime(DAY)
    for (const name of ['activities', 'meetings'] as const) timed.readAgain(name)
    return trial.column(UNRESOLVED)[0]
  }
  expect(await rejectedAfterADay()).toBe(1)
  listed = ['one']
  const later = [await rejectedAfterADay(), await rejectedAfterADay(), await rejectedAfterADay()]
  expect(later.at(-1)).toBe(0)
  expect(trial.column("SELECT key FROM sync_tasks WHERE feed = 'meetings.detail'")).toEqual(['one'])
})
