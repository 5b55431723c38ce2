import { expect, test } from 'vitest'
import type { Simulator } from '../../src/simulator/server.ts'
import type { TruthKind } from '../../src/simulator/world/truth.ts'
import { type Ask, byId, first, micros, type Row, SMALL, walk, withSimulator } from './ask.ts'

const itemsOf = (simulator: Simulator, kind: TruthKind): Row[] => [...simulator.world.truth().items(kind)]
const idsOf = (rows: readonly Row[]): unknown[] => rows.map(row => row['id'])

const rowOf = (value: unknown): Row => ({ ...(typeof value === 'object' ? value : {}) })

/** Lists and truth must tell the same after any change. */
async function agree(simulator: Simulator, ask: Ask): Promise<void> {
  const { messages, activities } = { messages: '/v2/messages', activities: '/v2/activities' }
  const listed = await walk(ask, messages, { limit: '100' })
  const withText = itemsOf(simulator, 'messages').map(({ text: _, ...rest }): Row => rest)
  expect([...listed].sort(byId)).toEqual(withText.sort(byId))
  const timeline = await walk(ask, activities, { limit: '100' })
  expect([...timeline].sort(byId)).toEqual(itemsOf(simulator, 'activities').sort(byId))
  for (const [rows, field] of [
    [listed, 'received_at'],
    [timeline, 'occurred_at'],
  ] as const) {
    const times = rows.map(row => micros(row[field]))
    expect(times).toEqual([...times].sort((a, b) => b - a))
  }
}

test('published messages come first in the list, with an activity each', () =>
  withSimulator(SMALL, async (simulator, ask) => {
    const { ids } = simulator.apply({ kind: 'publish', resource: 'messages', count: 3 })
    const { body } = await ask('/v2/messages', { limit: '3' })
    expect(idsOf(body.data ?? [])).toEqual([...ids].reverse())
    const activities = await ask('/v2/activities', {
      source_type: 'MESSAGE',
      occurred_from: '2026-06-30T12:00:00Z',
    })
    expect(activities.body.data?.every(row => ids.includes(String(row['source_id'])))).toBe(true)
    await agree(simulator, ask)
  }))

const NEW_ITEMS = [
  ['contact', { resource: 'crm_records', object: 'contact' }],
  ['deal', { resource: 'crm_records', object: 'deal' }],
  ['company', { resource: 'crm_records', object: 'company' }],
  ['member', { resource: 'members' }],
] as const

test.each(NEW_ITEMS)('a new %s alters no existing message, meeting, activity or record', (_, choice) =>
  withSimulator(SMALL, async simulator => {
    simulator.apply({ kind: 'edit', resource: 'activities', count: 50 })
    const kinds = [
      'messages',
      'meetings',
      'transcripts',
      'playbook_results',
      'activities',
      'crm_records',
    ] as const
    const lines = () => new Set(kinds.flatMap(kind => [...simulator.world.truth().lines(kind)]))
    const before = lines()
    // Enough that most companies get one.
    simulator.apply({ kind: 'publish', ...choice, count: 60 })
    const after = lines()
    expect([...before].filter(line => !after.has(line))).toEqual([])
  }),
)

test('late messages have an old event time, and some are copies of an existing e-mail', () =>
  withSimulator(SMALL, async (simulator, ask) => {
    const known = new Set(itemsOf(simulator, 'messages').map(row => row['header_message_id']))
    const { ids } = simulator.apply({ kind: 'publishLate', resource: 'messages', count: 8 })
    const late = itemsOf(simulator, 'messages').filter(row => ids.includes(String(row['id'])))
    expect(late).toHaveLength(8)
    expect(late.every(row => micros(row['received_at']) < micros('2026-06-30T12:00:00Z'))).toBe(true)
    expect(late.filter(row => known.has(row['header_message_id'])).length).toBeGreaterThanOrEqual(4)
    await agree(simulator, ask)
  }))

test('an edited message has other list fields and another text', () =>
  withSimulator(SMALL, async (simulator, ask) => {
    const before = new Map(itemsOf(simulator, 'messages').map(row => [row['id'], row]))
    const { ids } = simulator.apply({ kind: 'edit', resource: 'messages', count: 5 })
    expect(ids).toHaveLength(5)
    for (const id of ids) {
      const { body } = await ask(`/v2/messages/${id}`)
      expect(body['is_group_email']).toBe(!before.get(id)?.['is_group_email'])
    }
    await agree(simulator, ask)
  }))

