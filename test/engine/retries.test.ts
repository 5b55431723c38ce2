import { describe, expect, test } from 'vitest'
import { resourceNamed } from '../../src/catalog/catalog.ts'
import type { ResourceName } from '../../src/declare/resource-names.ts'
import { hasFirstReads } from '../../src/engine/due/first-reads.ts'
import { refused, type ScriptedAnswer, startScriptedApi, v1Page, v2Page } from '../support/scripted-api.ts'
import { startCrm } from './crm-world.ts'
import { message, outcomeOf, startTrial, type Trial, uuid } from './trial-backfill.ts'
import { startTimed } from './trial-timed.ts'

const ANSWERS: Readonly<Record<string, ScriptedAnswer>> = {
  '/v1/meetings': v1Page([{ meeting_id: 'x' }]),
  '/v1/meetings/{id}': { body: { data: { meeting_id: 'x' } } },
  '/v1/bot-definition': { body: { data: { name: 'bot' } } },
  '/v1/public-api-access-logs': v1Page([]),
  '/v2/messages': v2Page([message(1)]),
  '/v2/messages/{id}': { body: { ...message(1), text: 'Text' } },
}

const TEXTS: ResourceName[] = ['messages', 'message_bodies']

/** What is read, the route that fails, and where its failures are noted. */
const READS: readonly [string, ResourceName[], string, 'sync_segments' | 'sync_tasks'][] = [
  ['a list in time order', ['messages'], '/v2/messages', 'sync_segments'],
  ['a whole list', ['meetings'], '/v1/meetings', 'sync_segments'],
  ['a document', ['bot_definition'], '/v1/bot-definition', 'sync_segments'],
  ['a row of a list', ['meetings'], '/v1/meetings/{id}', 'sync_tasks'],
  ['the text of a stored row', TEXTS, '/v2/messages/{id}', 'sync_tasks'],
]

async function startWorkspace() {
  const api = await startScriptedApi()
  for (const [route, answer] of Object.entries(ANSWERS)) api.on(route, () => answer)
  return { api, trial: await startTrial(api) }
}

const noted = (trial: Trial, table: string) => trial.column(`SELECT tries FROM ${table} WHERE tries > 0`)

const retried = (trial: Trial) =>
  trial
    .logged()
    .split('\n')
    .flatMap(line => (line.includes('Request is retried') ? [JSON.parse(line).attempt] : []))

