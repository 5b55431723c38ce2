import { createHash } from 'node:crypto'
import { request } from 'node:http'
import { expect, test } from 'vitest'
import { routeTemplates } from '../../src/simulator/operations/routes.ts'
import type { Simulator } from '../../src/simulator/server.ts'
import { askOf, SMALL, withSimulator } from './ask.ts'

const PATHS = [
  '/v2/activities',
  '/v2/messages',
  '/v2/objects',
  '/v2/objects/deal',
  '/v2/objects/deal/records',
  '/v1/members',
  '/v1/teams',
  '/v1/collections',
  '/v1/public-api-access-logs',
  '/v1/bot-definition',
  '/v1/meetings',
  '/v1/playbooks',
  '/v1/settings/integrations',
]

test('every operation of the specification exists', () => {
  expect(routeTemplates().sort()).toEqual(
    [
      ...PATHS.map(path => path.replace('/deal', '/{object}')),
      '/v2/activities/{activityId}',
      '/v2/messages/{messageId}',
      '/v2/objects/{object}/records/{recordId}',
      '/v1/teams/{teamId}',
      '/v1/collections/{collectionId}',
      '/v1/meetings/{meetingId}',
      '/v1/meetings/{meetingId}/transcript',
      '/v1/meetings/{meetingId}/playbook-results',
      '/v1/meetings/{meetingId}/playbook-results/{playbookId}',
      '/v1/playbooks/{playbookId}',
      '/v1/playbooks/{playbookId}/execution-setting',
    ].sort(),
  )
})

test('a request without a key or with a wrong one is a 401 that says which, on v1 and v2', () =>
  withSimulator(SMALL, async simulator => {
    const ask = askOf({ ...simulator, apiKey: '' })
    for (const path of PATHS) {
      expect((await ask(path)).body).toEqual({
        statusCode: 401,
        message: 'Missing X-Api-Key header',
        error: 'Unauthorized',
      })
      const wrong = await ask(path, {}, { 'x-api-key': 'another' })
      expect(wrong).toMatchObject({
        status: 401,
        body: { message: 'Invalid API key', error: 'Unauthorized' },
      })
    }
  }))

test('a missing workspace is 400, and another workspace than the key’s is 403', () =>
  withSimulator(SMALL, async (_, ask) => {
    expect((await ask('/v1/members', {}, { 'x-workspace-id': '' })).status).toBe(400)
    const foreign = await ask('/v1/members', {}, { 'x-workspace-id': 'another' })
    expect(foreign).toMatchObject({ status: 403, body: { statusCode: 403, message: 'Forbidden' } })
  }))

test('a replaced key is refused', () =>
  withSimulator(SMALL, async (simulator, ask) => {
    simulator.setApiKey('the next one')
    expect((await ask('/v1/members')).status).toBe(401)
    expect((await ask('/v1/members', {}, { 'x-api-key': 'the next one' })).status).toBe(200)
  }))

test('a 400 has the v2 body on v2 operations and the general body on v1 operations', () =>
  withSimulator(SMALL, async (_, ask) => {
    for (const path of ['/v2/activities', '/v2/messages', '/v2/objects/deal/records']) {
      const { status, body } = await ask(path, { limit: '0' })
      expect(status).toBe(400)
      expect(body.error).toEqual({
        code: expect.any(String),
        message: expect.stringContaining('limit'),
        request_id: expect.any(String),
      })
    }
    for (const path of ['/v1/members', '/v1/collections', '/v1/public-api-access-logs']) {
      const { status, body } = await ask(path, { limit: '0' })
      expect(status).toBe(400)
      expect(body).toEqual({
        statusCode: 400,
        message: expect.stringContaining('limit'),
        error: 'Bad Request',
      })
    }
  }))

test('limits above the maximum of a list, and limits that are not numbers, are 400', () =>
  withSimulator(SMALL, async (_, ask) => {
    const most = { '/v2/messages': 100, '/v2/activities': 100, '/v1/collections': 50, '/v1/members': 200 }
    for (const [path, limit] of Object.entries(most)) {
      expect((await ask(path, { limit: String(limit) })).status).toBe(200)
      for (const bad of [String(limit + 1), '', 'ten', '1.5', '-1']) {
        expect((await ask(path, { limit: bad })).status).toBe(400)
      }
    }
  }))

