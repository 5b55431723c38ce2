import { afterAll, beforeAll, expect, test } from 'vitest'
import { ENVELOPES } from '../../src/simulator/http/paging.ts'
import { type Simulator, startSimulator } from '../../src/simulator/server.ts'
import { type Ask, askOf, first, type Row, SMALL, walk, withSimulator } from './ask.ts'

let simulator: Simulator
let ask: Ask
let truth: Row[]

beforeAll(async () => {
  simulator = await startSimulator(SMALL)
  ask = askOf(simulator)
  truth = [...simulator.world.truth().items('meetings')]
})
afterAll(() => simulator.close())

const ids = (rows: readonly Row[]): string[] => rows.map(row => String(row['meeting_id'])).sort()
const rowsOf = (value: unknown): Row[] => (Array.isArray(value) ? value : [])

test('the list has exactly the readable meetings', async () => {
  expect(ids(await walk(ask, '/v1/meetings'))).toEqual(ids(truth))
})

test('collection_id limits the list to the meetings of a collection, and an unknown one to none', async () => {
  const pairs = [...simulator.world.truth().items('collection_meetings')]
  const collection = String(pairs[0]?.['collection_id'])
  const rows = await walk(ask, '/v1/meetings', { collection_id: collection, limit: '2' })
  expect(ids(rows)).toEqual(ids(pairs.filter(pair => pair['collection_id'] === collection)))
  expect(await walk(ask, '/v1/meetings', { collection_id: 'unknown' })).toEqual([])
})

test('has_crm_integrations divides the meetings in two', async () => {
  const linked = (row: Row): boolean => rowsOf(row['crm_integrations']).length > 0
  expect(ids(await walk(ask, '/v1/meetings', { has_crm_integrations: 'true' }))).toEqual(
    ids(truth.filter(linked)),
  )
  const others = await walk(ask, '/v1/meetings', { has_crm_integrations: 'false' })
  expect(ids(others)).toEqual(ids(truth.filter(row => !linked(row))))
  expect((await ask('/v1/meetings', { has_crm_integrations: 'yes' })).status).toBe(400)
})

test('an ATTENDEES_ONLY meeting is 403 on all of its reads', async () => {
  const { meeting_id: id } = first(simulator.world.truth().items('withheld_meetings'))
  const playbook = first(simulator.world.truth().items('playbooks'))['id']
  for (const part of ['', '/transcript', '/playbook-results', `/playbook-results/${playbook}`]) {
    expect(await ask(`/v1/meetings/${id}${part}`)).toMatchObject({
      status: 403,
      body: { statusCode: 403, message: 'Forbidden' },
    })
  }
})

test('an unknown meeting is 404 on all of its reads', async () => {
  for (const part of ['', '/transcript', '/playbook-results', '/playbook-results/x']) {
    expect((await ask(`/v1/meetings/unknown${part}`)).status).toBe(404)
  }
})

test('detail, transcript and results are in data and equal the truth', async () => {
  const world = simulator.world.truth()
  for (const meeting of truth.slice(0, 10)) {
    expect((await ask(`/v1/meetings/${meeting['meeting_id']}`)).body).toEqual({ data: meeting })
  }
  for (const { meeting_id: id, entries } of [...world.items('transcripts')].slice(0, 10)) {
    expect((await ask(`/v1/meetings/${id}/transcript`)).body).toEqual({ data: entries })
  }
  for (const { meeting_id: id, results } of world.items('playbook_results')) {
    expect((await ask(`/v1/meetings/${id}/playbook-results`)).body).toEqual({ data: results })
  }
})

test('each result reads the same singly, and a missing one is 404 with the message of the specification', async () => {
  const { meeting_id: id, results } = first(
    simulator.world.truth().items('playbook_results'),
    row => rowsOf(row['results']).length > 0,
  )
  const [result] = rowsOf(results)
  expect((await ask(`/v1/meetings/${id}/playbook-results/${result?.['playbook_id']}`)).body).toEqual({
    data: result,
  })
  const missing = await ask(`/v1/meetings/${id}/playbook-results/unknown`)
  expect(missing).toMatchObject({ status: 404, body: { message: 'Playbook result not found' } })
})

test('a meeting whose overview is not COMPLETED has no summaries and no results yet', async () => {
  const unready = first(truth, row => row['overview_status'] !== 'COMPLETED')
  expect(unready['summaries']).toEqual([])
  const path = `/v1/meetings/${unready['meeting_id']}/playbook-results`
  expect((await ask(path)).body).toEqual({ data: [] })
  await withSimulator({ ...SMALL, envelopes: { unreadyResults: 'not-found' } }, async (_, other) => {
    expect((await other(path)).status).toBe(404)
  })
})

test('pending overviews become COMPLETED at a given time of the service’s clock', async () => {
  let now = 0
  const clock = { now: () => now, elapsed: () => now, sleep: async () => undefined }
  await withSimulator({ ...SMALL, clock, overviewsCompleteAfterMs: 60_000 }, async (timed, other) => {
    const unready = first(truth, row => row['overview_status'] !== 'COMPLETED')['meeting_id']
    expect((await other(`/v1/meetings/${unready}`)).text).not.toContain('"overview_status":"COMPLETED"')
    now = 60_000
    expect((await other(`/v1/meetings/${unready}`)).text).toContain('"overview_status":"COMPLETED"')
    expect(
      [...timed.world.truth().items('meetings')].every(row => row['overview_status'] === 'COMPLETED'),
    ).toBe(true)
  })
})

test('some transcripts are empty', () => {
  const transcripts = [...simulator.world.truth().items('transcripts')]
  expect(transcripts.some(row => rowsOf(row['entries']).length === 0)).toBe(true)
  expect(transcripts.some(row => rowsOf(row['entries']).length > 10)).toBe(true)
})

test('the meeting, playbook and object lists come in five shapes with the same items', async () => {
  for (const shape of ENVELOPES) {
    const envelopes = {
      meetingList: shape,
      playbookList: shape,
      objectList: shape,
      meetingListId: 'id' as const,
    }
    await withSimulator({ ...SMALL, envelopes }, async (other, askOther) => {
      const { body } = await askOther('/v1/meetings')
      const items = rowsOf(shape === 'bare' ? body : body.data)
      expect(items[0]).toHaveProperty('id')
      expect(items[0]).not.toHaveProperty('meeting_id')
      const rows =
        shape === 'bare'
          ? items
          : shape === 'v1-page'
            ? await numbered(askOther)
            : await walk(askOther, '/v1/meetings')
      expect(rows.map(row => row['id']).sort()).toEqual(ids([...other.world.truth().items('meetings')]))
      expect(Array.isArray((await askOther('/v2/objects')).body)).toBe(shape === 'bare')
      expect((await askOther('/v1/playbooks', { limit: '10' })).status).toBe(
        shape === 'unlimited' ? 400 : 200,
      )
    })
  }
})

async function numbered(other: Ask): Promise<Row[]> {
  const rows: Row[] = []
  for (let page = 1; ; page++) {
    const { body } = await other('/v1/meetings', { page: String(page), limit: '20' })
    rows.push(...(body.data ?? []))
    if (page >= (body.pagination?.total_pages ?? 0)) return rows
  }
}