describe('a failed request', () => {
  test.each(READS)(
    'five failures are followed by a sixth request: %s',
    async (_, resources, route, table) => {
      const { api, trial } = await startWorkspace()
      api.on(route, () => (api.asked(route).length < 6 ? refused(503) : (ANSWERS[route] ?? {})))
      expect((await trial.run(resources)).complete).toBe(true)
      expect(retried(trial)).toEqual([1, 2, 3, 4, 5])
      expect(noted(trial, table)).toEqual([])
    },
  )

  test.each(READS)(
    'a run that is interrupted leaves its failures noted, and the next begins with its first try: %s',
    async (_, resources, route, table) => {
      const { api, trial } = await startWorkspace()
      const stopping = new AbortController()
      api.on(route, () => {
        if (api.asked(route).length === 4) stopping.abort()
        return refused(503)
      })
      await trial.run(resources, { signal: stopping.signal })
      expect(noted(trial, table)).toEqual([3])
      await trial.run(resources)
      expect(retried(trial).slice(0, 8)).toEqual([1, 2, 3, 1, 2, 3, 4, 5])
      expect(noted(trial, table)).toEqual([])
    },
  )

  test('the tries of each half of a request for several keys are counted separately', async () => {
    const api = await startScriptedApi()
    const asked = new Map<string, number>()
    api.on('/v2/objects', () => ({ body: { data: [{ name: 'company' }] } }))
    api.on('/v2/objects/{object}', ({ params: [name] }) => ({ body: { name, fields: [] } }))
    api.on('/v2/objects/{object}/records', ({ params: [object], query: { ids = '' } }) => {
      const keys = ids === '' ? [] : ids.split(',')
      const times = (asked.get(ids) ?? 0) + 1
      asked.set(ids, times)
      const isSmallAndNew = keys.length > 0 && keys.length <= 2 && times === 1
      if (keys.includes(uuid(3)) || isSmallAndNew) return refused(500)
      return v2Page(keys.map(id => ({ id, object, fields: {} })))
    })
    const trial = await startTrial(api)
    const resources: ResourceName[] = ['crm_objects', 'crm_records']
    await trial.run(resources)
    const { store } = trial
    await store.transaction(() => {
      const list = { feed: 'crm_records.list.changed', scope: 'company' }
      for (const number of [0, 1, 2, 3, 4, 5, 6, 7])
        store.tasks.demand({ ...list, key: uuid(number), dueAt: store.dueClock.now() })
    })
    await trial.run(resources)
    expect(trial.column('SELECT id FROM crm_records ORDER BY 1')).toEqual([0, 1, 2, 4, 5, 6, 7].map(uuid))
  })

  test.each([
    ['a page that always fails is given up', 0, Number.POSITIVE_INFINITY, 7],
    ['the tries of each page are counted separately', 5, 5, 12],
  ])('of the list of one row %s', async (_, first, second, requests) => {
    const world = await startCrm({ deal: { 1: { updated: -60 } }, company: { 2: { updated: -60 } } })
    const trial = await startTrial(world.api)
    const left = { first, second }
    let asked = 0
    world.instead['company'] = ({ query: { related_id: related, cursor } }) => {
      if (related === undefined) return undefined
      asked += 1
      const page = cursor === undefined ? 'first' : 'second'
      left[page] -= 1
      if (left[page] >= 0) return refused(500)
      return v2Page([{ id: uuid(2), object: 'company' }], page === 'first' ? 'more' : undefined)
    }
    await trial.run(['crm_objects', 'crm_records', 'crm_record_links'])
    expect(asked).toBe(requests)
  })

  test('a request that the API throttles has not failed', async () => {
    const { api, trial } = await startWorkspace()
    const route = '/v2/messages'
    const throttled = { ...refused(429), headers: { 'Retry-After': '0' } }
    api.on(route, () => (api.asked(route).length < 2 ? throttled : (ANSWERS[route] ?? {})))
    expect((await trial.run(['messages'])).complete).toBe(true)
    expect(retried(trial)).toEqual([])
  })

  test('a request that is refused with 429 has failed if others of its route are accepted meanwhile', async () => {
    const { api, trial } = await startWorkspace()
    const numbers = Array.from({ length: 12 }, (_, index) => index + 1)
    api.on('/v2/messages', () => v2Page(numbers.map(number => message(number))))
    api.on('/v2/messages/{id}', ({ params: [id = ''] }) =>
      id === uuid(3)
        ? { ...refused(429), headers: { 'Retry-After': '0.02' } }
        : { body: { id, text: 'Text' } },
    )
    const run = await trial.run(TEXTS)
    expect(outcomeOf(run, 'message_bodies')).toBe('failed')
    expect(trial.column("SELECT id FROM messages WHERE text_state = 'pending'")).toEqual([uuid(3)])
    expect(retried(trial)).toEqual([1, 2, 3, 4, 5])
  })

  test.each([
    ['a 404 of the API says that there is no text', refused(404), 'complete', 'gone', 1],
    [
      'a 404 that is a web page is retried',
      { status: 404, text: '<p>Not found</p>' },
      'failed',
      'pending',
      6,
    ],
  ])('%s', async (_, answer, outcome, state, requests) => {
    const { api, trial } = await startWorkspace()
    api.on('/v2/messages/{id}', () => answer)
    expect(outcomeOf(await trial.run(TEXTS), 'message_bodies')).toBe(outcome)
    expect(trial.column('SELECT text_state FROM messages')).toEqual([state])
    expect(api.asked('/v2/messages/{id}')).toHaveLength(requests)
  })

  test('a text that is tried again is still to be read, and is one', async () => {
    const { api, trial } = await startWorkspace()
    await trial.run(['messages'])
    const { context } = await startTimed(api, trial, TEXTS)
    const task = { feed: 'message_bodies.read', scope: '', key: uuid(1), sortAt: null, dueAt: '' }
    const texts = resourceNamed('message_bodies')
    const pending: unknown[] = []
    const states = await trial.store.transaction(() => {
      const before = hasFirstReads(context, texts)
      trial.store.tasks.tryAgain(task, {
        now: trial.store.dueClock.now(),
        at: trial.store.dueClock.after(20_000),
      })
      const meanwhile = hasFirstReads(context, texts)
      pending.push(...trial.column("SELECT pending_tasks FROM sync_status WHERE resource = 'message_bodies'"))
      trial.store.tasks.remove(task)
      return [before, meanwhile]
    })
    expect(states).toEqual([true, true])
    expect(pending).toEqual([1])
  })
})

