import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Simulator, startSimulator } from '../../src/simulator/server.ts'
import { type Ask, askOf, first, micros, type Row, SMALL, walk, withSimulator } from './ask.ts'

let simulator: Simulator
let ask: Ask

beforeAll(async () => {
  simulator = await startSimulator(SMALL)
  ask = askOf(simulator)
})
afterAll(() => simulator.close())

const truthOf = (
  kind: 'members' | 'teams' | 'collections' | 'access_logs' | 'playbooks' | 'inactive_playbooks',
): Row[] => [...simulator.world.truth().items(kind)]

test('members are the active ones, ascending by name, in numbered pages', async () => {
  const members = truthOf('members')
  const one = await ask('/v1/members', { page: '1', limit: '10' })
  const two = await ask('/v1/members', { page: '2', limit: '10' })
  expect([...(one.body.data ?? []), ...(two.body.data ?? [])]).toEqual(members)
  expect(one.body.pagination).toEqual({ page: 1, limit: 10, total_size: members.length, total_pages: 2 })
  const names = members.map(row => String(row['name']))
  expect(names).toEqual([...names].sort())
  expect(members.length).toBeLessThan(simulator.world.people.members.count())
})

test('page 1 and 50 items are the default, and a page after the last is empty', async () => {
  expect((await ask('/v1/members')).body.pagination).toMatchObject({ page: 1, limit: 50 })
  expect((await ask('/v1/members', { page: '9' })).body.data).toEqual([])
  for (const page of ['0', '-1', 'x', '']) expect((await ask('/v1/members', { page })).status).toBe(400)
})

test('teams name members of the list, and each reads the same singly in data', async () => {
  const teams = truthOf('teams')
  const members = truthOf('members').map(row => row['id'])
  expect((await ask('/v1/teams')).body.data).toEqual(teams)
  for (const team of teams) {
    expect(members).toEqual(expect.arrayContaining(Object.values(team['member_ids'] ?? [])))
    expect((await ask(`/v1/teams/${team['id']}`)).body).toEqual({ data: team })
  }
  expect((await ask('/v1/teams/unknown')).status).toBe(404)
})

test('collections come newest first with ties by id descending, and next_cursor is null at the end', async () => {
  const rows = await walk(ask, '/v1/collections', { limit: '1' })
  expect(rows).toEqual(truthOf('collections'))
  const keys = rows.map(row => [micros(row['created_at']), String(row['id'])] as const)
  expect(keys).toEqual([...keys].sort((a, b) => b[0] - a[0] || (a[1] < b[1] ? 1 : -1)))
  expect(new Set(keys.map(key => key[0])).size).toBeLessThan(keys.length)
  expect((await ask('/v1/collections', { limit: '50' })).body.pagination).toEqual({ next_cursor: null })
})

test('answers of undeclared shape come in data or bare, as set', async () => {
  const collection = first(truthOf('collections'))
  const playbook = first(truthOf('playbooks'))
  const paths = [
    `/v1/collections/${collection['id']}`,
    '/v1/settings/integrations',
    `/v1/playbooks/${playbook['id']}/execution-setting`,
  ]
  await withSimulator({ ...SMALL, envelopes: { unstatedSingle: 'bare' } }, async (_, other) => {
    for (const path of paths) expect((await other(path)).body).toEqual((await ask(path)).body.data)
  })
})

test('an inactive playbook is absent from the list and readable singly', async () => {
  const listed = (await walk(ask, '/v1/playbooks')).map(row => row['id'])
  expect(listed.sort()).toEqual(
    truthOf('playbooks')
      .map(row => row['id'])
      .sort(),
  )
  const inactive = first(truthOf('inactive_playbooks'))
  expect(listed).not.toContain(inactive['id'])
  expect((await ask(`/v1/playbooks/${inactive['id']}`)).body).toEqual({ data: inactive })
  expect((await ask('/v1/playbooks/unknown')).status).toBe(404)
  expect((await ask('/v1/playbooks/unknown/execution-setting')).status).toBe(404)
})