test('an edit can move a message and its activity in time', () =>
  withSimulator(SMALL, async (simulator, ask) => {
    const id = String(itemsOf(simulator, 'messages')[10]?.['id'])
    simulator.apply({ kind: 'edit', resource: 'messages', id, at: micros('2020-01-01T00:00:00.000001Z') })
    const rows = await walk(ask, '/v2/messages', { limit: '100' })
    expect(rows.at(-1)?.['id']).toBe(id)
    expect(micros(rows.at(-1)?.['received_at'])).toBe(micros('2020-01-01T00:00:00.000001Z'))
    await agree(simulator, ask)
  }))

test('a hidden message disappears with its activity, and both come back when it is revealed', () =>
  withSimulator(SMALL, async (simulator, ask) => {
    const before = itemsOf(simulator, 'activities')
    const { ids } = simulator.apply({ kind: 'hide', resource: 'messages', count: 4 })
    for (const id of ids) expect((await ask(`/v2/messages/${id}`)).status).toBe(404)
    expect((await ask('/v2/messages', { ids: ids.join(',') })).body.data).toEqual([])
    expect(itemsOf(simulator, 'activities').some(row => ids.includes(String(row['source_id'])))).toBe(false)
    await agree(simulator, ask)
    simulator.apply({ kind: 'reveal', resource: 'messages', ids })
    expect(itemsOf(simulator, 'activities')).toEqual(before)
    await agree(simulator, ask)
  }))

test('an item that vanishes between two pages makes no other item be skipped or repeated', () =>
  withSimulator(SMALL, async (simulator, ask) => {
    const before = idsOf(await walk(ask, '/v2/messages', { limit: '100' }))
    const { body } = await ask('/v2/messages', { limit: '50' })
    const last = String(before[49])
    simulator.apply({ kind: 'delete', resource: 'messages', ids: [last, String(before[0])] })
    simulator.apply({ kind: 'publish', resource: 'messages' })
    const next = await ask('/v2/messages', { limit: '50', cursor: body.page_info?.end_cursor ?? '' })
    expect(idsOf(next.body.data ?? [])).toEqual(before.slice(50, 100))
  }))

test('edited activities gain and lose links', () =>
  withSimulator(SMALL, async (simulator, ask) => {
    const before = new Map(itemsOf(simulator, 'activities').map(row => [row['id'], row['links']]))
    const { ids } = simulator.apply({ kind: 'edit', resource: 'activities', count: 10 })
    const changed = itemsOf(simulator, 'activities').filter(
      row =>
        ids.includes(String(row['id'])) &&
        JSON.stringify(row['links']) !== JSON.stringify(before.get(row['id'])),
    )
    expect(changed.length).toBeGreaterThanOrEqual(8)
    await agree(simulator, ask)
  }))

test('a hidden meeting becomes 403 and keeps its activity; a deleted one is 404 and loses it', () =>
  withSimulator(SMALL, async (simulator, ask) => {
    const sources = () => new Set(itemsOf(simulator, 'activities').map(row => row['source_id']))
    const known = sources()
    const shown = itemsOf(simulator, 'meetings')
      .map(row => String(row['meeting_id']))
      .filter(id => known.has(id))
    const [withheld = '', gone = ''] = shown
    simulator.apply({ kind: 'hide', resource: 'meetings', id: withheld })
    simulator.apply({ kind: 'delete', resource: 'meetings', id: gone })
    expect((await ask(`/v1/meetings/${withheld}`)).status).toBe(403)
    expect((await ask(`/v1/meetings/${gone}`)).status).toBe(404)
    expect([sources().has(withheld), sources().has(gone)]).toEqual([true, false])
    simulator.apply({ kind: 'reveal', resource: 'meetings', id: withheld })
    expect((await ask(`/v1/meetings/${withheld}`)).status).toBe(200)
  }))

test('an edited meeting has another title, more action items and new versions of its results', () =>
  withSimulator(SMALL, async (simulator, ask) => {
    const row = first(
      itemsOf(simulator, 'playbook_results'),
      each => JSON.stringify(each['results']) !== '[]',
    )
    const id = String(row['meeting_id'])
    const path = `/v1/meetings/${id}`
    const before = rowOf((await ask(path)).body.data)
    simulator.apply({ kind: 'edit', resource: 'meetings', id })
    const after = rowOf((await ask(path)).body.data)
    expect(after['title']).not.toBe(before['title'])
    expect(Object.keys(after['action_items'] ?? {})).toHaveLength(
      Object.keys(before['action_items'] ?? {}).length + 1,
    )
    const results = (await ask(`${path}/playbook-results`)).body.data ?? []
    expect(idsOf(results)).not.toEqual(idsOf(Array.isArray(row['results']) ? row['results'] : []))
  }))

