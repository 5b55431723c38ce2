import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Simulator, startSimulator } from '../../src/simulator/server.ts'
import { type Ask, askOf, byId, first, micros, type Row, walk } from './ask.ts'

let simulator: Simulator
let ask: Ask
let truth: Row[]

beforeAll(async () => {
  simulator = await startSimulator({ seed: 3, messages: 1_500, meetings: 5, deals: 20 })
  ask = askOf(simulator)
  truth = [...simulator.world.truth().items('messages')]
})
afterAll(() => simulator.close())

const withoutText = ({ text: _, ...rest }: Row): Row => rest

test('the list has every published message once, newest first by the true instant, without its text', async () => {
  const rows = await walk(ask, '/v2/messages', { limit: '100' })
  expect([...rows].sort(byId)).toEqual(truth.map(withoutText).sort(byId))
  const times = rows.map(row => micros(row['received_at']))
  expect(times).toEqual([...times].sort((a, b) => b - a))
})

test('small pages give the same order as large ones, across runs of equal times that are longer than a page', async () => {
  const large = await walk(ask, '/v2/messages', { limit: '100' })
  const small = await walk(ask, '/v2/messages', { limit: '30' })
  expect(small.map(row => row['id'])).toEqual(large.map(row => row['id']))
  const times = large.map(row => micros(row['received_at']))
  const longest = Math.max(...times.map(time => times.filter(each => each === time).length))
  expect(longest).toBeGreaterThan(100)
})

test('a page has 30 messages without a limit, and end_cursor is present even on the last page', async () => {
  const { body } = await ask('/v2/messages')
  expect(body.data).toHaveLength(30)
  const oldest = truth.map(row => micros(row['received_at'])).sort((a, b) => a - b)[3] ?? 0
  const last = await ask('/v2/messages', { received_to: new Date(oldest / 1_000).toISOString() })
  expect(last.body.page_info).toEqual({ end_cursor: expect.any(String), has_next_page: false })
  const behind = await ask('/v2/messages', {
    received_to: new Date(oldest / 1_000).toISOString(),
    cursor: last.body.page_info?.end_cursor ?? '',
  })
  expect(behind.body).toEqual({ data: [], page_info: { end_cursor: null, has_next_page: false } })
})

test('both bounds of the period are inclusive, to the microsecond', async () => {
  const [newer, older] = (await walk(ask, '/v2/messages', { limit: '100' })).filter(row =>
    /\.\d{6}Z$/.test(String(row['received_at'])),
  )
  const from = String(older?.['received_at'])
  const to = String(newer?.['received_at'])
  const rows = await walk(ask, '/v2/messages', { received_from: from, received_to: to })
  const expected = truth.filter(row => {
    const time = micros(row['received_at'])
    return time >= micros(from) && time <= micros(to)
  })
  expect([...rows].sort(byId)).toEqual(expected.map(withoutText).sort(byId))
  expect(rows[0]?.['received_at']).toBe(to)
})

test('date-times come in several zones and precisions', () => {
  const forms = new Set(
    truth.map(row =>
      String(row['received_at'])
        .slice(19)
        .replace(/\d(?=\d*[Z+-])/g, 'n'),
    ),
  )
  expect(forms.size).toBeGreaterThanOrEqual(6)
})

test('ids returns the published messages in list order, and drops unknown ids silently', async () => {
  const some = truth.slice(0, 40)
  const ids = [...some.map(row => String(row['id'])), '00000000-0000-4000-8000-000000000000'].join(',')
  const { body } = await ask('/v2/messages', { ids, limit: '100' })
  expect([...(body.data ?? [])].sort(byId)).toEqual(some.map(withoutText).sort(byId))
  expect(body.page_info?.has_next_page).toBe(false)
})

test('ids returns 30 messages without a limit, and has pages', async () => {
  const ids = truth
    .slice(0, 40)
    .map(row => row['id'])
    .join(',')
  const { body } = await ask('/v2/messages', { ids })
  expect(body.data).toHaveLength(30)
  expect(body.page_info?.has_next_page).toBe(true)
  expect(await walk(ask, '/v2/messages', { ids })).toHaveLength(40)
})