test('the bot definition refuses any query with 400, and is 404 when there is none', async () => {
  expect((await ask('/v1/bot-definition')).body.data).toEqual(
    first(simulator.world.truth().items('bot_definition')),
  )
  expect((await ask('/v1/bot-definition', { limit: '1' })).status).toBe(400)
  await withSimulator({ ...SMALL, botConfigured: false, integrations: false }, async (_, other) => {
    expect((await other('/v1/bot-definition')).status).toBe(404)
    expect((await other('/v1/settings/integrations')).status).toBe(404)
  })
})

test('the access log is complete, newest first, and holds exact duplicates', async () => {
  const rows = await walk(ask, '/v1/public-api-access-logs', { limit: '50' })
  expect(rows).toEqual(truthOf('access_logs'))
  const times = rows.map(row => micros(row['occurred_at']))
  expect(times).toEqual([...times].sort((a, b) => b - a))
  expect(new Set(rows.map(row => JSON.stringify(row))).size).toBeLessThan(rows.length)
})

test('the start of an access log period is inclusive and its end exclusive', async () => {
  const rows = truthOf('access_logs')
  const [newer, older] = [String(rows[10]?.['occurred_at']), String(rows[20]?.['occurred_at'])]
  const found = await walk(ask, '/v1/public-api-access-logs', { from: older, to: newer, limit: '4' })
  const expected = rows.filter(row => {
    const time = micros(row['occurred_at'])
    return time >= micros(older) && time < micros(newer)
  })
  expect(found).toEqual(expected)
})

test('a period of more than 31 days, or one that ends before it starts, is 400', async () => {
  const period = (from: string, to: string) => ask('/v1/public-api-access-logs', { from, to })
  expect((await period('2026-05-01T00:00:00Z', '2026-06-01T00:00:00Z')).status).toBe(200)
  expect((await period('2026-05-01T00:00:00Z', '2026-06-01T00:00:00.001Z')).status).toBe(400)
  expect((await period('2026-05-02T00:00:00Z', '2026-05-01T00:00:00Z')).status).toBe(400)
})

test('the end parameter can have another name, and then `to` has no effect', async () => {
  await withSimulator({ ...SMALL, accessLogEndParameter: 'until' }, async (_, other) => {
    const from = '2026-06-01T00:00:00Z'
    const end = '2026-06-05T00:00:00Z'
    const times = async (query: Record<string, string>) =>
      (await walk(other, '/v1/public-api-access-logs', query)).map(row => micros(row['occurred_at']))
    expect(Math.max(...(await times({ from, until: end })))).toBeLessThan(micros(end))
    expect(Math.max(...(await times({ from, to: end })))).toBeGreaterThan(micros(end))
  })
})

test('without the security option the access log is 403', async () => {
  await withSimulator({ ...SMALL, securityOption: false }, async (_, other) => {
    expect((await other('/v1/public-api-access-logs')).status).toBe(403)
  })
})

test('own requests are logged on request, but not those of the log itself, nor refused keys', async () => {
  await withSimulator({ ...SMALL, logRequests: true }, async (logging, other) => {
    const before = logging.world.truth().count('access_logs')
    await other('/v1/members')
    await other('/v1/public-api-access-logs')
    await other('/v1/public-api-access-logs/')
    await other('/v1/members', {}, { 'x-api-key': 'wrong' })
    await other('/v1/public-api-access-logs/sub')
    const logged = [...logging.world.truth().items('access_logs')].slice(0, -before)
    expect(logged.map(row => row['path'])).toEqual(['/v1/public-api-access-logs/sub', '/v1/members'])
    expect(logged[1]).toMatchObject({
      method: 'GET',
      route: '/v1/members',
      status_code: 200,
      api_key_suffix: '-key',
    })
  })
})

test('a workspace with one deal, one company and one contact serves each of them', async () => {
  for (const seed of [1, 2, 3])
    await withSimulator(
      { ...SMALL, seed, messages: 10, deals: 1, companies: 1, contacts: 1 },
      async ({ world }) => {
        const objects = [...world.truth().items('crm_records')].map(row => String(row['object']))
        const served = (name: string) => objects.filter(object => object === name).length
        expect(['deal', 'company', 'contact'].map(served)).toEqual([1, 1, 1])
      },
    )
})
