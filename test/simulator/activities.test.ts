import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Simulator, startSimulator } from '../../src/simulator/server.ts'
import { type Ask, askOf, byId, first, micros, type Row, SMALL, walk } from './ask.ts'

let simulator: Simulator
let ask: Ask
let truth: Row[]

beforeAll(async () => {
  simulator = await startSimulator(SMALL)
  ask = askOf(simulator)
  truth = [...simulator.world.truth().items('activities')]
})
afterAll(() => simulator.close())

const linksOf = (row: Row): Row[] => (Array.isArray(row['links']) ? row['links'] : [])

test('the list has every activity with a public link once, newest first', async () => {
  const rows = await walk(ask, '/v2/activities', { limit: '7' })
  expect([...rows].sort(byId)).toEqual([...truth].sort(byId))
  const times = rows.map(row => micros(row['occurred_at']))
  expect(times).toEqual([...times].sort((a, b) => b - a))
  expect(rows.every(row => linksOf(row).length > 0)).toBe(true)
})

test('an activity without public links is absent from the list and readable singly', async () => {
  const unlisted = first(simulator.world.truth().items('unlisted_activities'))
  expect(unlisted['links']).toEqual([])
  expect((await ask(`/v2/activities/${unlisted['id']}`)).body).toEqual(unlisted)
})

test('a listed activity reads the same singly, an unknown one is 404, and a malformed id is 400', async () => {
  expect((await ask(`/v2/activities/${truth[0]?.['id']}`)).body).toEqual(truth[0])
  expect((await ask('/v2/activities/00000000-0000-4000-8000-000000000000')).status).toBe(404)
  expect((await ask('/v2/activities/nonsense')).status).toBe(400)
})

test('source_type filters, in capitals only', async () => {
  for (const type of ['MEETING', 'MESSAGE', 'OBJECT_CHANGE_EVENT']) {
    const rows = await walk(ask, '/v2/activities', { source_type: type, limit: '100' })
    expect([...rows].sort(byId)).toEqual(truth.filter(row => row['source_type'] === type).sort(byId))
    expect(rows.length).toBeGreaterThan(0)
  }
  expect((await ask('/v2/activities', { source_type: 'meeting' })).status).toBe(400)
})

test('a context filters by linked record, whatever the origin of the link', async () => {
  const link = linksOf(first(truth, row => linksOf(row).length > 1))[1] ?? {}
  const query = { context_type: String(link['context_type']), context_id: String(link['context_id']) }
  const rows = await walk(ask, '/v2/activities', query)
  const expected = truth.filter(row => linksOf(row).some(each => each['context_id'] === link['context_id']))
  expect([...rows].sort(byId)).toEqual(expected.sort(byId))
})

test('a private or unknown context is an empty list with 200', async () => {
  const { deal: deals } = simulator.world.customers.items
  deals.setState(0, 'hidden')
  const context = { context_type: 'deal', context_id: deals.ids.of(0) }
  const hidden = await ask('/v2/activities', context)
  deals.setState(0, 'published')
  expect(hidden).toMatchObject({ status: 200, body: { data: [], page_info: { end_cursor: null } } })
  expect((await ask('/v2/activities', { context_type: 'deal', context_id: 'unknown' })).body.data).toEqual([])
})

test('context_id without context_type is 400, and so is an unknown or capital context_type', async () => {
  expect((await ask('/v2/activities', { context_id: 'x' })).status).toBe(400)
  expect((await ask('/v2/activities', { context_type: 'DEAL' })).status).toBe(400)
})

test('both bounds of the period are inclusive', async () => {
  const time = String(truth[50]?.['occurred_at'])
  const rows = await walk(ask, '/v2/activities', { occurred_from: time, occurred_to: time })
  expect([...rows].sort(byId)).toEqual(
    truth.filter(row => micros(row['occurred_at']) === micros(time)).sort(byId),
  )
})

test('a message activity has the time of its message, and some name a message that is not published', async () => {
  const messages = new Map([...simulator.world.truth().items('messages')].map(row => [row['id'], row]))
  const ofMessages = truth.filter(row => row['source_type'] === 'MESSAGE')
  const known = ofMessages.filter(row => messages.has(row['source_id']))
  for (const row of known) {
    expect(micros(row['occurred_at'])).toBe(micros(messages.get(row['source_id'])?.['received_at']))
  }
  const dangling = first(ofMessages, row => !messages.has(row['source_id']))
  expect((await ask(`/v2/messages/${dangling['source_id']}`)).status).toBe(404)
  expect((await ask('/v2/messages', { ids: String(dangling['source_id']) })).body.data).toEqual([])
})

test('meetings and activities overlap partly: some withheld meetings have one, and some listed meetings have none', () => {
  const sources = new Set(truth.filter(row => row['source_type'] === 'MEETING').map(row => row['source_id']))
  const world = simulator.world.truth()
  expect([...world.items('withheld_meetings')].some(row => sources.has(row['meeting_id']))).toBe(true)
  expect([...world.items('meetings')].some(row => !sources.has(row['meeting_id']))).toBe(true)
})

test('an actor is a listed member, or system without an id, or null', () => {
  const members = new Set([...simulator.world.truth().items('members')].map(row => row['id']))
  const kinds = new Set<unknown>()
  for (const { actor } of truth) {
    if (actor === null || typeof actor !== 'object' || !('kind' in actor) || !('id' in actor)) {
      kinds.add(actor)
      continue
    }
    kinds.add(actor.kind)
    expect(actor.kind === 'member' ? members.has(actor.id) : actor.id === null).toBe(true)
  }
  expect(kinds.size).toBe(3)
})
