import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Simulator, startSimulator } from '../../src/simulator/server.ts'
import { type Ask, askOf, byId, first, type Row, SMALL, walk } from './ask.ts'

let simulator: Simulator
let ask: Ask

beforeAll(async () => {
  simulator = await startSimulator(SMALL)
  ask = askOf(simulator)
})
afterAll(() => simulator.close())

const recordsOf = (object: string): Row[] =>
  [...simulator.world.truth().items('crm_records')].filter(row => row['object'] === object)
const pathOf = (object: unknown): string => `/v2/objects/${encodeURIComponent(String(object))}`

test('the object list names deal, pipeline, stage and custom objects, but not company and contact', async () => {
  const names = (await walk(ask, '/v2/objects')).map(row => row['name'])
  expect(names).toEqual(expect.arrayContaining(['deal', 'pipeline', 'stage', 'order', 'Order', '契約書']))
  expect(names).not.toContain('company')
  expect(names).not.toContain('contact')
})

test('metadata is at the top level, for company and contact too, however awkward the name is', async () => {
  for (const object of simulator.world.truth().items('crm_objects')) {
    const { status, body } = await ask(pathOf(object['name']))
    expect(status).toBe(200)
    expect(body).toEqual(object)
  }
  expect((await ask('/v2/objects/unknown')).status).toBe(404)
})

test('the record lists have every published record once, and no restricted one', async () => {
  for (const { name } of simulator.world.truth().items('crm_objects')) {
    if (name === 'legacy_ticket') continue
    const rows = await walk(ask, `${pathOf(name)}/records`, { limit: '9' })
    expect([...rows].sort(byId)).toEqual(recordsOf(String(name)).sort(byId))
    expect(rows.every(row => row['visibility'] === 'workspace')).toBe(true)
  }
})

test('an object of the list can answer 404 on its records', async () => {
  const names = (await walk(ask, '/v2/objects')).map(row => row['name'])
  expect(names).toContain('legacy_ticket')
  expect((await ask('/v2/objects/legacy_ticket/records')).status).toBe(404)
})

test('numbers keep their digits: some are beyond 2^53 or longer than a double can hold', async () => {
  const { text } = await ask('/v2/objects/deal/records', { limit: '100' })
  expect(text).toMatch(/"external_ref":\d{17,}[,}]/)
  expect(text).toMatch(/"amount":\d+\.\d{22}[,}]/)
})

test('the keys of fields are the names of the metadata, and relations end in _id', async () => {
  const { body } = await ask('/v2/objects/deal')
  const fields: Row[] = Array.isArray(body['fields']) ? body['fields'] : []
  const names = fields.map(field => field['name'])
  for (const { fields: values } of recordsOf('deal'))
    expect(names).toEqual(expect.arrayContaining(Object.keys(values ?? {})))
  const relations = fields.filter(field => field['relation'])
  expect(relations.length).toBeGreaterThan(2)
  expect(relations.every(field => String(field['name']).endsWith('_id'))).toBe(true)
})

test('a record reads the same singly, and unknown and restricted ones are 404', async () => {
  const deal = first(recordsOf('deal'))
  expect((await ask(`/v2/objects/deal/records/${deal['id']}`)).body).toEqual(deal)
  expect((await ask('/v2/objects/deal/records/00000000-0000-4000-8000-000000000000')).status).toBe(404)
  expect((await ask(`/v2/objects/company/records/${deal['id']}`)).status).toBe(404)
})

test('ids accepts either letter case, drops unknown ids, and returns 30 records without a limit', async () => {
  const companies = recordsOf('company').slice(0, 32)
  const ids = [
    ...companies.map(row => String(row['id']).toUpperCase()),
    '00000000-0000-4000-8000-000000000000',
  ].join(',')
  const { body } = await ask('/v2/objects/company/records', { ids, limit: '100' })
  expect([...(body.data ?? [])].sort(byId)).toEqual([...companies].sort(byId))
  expect((await ask('/v2/objects/company/records', { ids })).body.data).toHaveLength(30)
})

test('empty or malformed ids, a malformed related_id and any other parameter are 400', async () => {
  for (const query of [
    { ids: '' },
    { ids: 'x' },
    { related_id: 'x' },
    { related_id: '' },
    { page: '1' },
    { from: 'x' },
  ]) {
    expect((await ask('/v2/objects/deal/records', query)).status).toBe(400)
  }
  const id = first(recordsOf('deal'))['id']
  expect((await ask('/v2/objects/deal/records', { ids: Array(101).fill(id).join(',') })).status).toBe(400)
})

test('related_id works on each of the six paths, and agrees with the pairs of the truth', async () => {
  const pairs = [...simulator.world.truth().items('crm_record_links')]
  expect(new Set(pairs.map(pair => `${pair['object']}-${pair['related_object']}`))).toEqual(
    new Set(['deal-company', 'deal-contact', 'company-contact']),
  )
  for (const direction of [
    ['object', 'record_id', 'related_object', 'related_id'],
    ['related_object', 'related_id', 'object', 'record_id'],
  ] as const) {
    const [fromObject, fromId, toObject, toId] = direction
    for (const pair of pairs.filter((_, n) => n % 9 === 0)) {
      const rows = await walk(ask, `/v2/objects/${pair[toObject]}/records`, {
        related_id: String(pair[fromId]),
        limit: '1',
      })
      const expected = pairs
        .filter(
          each =>
            each[fromId] === pair[fromId] &&
            each[fromObject] === pair[fromObject] &&
            each[toObject] === pair[toObject],
        )
        .map(each => each[toId])
      expect(rows.map(row => row['id']).sort()).toEqual(expected.sort())
    }
  }
})

test('ids and related_id together must both match', async () => {
  const pair = first(
    simulator.world.truth().items('crm_record_links'),
    each => each['related_object'] === 'contact',
  )
  const related = String(pair['record_id'])
  const path = '/v2/objects/contact/records'
  expect((await ask(path, { related_id: related, ids: String(pair['related_id']) })).body.data).toHaveLength(
    1,
  )
  const other = first(recordsOf('contact'), row => row['id'] !== pair['related_id'])
  const { body } = await ask(path, { related_id: related, ids: `${pair['related_id']},${other['id']}` })
  expect(body.data?.map(row => row['id'])).toContain(pair['related_id'])
  expect(
    (await ask(path, { related_id: '00000000-0000-4000-8000-000000000000', ids: related })).body.data,
  ).toEqual([])
})

test('an unknown, restricted or unrelated related_id is an empty list with 200', async () => {
  const stage = first(recordsOf('stage'))['id']
  for (const related of ['00000000-0000-4000-8000-000000000000', String(stage)]) {
    const { status, body } = await ask('/v2/objects/company/records', { related_id: related })
    expect(status).toBe(200)
    expect(body).toEqual({ data: [], page_info: { end_cursor: null, has_next_page: false } })
  }
})

test('related_id is 400 on objects without relations, and 404 on an unknown object', async () => {
  const deal = String(first(recordsOf('deal'))['id'])
  expect((await ask('/v2/objects/stage/records', { related_id: deal })).status).toBe(400)
  expect((await ask('/v2/objects/pipeline/records', { related_id: deal })).status).toBe(400)
  expect((await ask('/v2/objects/unknown/records', { related_id: deal })).status).toBe(404)
})