test('ids is 400 when empty, with more than 100 ids, or with an id that is not a UUID', async () => {
  const id = String(truth[0]?.['id'])
  for (const ids of ['', 'nonsense', `${id},`, `${id},nonsense`, Array(101).fill(id).join(',')]) {
    expect((await ask('/v2/messages', { ids })).status).toBe(400)
  }
  expect((await ask('/v2/messages', { ids: Array(100).fill(id).join(',') })).body.data).toHaveLength(1)
})

test('thread_id limits the list to one thread, an unknown one is empty, and an empty one is 400', async () => {
  const thread = String(first(truth, row => row['thread_id'] !== null)['thread_id'])
  const rows = await walk(ask, '/v2/messages', { thread_id: thread, limit: '2' })
  expect([...rows].sort(byId)).toEqual(
    truth
      .filter(row => row['thread_id'] === thread)
      .map(withoutText)
      .sort(byId),
  )
  expect((await ask('/v2/messages', { thread_id: 'unknown' })).body.data).toEqual([])
  for (const name of ['thread_id', 'received_from', 'received_to']) {
    expect((await ask('/v2/messages', { [name]: '' })).status).toBe(400)
  }
})

test('the single read is the message with its text at the top level', async () => {
  for (const message of truth.slice(0, 20)) {
    const { status, body } = await ask(`/v2/messages/${message['id']}`)
    expect(status).toBe(200)
    expect(body).toEqual(message)
    expect(body).toHaveProperty('text')
  }
})

test('an id that is not a UUID is 400, and unknown and unpublished messages are the same 404', async () => {
  expect((await ask('/v2/messages/nonsense')).status).toBe(400)
  const { items } = simulator.world.messages
  const hidden = Array.from({ length: items.count() }, (_, n) => n).filter(n => !items.isPublished(n))
  expect(hidden.length).toBeGreaterThan(0)
  const unknown = await ask('/v2/messages/00000000-0000-4000-8000-000000000000')
  const unpublished = await ask(`/v2/messages/${items.ids.of(hidden[0] ?? 0)}`)
  expect(unknown.status).toBe(404)
  expect(unpublished).toMatchObject({ status: 404, text: unknown.text })
})

test('one e-mail comes in several copies with one Message-ID, some of which hide subject and text', () => {
  const copies = new Map<unknown, Row[]>()
  for (const row of truth) {
    if (row['header_message_id'])
      copies.set(row['header_message_id'], [...(copies.get(row['header_message_id']) ?? []), row])
  }
  const several = [...copies.values()].filter(list => list.length > 1)
  expect(several.length).toBeGreaterThan(100)
  expect(
    several.some(list => list.some(row => row['subject'] === null) && list.some(row => row['subject'])),
  ).toBe(true)
  expect(several.some(list => list.some(row => row['text'] === null) && list.some(row => row['text']))).toBe(
    true,
  )
})

test('some messages have an empty, null or missing Message-ID', () => {
  expect(truth.some(row => row['header_message_id'] === '')).toBe(true)
  expect(truth.some(row => !row['header_message_id'] && row['header_message_id'] !== '')).toBe(true)
})

test('participants are ordered by role, and within a role by handle', () => {
  const roles = ['FROM', 'TO', 'CC', 'BCC']
  for (const row of truth) {
    const keys = [...Object.values(row['participants'] ?? [])].map(
      each => `${roles.indexOf(each.role)} ${each.handle}`,
    )
    expect(keys).toEqual([...keys].sort())
  }
})

test('texts have realistic lengths: a mean of one to two kilobytes with a long tail', () => {
  const lengths = truth.flatMap(row =>
    typeof row['text'] === 'string' ? [Buffer.byteLength(row['text'])] : [],
  )
  const mean = lengths.reduce((sum, length) => sum + length, 0) / lengths.length
  expect(mean).toBeGreaterThan(1_000)
  expect(mean).toBeLessThan(2_200)
  expect(Math.max(...lengths)).toBeGreaterThan(25_000)
})