test('a meeting that is published unready gets its overview and transcript when they are completed', () =>
  withSimulator(SMALL, async (simulator, ask) => {
    const [id = ''] = simulator.apply({ kind: 'publish', resource: 'meetings', unready: true }).ids
    expect((await ask(`/v1/meetings/${id}`)).text).not.toContain('"overview_status":"COMPLETED"')
    expect((await ask(`/v1/meetings/${id}/transcript`)).body.data).toEqual([])
    simulator.apply({ kind: 'completeOverview', id })
    simulator.apply({ kind: 'completeTranscript', id })
    expect((await ask(`/v1/meetings/${id}`)).text).toContain('"overview_status":"COMPLETED"')
    expect((await ask(`/v1/meetings/${id}/transcript`)).body.data?.length).toBeGreaterThan(0)
    expect((await walk(ask, '/v1/meetings'))[0]?.['meeting_id']).toBe(id)
  }))

test('an edited record has another updated_at and a change event that points at it', () =>
  withSimulator(SMALL, async (simulator, ask) => {
    for (const object of ['deal', 'company', 'contact']) {
      const [id = ''] = simulator.apply({ kind: 'edit', resource: 'crm_records', object }).ids
      const { body } = await ask(`/v2/objects/${object}/records/${id}`)
      const [newest] = (await ask('/v2/activities', { limit: '1' })).body.data ?? []
      expect(newest).toMatchObject({ source_type: 'OBJECT_CHANGE_EVENT' })
      expect(newest?.['links']).toContainEqual({ context_type: object, context_id: id, origin: 'DIRECT' })
      expect(micros(newest?.['occurred_at'])).toBe(micros(body['updated_at']))
    }
    await agree(simulator, ask)
  }))

test('edits move deals through the stages of their pipeline, and some into the next pipeline', () =>
  withSimulator(SMALL, async simulator => {
    const places = (field: string) =>
      itemsOf(simulator, 'crm_records')
        .filter(row => row['object'] === 'deal')
        .map(row => rowOf(row['fields'])[field])
    const all = itemsOf(simulator, 'crm_records').filter(row => row['object'] === 'deal')
    const ids = all.map(row => String(row['id']))
    const before = { stage: places('stage_id'), pipeline: places('pipeline_id') }
    for (let turn = 0; turn < 8; turn++) simulator.apply({ kind: 'edit', resource: 'crm_records', ids })
    expect(places('stage_id').filter((stage, n) => stage !== before.stage[n]).length).toBeGreaterThan(10)
    expect(places('pipeline_id').some((pipeline, n) => pipeline !== before.pipeline[n])).toBe(true)
  }))

test('a restricted record disappears from lists, reads, links and pairs, and comes back', () =>
  withSimulator(SMALL, async (simulator, ask) => {
    const pair = first(itemsOf(simulator, 'crm_record_links'), row => row['related_object'] === 'company')
    const id = String(pair['related_id'])
    const before = JSON.stringify(itemsOf(simulator, 'activities'))
    expect(before).toContain(id)
    simulator.apply({ kind: 'hide', resource: 'crm_records', object: 'company', id })
    expect((await ask(`/v2/objects/company/records/${id}`)).status).toBe(404)
    expect(JSON.stringify(itemsOf(simulator, 'activities'))).not.toContain(id)
    expect(JSON.stringify(itemsOf(simulator, 'crm_record_links'))).not.toContain(id)
    await agree(simulator, ask)
    simulator.apply({ kind: 'reveal', resource: 'crm_records', object: 'company', id })
    expect(JSON.stringify(itemsOf(simulator, 'activities'))).toBe(before)
  }))

test('members, teams, collections, playbooks and records of any object can be published, edited, hidden and deleted', () =>
  withSimulator(SMALL, async simulator => {
    const kinds = [
      ['members', 'members'],
      ['teams', 'teams'],
      ['collections', 'collections'],
      ['playbooks', 'playbooks'],
      ['crm_records', 'crm_records'],
    ] as const
    for (const [resource, kind] of kinds) {
      const choice = resource === 'crm_records' ? { resource, object: '契約書' } : { resource }
      const find = (id: string) => itemsOf(simulator, kind).find(row => row['id'] === id)
      const [id = ''] = simulator.apply({ kind: 'publish', ...choice }).ids
      const made = find(id)
      expect(made).toBeDefined()
      simulator.apply({ kind: 'edit', ...choice, id })
      expect(find(id)).toBeDefined()
      expect(find(id)).not.toEqual(made)
      simulator.apply({ kind: 'hide', ...choice, id })
      expect(find(id)).toBeUndefined()
      simulator.apply({ kind: 'reveal', ...choice, id })
      expect(find(id)).toBeDefined()
      simulator.apply({ kind: 'delete', ...choice, id })
      expect(find(id)).toBeUndefined()
    }
  }))