test('an invalid cursor, and one of another list or filter, is 400', () =>
  withSimulator(SMALL, async (_, ask) => {
    const { body } = await ask('/v2/messages', { limit: '2' })
    const cursor = body.page_info?.end_cursor ?? ''
    expect((await ask('/v2/messages', { cursor })).status).toBe(200)
    expect((await ask('/v2/messages', { cursor: 'nonsense' })).status).toBe(400)
    expect((await ask('/v2/messages', { cursor: '' })).status).toBe(400)
    expect((await ask('/v2/activities', { cursor })).status).toBe(400)
    expect((await ask('/v2/messages', { cursor, received_from: '2026-01-01T00:00:00Z' })).status).toBe(400)
  }))

test('an invalid date-time, and one without a zone, is 400', () =>
  withSimulator(SMALL, async (_, ask) => {
    for (const bad of [
      '',
      '2026-01-01',
      '2026-01-01T00:00:00',
      '2026-02-30T00:00:00Z',
      '2026-01-01T00:00:00 09:00',
    ]) {
      expect((await ask('/v2/messages', { received_from: bad })).status).toBe(400)
      expect((await ask('/v2/activities', { occurred_to: bad })).status).toBe(400)
      expect((await ask('/v1/public-api-access-logs', { from: bad })).status).toBe(400)
    }
  }))

test('other paths and other methods are 404', () =>
  withSimulator(SMALL, async (simulator, ask) => {
    expect((await ask('/v1/deals')).status).toBe(404)
    const posted = await fetch(`${simulator.url}/v1/members`, {
      method: 'POST',
      headers: { 'x-api-key': simulator.apiKey, 'x-workspace-id': simulator.workspaceId },
    })
    expect(posted.status).toBe(404)
  }))

test('a slash at the end of the path does not matter', () =>
  withSimulator(SMALL, async (_, ask) => {
    expect((await ask('/v1/members/')).text).toBe((await ask('/v1/members')).text)
  }))

test('answers come compressed when the client accepts gzip, and only then', () =>
  withSimulator(SMALL, async simulator => {
    const headersOf = (headers: Record<string, string>) =>
      new Promise<string | undefined>((resolve, reject) => {
        const sent = request(`${simulator.url}/v2/messages`, {
          headers: { 'x-api-key': simulator.apiKey, 'x-workspace-id': simulator.workspaceId, ...headers },
        })
        sent.on('error', reject).on('response', response => {
          response.resume()
          resolve(response.headers['content-encoding'])
        })
        sent.end()
      })
    expect(await headersOf({ 'accept-encoding': 'br, gzip' })).toBe('gzip')
    expect(await headersOf({})).toBeUndefined()
  }))

test('the Date header is the clock of the service, which starts at the end of the history', () =>
  withSimulator({ ...SMALL, now: '2026-03-01T08:00:00Z' }, async (_, ask) => {
    const date = Date.parse((await ask('/v1/members')).headers.get('date') ?? '')
    const since = date - Date.parse('2026-03-01T08:00:00Z')
    expect(since).toBeGreaterThanOrEqual(0)
    expect(since).toBeLessThan(600_000)
  }))

async function digest(simulator: Simulator, paths: readonly string[]): Promise<Record<string, string>> {
  const ask = askOf(simulator)
  const hashes: Record<string, string> = {}
  for (const path of paths)
    hashes[path] = createHash('sha256')
      .update((await ask(path)).text)
      .digest('hex')
  return hashes
}

test('the same seed and sizes give the same bytes in any order of requests, and another seed gives others', async () => {
  const once = await withSimulator(SMALL, simulator => digest(simulator, PATHS))
  const again = await withSimulator(SMALL, simulator => digest(simulator, [...PATHS].reverse()))
  const other = await withSimulator({ ...SMALL, seed: 8 }, simulator => digest(simulator, PATHS))
  expect(again).toEqual(once)
  expect(other['/v2/messages']).not.toBe(once['/v2/messages'])
})

test('requests are counted by route and status, and the latest ones are kept with their query', () =>
  withSimulator(SMALL, async (simulator, ask) => {
    await ask('/v2/messages', { limit: '5' })
    await ask('/v2/messages', { limit: '0' })
    await ask('/v2/messages/00000000-0000-4000-8000-000000000000')
    expect(simulator.requests.total()).toBe(3)
    expect(simulator.requests.count('/v2/messages')).toBe(2)
    expect(simulator.requests.count('/v2/messages', 400)).toBe(1)
    expect(simulator.requests.count('/v2/messages/{messageId}', 404)).toBe(1)
    expect(simulator.requests.recent()[0]).toMatchObject({
      route: '/v2/messages',
      query: 'limit=5',
      status: 200,
    })
    simulator.requests.clear()
    expect(simulator.requests.total()).toBe(0)
  }))