test.each(['first read', 'reread'])('a text whose %s has failed is one pending read', async read => {
  const { api, trial } = await startWorkspace()
  if (read === 'reread') {
    await trial.run(TEXTS)
    const task = { feed: 'message_bodies.read', key: uuid(1), dueAt: trial.store.dueClock.after(0) }
    await trial.store.transaction(() => trial.store.tasks.add(task))
  }
  api.on('/v2/messages/{id}', () => refused(500))
  expect(outcomeOf(await trial.run(TEXTS), 'message_bodies')).toBe('failed')
  const pending = "SELECT pending_tasks FROM sync_status WHERE resource = 'message_bodies'"
  expect(trial.column(pending)).toEqual([1])
})

describe('a task that is tried again', () => {
  const NOW = '2026-01-01T00:00:00.000Z'
  const LATER = '2026-01-01T00:00:05.000Z'
  const AT = '2026-01-01T00:00:20.000Z'
  const key = { feed: 'meetings.detail', scope: '', key: 'x' }

  /** Which keys each way of taking tasks finds at an instant, after `prepare`, and when the feed has work again. */
  async function found(prepare: (tasks: Trial['store']['tasks']) => void, now: string) {
    const { trial } = await startWorkspace()
    const { tasks } = trial.store
    return trial.store.transaction(() => {
      prepare(tasks)
      const query = { feed: key.feed, now, limit: 10 }
      const round = { ...query, round: 9 }
      const all = [
        tasks.due({ ...round, everyRound: true }),
        tasks.due({ ...round, everyRound: false }),
        tasks.dueBy({ ...query, first: 'newest' }),
        tasks.dueBy({ ...query, first: 'longest-due' }),
      ]
      return [all.map(one => one.length), tasks.nextDue(key.feed, { now }), tasks.nextTry(key.feed, { now })]
    })
  }
  const fail = (tasks: Trial['store']['tasks']) =>
    tasks.tryAgain({ ...key, sortAt: null, dueAt: '' }, { now: NOW, at: AT })

  test.each<[string, (tasks: Trial['store']['tasks']) => void]>([
    ['a first read', fail],
    [
      'a key that is read in each round',
      tasks => {
        tasks.done(key, { round: 3, dueAt: NOW })
        fail(tasks)
      },
    ],
    [
      'a demand',
      tasks => {
        tasks.demand({ ...key, dueAt: NOW })
        fail(tasks)
      },
    ],
  ])('is not read before its time: %s', async (_, prepare) => {
    expect(await found(prepare, LATER)).toEqual([[0, 0, 0, 0], AT, AT])
    expect(await found(prepare, AT)).toEqual([[1, 1, 1, 1], NOW, undefined])
  })

  test('a demand that comes while it is requested keeps its time', async () => {
    const { trial } = await startWorkspace()
    const { tasks } = trial.store
    const task = await trial.store.transaction(() => {
      tasks.demand({ ...key, dueAt: LATER })
      fail(tasks)
      return tasks.find(key)
    })
    expect(task).toMatchObject({ tries: 1, tryAt: AT, dueAt: LATER })
  })
})