test('a hidden playbook is inactive and readable, and a deleted one is 404', () =>
  withSimulator(SMALL, async (simulator, ask) => {
    const id = String(first(itemsOf(simulator, 'playbooks'))['id'])
    simulator.apply({ kind: 'hide', resource: 'playbooks', id })
    expect((await ask(`/v1/playbooks/${id}`)).body).toMatchObject({ data: { id, active: false } })
    simulator.apply({ kind: 'delete', resource: 'playbooks', id })
    expect((await ask(`/v1/playbooks/${id}`)).status).toBe(404)
  }))

test('fields are added, renamed and retyped in metadata and records alike', () =>
  withSimulator(SMALL, async (simulator, ask) => {
    const names = async () => {
      const { body } = await ask('/v2/objects/deal')
      return (Array.isArray(body['fields']) ? body['fields'] : []).map(field => [field.name, field.type])
    }
    const keys = () =>
      new Set(itemsOf(simulator, 'crm_records').flatMap(row => Object.keys(row['fields'] ?? {})))
    simulator.apply({ kind: 'addField', object: 'deal', field: 'new field', type: 'integer' })
    expect(await names()).toContainEqual(['new field', 'INTEGER'])
    expect(keys()).toContain('new field')
    const stages = itemsOf(simulator, 'crm_records').map(row => Object.entries(row['fields'] ?? {}))
    simulator.apply({ kind: 'renameField', object: 'deal', field: 'stage_id', to: 'phase_id' })
    expect(keys()).toContain('phase_id')
    const values = (rows: [string, unknown][][], name: string) =>
      rows.flatMap(row => row.filter(([key]) => key === name).map(([, value]) => value))
    const after = itemsOf(simulator, 'crm_records').filter(row => row['object'] === 'deal')
    expect(
      values(
        after.map(row => Object.entries(row['fields'] ?? {})),
        'phase_id',
      ),
    ).toEqual(values(stages, 'stage_id'))
    simulator.apply({ kind: 'retypeField', object: 'deal', field: 'Amount', type: 'text' })
    expect(await names()).toContainEqual(['Amount', 'TEXT'])
  }))

test('a retired object is missing from the list and 404 everywhere', () =>
  withSimulator(SMALL, async (simulator, ask) => {
    simulator.apply({ kind: 'retireObject', object: 'renewal' })
    expect((await walk(ask, '/v2/objects')).map(row => row['name'])).not.toContain('renewal')
    expect((await ask('/v2/objects/renewal')).status).toBe(404)
    expect((await ask('/v2/objects/renewal/records')).status).toBe(404)
  }))

test('the seed decides which items a change takes', async () => {
  const chosen = () =>
    withSimulator(SMALL, async simulator => [
      simulator.apply({ kind: 'edit', resource: 'messages', count: 10 }).ids,
      simulator.apply({ kind: 'hide', resource: 'messages', count: 10 }).ids,
    ])
  const [edited, hidden] = await chosen()
  expect(await chosen()).toEqual([edited, hidden])
  expect(new Set(edited).size).toBe(10)
  expect(hidden).not.toEqual(edited)
})

test('a deleted item cannot be hidden or revealed, and no other item of that change is touched', () =>
  withSimulator(SMALL, async (simulator, ask) => {
    const [gone = ''] = simulator.apply({ kind: 'delete', resource: 'messages' }).ids
    const [hidden = ''] = simulator.apply({ kind: 'hide', resource: 'messages' }).ids
    for (const kind of ['hide', 'reveal'] as const) {
      const attempt = () => simulator.apply({ kind, resource: 'messages', ids: [hidden, gone] })
      expect(attempt).toThrow(new RangeError(`the item ${gone} is deleted, and deletion is permanent`))
    }
    for (const id of [gone, hidden]) expect((await ask(`/v2/messages/${id}`)).status).toBe(404)
    expect(simulator.apply({ kind: 'delete', resource: 'messages', id: gone }).ids).toEqual([gone])
  }))

test('a change that names an unknown item is refused', () =>
  withSimulator(SMALL, async simulator => {
    expect(() => simulator.apply({ kind: 'edit', resource: 'messages', id: 'nobody' })).toThrow('nobody')
    expect(() => simulator.apply({ kind: 'renameField', object: 'deal', field: 'nothing', to: 'x' })).toThrow(
      'nothing',
    )
    expect(() => simulator.apply({ kind: 'edit', resource: 'crm_records', object: 'none' })).toThrow('none')
  }))

test('an object that the workspace does not have cannot be retired', () =>
  withSimulator(SMALL, async simulator => {
    const refusal = new RangeError('no object is named renewals')
    expect(() => simulator.apply({ kind: 'retireObject', object: 'renewals' })).toThrow(refusal)
  }))
