import { describe, expect, test } from 'vitest'
import { EXIT_STATUS, StopError } from '../../src/base/errors.ts'
import { RESOURCE_NAMES } from '../../src/declare/resource-names.ts'
import {
  numberedPage,
  refused,
  type ScriptedAnswer,
  type ScriptedApi,
  signal,
  startScriptedApi,
  v1Page,
  v2Page,
} from '../support/scripted-api.ts'
import { until } from '../support/until.ts'
import { message, minutesBack, outcomeOf, startTrial, stateOf, uuid } from './trial-backfill.ts'

const never = new Promise<never>(() => undefined)

function refuseEverything(api: ScriptedApi, status: number): void {
  for (const route of [
    '/v1/members',
    '/v1/teams',
    '/v1/collections',
    '/v1/meetings',
    '/v1/meetings/{id}',
    '/v1/playbooks',
    '/v1/public-api-access-logs',
    '/v1/bot-definition',
    '/v1/settings/integrations',
    '/v2/activities',
    '/v2/messages',
    '/v2/objects',
    '/v2/objects/{object}',
    '/v2/objects/{object}/records',
  ]) {
    api.on(route, () => refused(status))
  }
}

/** The StopError that ended a run. */
async function stopOf(run: Promise<unknown>): Promise<StopError> {
  const error = await run.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (!(error instanceof StopError)) throw new Error(`not stopped: ${error}`)
  return error
}

describe('a key that the API refuses', () => {
  test.concurrent('a refused key ends the run at once with 77', async context => {
    const api = await startScriptedApi(context.onTestFinished)
    refuseEverything(api, 401)
    const trial = await startTrial(api)
    const error = await stopOf(trial.run(RESOURCE_NAMES))
    expect(error.exitStatus).toBe(EXIT_STATUS.refused)
    expect(error.code).toBe('unauthorized')
    // The number of requests that may be in flight at a time.
    expect(api.requests.length).toBeLessThanOrEqual(8)
  })

  test.concurrent('a key that is refused in the middle ends the run with 77, and the stored rows stay', async context => {
    const api = await startScriptedApi(context.onTestFinished)
    api.on('/v2/messages', ({ query }) =>
      query['cursor'] === undefined ? v2Page([message(1)], 'second') : refused(401),
    )
    const trial = await startTrial(api)
    expect((await stopOf(trial.run(['messages']))).exitStatus).toBe(EXIT_STATUS.refused)
    expect(trial.column('SELECT id FROM live_message_copies')).toEqual([uuid(1)])
    expect(trial.column('SELECT outcome FROM sync_runs')).toEqual(['stopped'])
  })
})

describe('a key that one route refuses', () => {
  test.concurrent('the resource of the route fails with the reason, and the others are read', async context => {
    const api = await startScriptedApi(context.onTestFinished)
    api.on('/v1/teams', () => refused(401))
    api.on('/v1/members', () => numberedPage([{ id: 'm' }]))
    api.on('/v1/collections', () => v1Page([{ id: 'c' }]))
    const trial = await startTrial(api)
    const { resources } = await trial.run(['teams', 'members', 'collections'])
    expect(resources).toMatchObject([
      { resource: 'members', outcome: 'complete' },
      { resource: 'teams', outcome: 'failed' },
      { resource: 'collections', outcome: 'complete' },
    ])
    expect(resources[1]?.reason).toContain('The API answers 401: Unauthorized (other routes accept the key)')
  })

  test.concurrent('other lists that only fail do not show that the key is accepted, and the run ends with 77', async context => {
    const api = await startScriptedApi(context.onTestFinished)
    api.on('/v1/teams', () => refused(401))
    api.on('/v1/members', () => refused(500))
    api.on('/v1/collections', () => refused(400))
    const trial = await startTrial(api)
    const error = await stopOf(trial.run(['teams', 'members', 'collections']))
    expect(error.code).toBe('unauthorized')
  })
})

describe('a workspace that cannot be reached', () => {
  test.concurrent.for([403, 404])(
    'a %i on every request ends the run with 77, and nothing is deleted',
    async (status, context) => {
      const api = await startScriptedApi(context.onTestFinished)
      api.on('/v1/members', () => numberedPage([{ id: 'a' }]))
      api.on('/v1/collections', () => v1Page([{ id: 'c' }]))
      api.on('/v1/meetings', () => v1Page([{ meeting_id: 'm' }]))
      api.on('/v1/meetings/{id}', () => ({ body: { data: { meeting_id: 'm' } } }))
      const trial = await startTrial(api)
      await trial.run(RESOURCE_NAMES)
      refuseEverything(api, status)
      const error = await stopOf(trial.run(RESOURCE_NAMES))
      expect(error.exitStatus).toBe(EXIT_STATUS.refused)
      expect(trial.column('SELECT id FROM live_members')).toEqual(['a'])
      expect(trial.column('SELECT id FROM live_collections')).toEqual(['c'])
      expect(trial.column('SELECT id FROM live_meetings')).toEqual(['m'])
    },
  )

  test.concurrent('a 404 on the rest of an interrupted run does not count as a missing workspace', async context => {
    const api = await startScriptedApi(context.onTestFinished)
    const asked = signal()
    const interrupt = new AbortController()
    api.on('/v2/messages', () => v2Page([message(1)]))
    api.on('/v2/messages/{id}', () => {
      asked.give()
      return never
    })
    const trial = await startTrial(api)
    const first = trial.run(['messages', 'message_bodies'], { signal: interrupt.signal })
    await asked.promise
    interrupt.abort()
    expect((await first).interrupted).toBe(true)
    api.on('/v2/messages/{id}', () => refused(404))
    const result = await trial.run(['messages', 'message_bodies'])
    expect(result.complete).toBe(true)
    expect(trial.column('SELECT text_state FROM messages')).toEqual(['gone'])
  })

  test.concurrent('meetings that are all withheld do not keep an interrupted run from continuing', async context => {
    const api = await startScriptedApi(context.onTestFinished)
    const interrupt = new AbortController()
    const meetings = Array.from({ length: 30 }, (_, index) => ({ meeting_id: `m${index}` }))
    api.on('/v1/meetings', () => v1Page(meetings))
    const asked = signal()
    api.on('/v1/meetings/{id}', () => {
      asked.give()
      return never
    })
    const trial = await startTrial(api)
    const first = trial.run(['activities', 'meetings'], { signal: interrupt.signal })
    await asked.promise
    interrupt.abort()
    await first
    api.on('/v1/meetings/{id}', () => refused(403))
    expect((await trial.run(['activities', 'meetings'])).complete).toBe(true)
    expect(trial.column("SELECT count(*) FROM meetings WHERE access = 'withheld'")).toEqual([30])
  })

  test.concurrent('an unavailable resource does not make a run incomplete', async context => {
    const api = await startScriptedApi(context.onTestFinished)
    api.on('/v1/public-api-access-logs', () => refused(403))
    const trial = await startTrial(api)
    const result = await trial.run(['members', 'access_logs', 'bot_definition', 'integrations'])
    expect(result.complete).toBe(true)
    expect(
      ['access_logs', 'bot_definition', 'integrations'].map(name => outcomeOf(result, name as 'access_logs')),
    ).toEqual(['unavailable', 'unavailable', 'unavailable'])
    expect(stateOf(trial, 'access_logs')).toBe('unavailable')
  })

  test.concurrent('an object without records leaves the others available, even when they are empty', async context => {
    const api = await startScriptedApi(context.onTestFinished)
    api.on('/v2/objects', () => ({ body: [{ name: 'deal' }] }))
    api.on('/v2/objects/{object}', ({ params: [name] }) =>
      name === 'deal' ? { body: { name, fields: [] } } : refused(404),
    )
    api.on('/v2/objects/{object}/records', ({ params: [name] }) =>
      name === 'deal' ? v2Page([]) : refused(404),
    )
    const trial = await startTrial(api)
    const result = await trial.run(['crm_objects', 'crm_records'])
    expect(outcomeOf(result, 'crm_records')).toBe('complete')
    expect(stateOf(trial, 'crm_records')).toBe('ok')
  })
})

describe('an API that does not answer', () => {
  test.concurrent('a refused connection ends the run with 69 and names the address', async context => {
    const api = await startScriptedApi(context.onTestFinished)
    const url = 'http://127.0.0.1:1'
    const trial = await startTrial({ ...api, url })
    const error = await stopOf(trial.run(['members', 'teams', 'activities'], { giveUpMs: 3000 }))
    expect(error.message).toBe(`No usable answer from ${url}: The API cannot be reached: connection refused`)
    const [warning] = trial
      .logged()
      .split('\n')
      .filter(line => line.includes('No request to the API succeeds'))
    expect(JSON.parse(warning ?? '{}')).toMatchObject({ base_url: url, workspace: 'workspace' })
    expect(error.exitStatus).toBe(EXIT_STATUS.apiUnavailable)
    expect(error.code).toBe('api-silent')
  })

  // What has a time limit of less than a second here runs alone, so that only what is silent exceeds it.
  test('a server that accepts requests and sends nothing ends the run with 69', async () => {
    const api = await startScriptedApi()
    for (const route of ['/v1/members', '/v1/teams', '/v1/collections', '/v2/activities', '/v2/messages']) {
      api.on(route, () => never)
    }
    const trial = await startTrial(api)
    const resources = ['members', 'teams', 'collections', 'activities', 'messages'] as const
    const error = await stopOf(trial.run(resources, { giveUpMs: 400, timeoutMs: 150, concurrency: 2 }))
    expect(error.exitStatus).toBe(EXIT_STATUS.apiUnavailable)
    expect(error.code).toBe('api-silent')
  })

  test('a list that alone gets no answer fails, and the run ends as with any failed resource', async () => {
    const api = await startScriptedApi()
    api.on('/v1/members', () => numberedPage([{ id: 'a' }]))
    api.on('/v1/collections', () => never)
    const trial = await startTrial(api)
    const result = await trial.run(['members', 'collections'], { giveUpMs: 800, timeoutMs: 400 })
    expect([result.complete, result.interrupted, outcomeOf(result, 'members')]).toEqual([
      false,
      false,
      'complete',
    ])
    expect(result.resources.find(({ resource }) => resource === 'collections')).toMatchObject({
      outcome: 'failed',
      reason: 'GET /v1/collections: No complete answer within 0.4 s (api.timeout_seconds)',
    })
  })

  test('an API that goes away while one list is open ends the run with 69', async () => {
    const api = await startScriptedApi()
    let isHere = true
    api.on('/v1/members', () => (isHere ? numberedPage([{ id: 'a' }]) : never))
    api.on('/v1/collections', () => {
      isHere = api.asked('/v1/members').length === 0
      return never
    })
    const trial = await startTrial(api)
    const error = await stopOf(
      trial.run(['members', 'collections'], { giveUpMs: 500, timeoutMs: 400, concurrency: 1 }),
    )
    expect([error.exitStatus, error.code]).toEqual([EXIT_STATUS.apiUnavailable, 'api-silent'])
    expect(trial.column('SELECT id FROM members')).toEqual(['a'])
  })

  test.concurrent.for<[what: string, answer: ScriptedAnswer]>([
    ['connections are cut', { cut: true }],
    ['a gateway answers 502', refused(502)],
  ])(
    'an API that stops in the middle gets one request at a time until the run gives up: %s',
    async ([, answer], context) => {
      const api = await startScriptedApi(context.onTestFinished)
      const messages = Array.from({ length: 100 }, (__, index) => message(index))
      let left = 10
      api.on('/v2/messages', () => v2Page(messages))
      api.on('/v2/messages/{id}', ({ params: [id] }) => {
        left -= 1
        return left > 0 ? { body: { ...messages.find(one => one.id === id), text: 'words' } } : answer
      })
      const trial = await startTrial(api)
      const run = trial.run(['messages', 'message_bodies'], { giveUpMs: 3000 })
      await until(
        () => api.asked('/v2/messages/{id}').length,
        count => count >= 10,
      )
      api.on('/v2/messages', () => answer)
      const error = await stopOf(run)
      expect([error.exitStatus, error.code]).toEqual([EXIT_STATUS.apiUnavailable, 'api-silent'])
      // Eight were in flight when the API stopped answering; then trials after half a second, one and two seconds.
      expect(api.requests.length).toBeLessThan(10 + 4 * 8)
      expect(trial.column('SELECT what FROM sync_gates')).toEqual([])
    },
  )

  test.concurrent('a failing route among many gets no request between two trials', async context => {
    const api = await startScriptedApi(context.onTestFinished)
    const routes = [
      '/v1/members',
      '/v1/teams',
      '/v1/collections',
      '/v1/playbooks',
      '/v2/activities',
      '/v2/messages',
    ]
    for (const route of routes) api.on(route, () => ({ cut: true }))
    const trial = await startTrial(api)
    const resources = ['members', 'teams', 'collections', 'playbooks', 'activities', 'messages'] as const
    const error = await stopOf(trial.run(resources, { giveUpMs: 3000 }))
    expect(error.code).toBe('api-silent')
    // First one for each route, then health checks; then trials after half a second, one and two seconds.
    expect(api.requests.length).toBeLessThan(25)
  })

  test.concurrent('an API that fails once and recovers leaves no trace', async context => {
    const api = await startScriptedApi(context.onTestFinished)
    let tries = 0
    api.on('/v1/members', () => {
      tries += 1
      if (tries === 1) return { cut: true }
      if (tries === 2) return refused(503)
      if (tries === 3) return { text: '{"data":' }
      if (tries === 4) return { body: { nothing: 'that is known' } }
      if (tries === 5) return refused(429)
      return numberedPage([{ id: 'a' }])
    })
    const trial = await startTrial(api)
    const result = await trial.run(['members'])
    expect(result.complete).toBe(true)
    expect(result.throttled).toBe(1)
    expect(trial.column('SELECT id FROM members')).toEqual(['a'])
  })
})

describe('a failing resource', () => {
  test.concurrent('a failing resource never stops the others, and the run is incomplete', async context => {
    const api = await startScriptedApi(context.onTestFinished)
    api.on('/v1/members', () => refused(500))
    api.on('/v1/teams', () => refused(400))
    api.on('/v1/collections', () => v1Page([{ id: 'c' }]))
    api.on('/v2/messages', () => v2Page([message(1)]))
    api.on('/v2/messages/{id}', () => ({ body: { ...message(1), text: 'words' } }))
    const trial = await startTrial(api)
    const result = await trial.run(RESOURCE_NAMES)
    expect(result.complete).toBe(false)
    expect(result.interrupted).toBe(false)
    const failed = result.resources
      .filter(({ outcome }) => outcome === 'failed')
      .map(({ resource }) => resource)
    expect(failed.sort()).toEqual(['members', 'teams'])
    expect(trial.column('SELECT id FROM collections')).toEqual(['c'])
    expect(trial.column('SELECT text FROM messages')).toEqual(['words'])
    expect([stateOf(trial, 'members'), stateOf(trial, 'teams'), stateOf(trial, 'collections')]).toEqual([
      'failing',
      'failing',
      'ok',
    ])
    api.on('/v1/members', () => numberedPage([{ id: 'a' }]))
    api.on('/v1/teams', () => numberedPage([]))
    expect((await trial.run(RESOURCE_NAMES)).complete).toBe(true)
    expect(stateOf(trial, 'members')).toBe('ok')
  })

  test.concurrent('a resource whose every single read fails does not count as an API that does not answer', async context => {
    const api = await startScriptedApi(context.onTestFinished)
    const stopping = new AbortController()
    const meetings = Array.from({ length: 20 }, (_, index) => ({ meeting_id: `m${index}` }))
    api.on('/v1/meetings', () => v1Page(meetings))
    api.on('/v1/meetings/{id}', () => {
      // Eight were in flight when the route began to fail; then one trial.
      if (api.asked('/v1/meetings/{id}').length === 9) stopping.abort()
      return refused(500)
    })
    const trial = await startTrial(api)
    const result = await trial.run(['meetings'], { signal: stopping.signal })
    expect(result.interrupted).toBe(true)
    expect(trial.logged()).toContain('Requests on a route fail repeatedly; the route is tried less often')
    expect(trial.logged()).not.toContain('No request to the API succeeds')
  })

  test.concurrent('failed requests that wait for a retry do not leave the run unfinished when their route is given up', async context => {
    const api = await startScriptedApi(context.onTestFinished)
    api.on('/v2/messages', () => v2Page(Array.from({ length: 20 }, (_, number) => message(number))))
    api.on('/v2/messages/{id}', () => refused(500))
    const trial = await startTrial(api)
    const result = await trial.run(['messages', 'message_bodies'], { random: () => 0.3 })
    expect([result.complete, result.interrupted, outcomeOf(result, 'message_bodies')]).toEqual([
      false,
      false,
      'failed',
    ])
    expect(trial.column('SELECT round_open FROM sync_resources WHERE round_open')).toEqual([])
  })

  test.concurrent('an answer that is too large fails only its request', async context => {
    const api = await startScriptedApi(context.onTestFinished)
    api.on('/v2/messages', () => v2Page([1, 2, 3].map(number => message(number))))
    api.on('/v2/messages/{id}', ({ params: [id] }) => {
      const number = [1, 2, 3].find(each => uuid(each) === id) ?? 0
      return { body: { ...message(number), text: number === 1 ? 'x'.repeat(30_000) : 'words' } }
    })
    const trial = await startTrial(api)
    const result = await trial.run(['messages', 'message_bodies'], { maxResponseBytes: 10_000 })
    expect(outcomeOf(result, 'message_bodies')).toBe('failed')
    expect(trial.column('SELECT text_state FROM message_copies ORDER BY id')).toEqual([
      'pending',
      'present',
      'present',
    ])
    expect(api.asked('/v2/messages/{id}')).toHaveLength(3)
    const again = await trial.run(['messages', 'message_bodies'])
    expect(again.complete).toBe(true)
    expect(trial.column("SELECT count(*) FROM messages WHERE text_state = 'present'")).toEqual([3])
  })
})

test.concurrent('a resource is backfilling until complete_as_of has its instant, also while others are read', async context => {
  const api = await startScriptedApi(context.onTestFinished)
  const trial = await startTrial(api)
  const seen: Record<string, unknown>[] = []
  api.on('/v1/members', () => numberedPage([{ id: 'a' }]))
  api.on('/v2/messages', () => v2Page([message(1)]))
  api.on('/v2/messages/{id}', () => {
    seen.push(
      ...trial.all(`SELECT resource, state, reason, complete_as_of IS NOT NULL AS is_complete FROM sync_status
        WHERE resource IN ('members', 'messages', 'message_bodies') ORDER BY resource`),
    )
    return { body: { ...message(1), text: 'words' } }
  })
  expect((await trial.run(['members', 'messages', 'message_bodies'])).complete).toBe(true)
  expect(seen).toEqual([
    { resource: 'members', state: 'ok', reason: null, is_complete: 1 },
    { resource: 'message_bodies', state: 'backfilling', reason: 'Not completely read yet', is_complete: 0 },
    { resource: 'messages', state: 'ok', reason: null, is_complete: 1 },
  ])
})

describe('an interrupted round', () => {
  test.concurrent('requests that the stop cuts off count for the day, since the API received them', async context => {
    const api = await startScriptedApi(context.onTestFinished)
    api.on('/v1/members', () => never)
    const trial = await startTrial(api)
    const stop = new AbortController()
    const running = trial.run(['members'], { signal: stop.signal })
    expect(
      await until(
        () => api.requests.length,
        asked => asked > 0,
      ),
    ).toBeGreaterThan(0)
    stop.abort()
    await running
    expect(trial.counted()).toBe(api.requests.length)
  })

  test.concurrent('the next run continues the round, does not read the same again, and says from when on it may lack data', async context => {
    const api = await startScriptedApi(context.onTestFinished)
    const asked = signal()
    const interrupt = new AbortController()
    api.on('/v1/members', () => numberedPage([{ id: 'a' }]))
    api.on('/v2/messages', ({ query }) => {
      if (query['cursor'] === undefined) return v2Page([message(1)], 'second')
      asked.give()
      return never
    })
    const trial = await startTrial(api)
    const first = trial.run(['members', 'messages'], { signal: interrupt.signal })
    await asked.promise
    interrupt.abort()
    const result = await first
    expect(result.complete).toBe(false)
    expect([outcomeOf(result, 'members'), outcomeOf(result, 'messages')]).toEqual(['complete', 'stopped'])
    expect(result.continuedFrom).toBeUndefined()
    const [began] = trial.column('SELECT min(round_started_at) FROM sync_resources')
    const before = api.requests.length
    api.on('/v2/messages', () => v2Page([message(2)]))
    const second = await trial.run(['members', 'messages'])
    expect(second.complete).toBe(true)
    // The clock of the server, whose `Date` header has whole seconds, may differ a little.
    expect(Math.abs(Date.parse(second.continuedFrom ?? '') - Date.parse(String(began)))).toBeLessThan(2000)
    expect(api.requests.slice(before).map(({ route, query }) => `${route} ${query['cursor']}`)).toEqual([
      '/v2/messages second',
    ])
    expect(trial.column('SELECT id FROM message_copies ORDER BY 1')).toEqual([uuid(1), uuid(2)])
    expect((await trial.run(['members', 'messages'])).continuedFrom).toBeUndefined()
  })

  test.concurrent('a run of some resources does not count as a round of the others', async context => {
    const api = await startScriptedApi(context.onTestFinished)
    const interrupt = new AbortController()
    const asked = signal()
    let teams = ['old']
    api.on('/v1/teams', () => numberedPage(teams.map(id => ({ id, member_ids: [] }))))
    api.on('/v1/teams/{id}', () => refused(404))
    const trial = await startTrial(api)
    await trial.run(['members', 'teams'])
    api.on('/v1/members', () => {
      asked.give()
      return never
    })
    const only = trial.run(['members'], { signal: interrupt.signal })
    await asked.promise
    interrupt.abort()
    await only
    teams = ['new']
    api.on('/v1/members', () => numberedPage([]))
    expect((await trial.run(['members', 'teams'])).complete).toBe(true)
    expect(trial.column('SELECT id FROM live_teams')).toEqual(['new'])
  })
})

test.concurrent('a document that was read counts as read while another program writes', async context => {
  const api = await startScriptedApi(context.onTestFinished)
  const trial = await startTrial(api)
  const { attempt } = trial.store
  const isStored = () => trial.all('SELECT 1 FROM bot_definition').length > 0
  Object.assign(trial.store, {
    attempt: (work: () => unknown) => (isStored() ? undefined : attempt(work)),
  })
  api.on('/v1/bot-definition', () => ({ body: { data: { name: 'Notetaker' } } }))
  expect((await trial.run(['bot_definition'])).complete).toBe(true)
})

test.concurrent('reads that fall due while a run ends are left to the next run, and the run is complete', async context => {
  const api = await startScriptedApi(context.onTestFinished)
  const trial = await startTrial(api)
  const listed = message(1, { received_at: new Date(trial.clock.now() - 60_000).toISOString() })
  api.on('/v2/messages', () => v2Page([listed]))
  api.on('/v2/messages/{id}', () => ({ body: { ...listed, text: null } }))
  const { crmTables, tasks, transaction } = trial.store
  const finish = crmTables.finish
  Object.assign(crmTables, {
    // Typed tables of many fields take a while to make.
    finish: async (stop: AbortSignal) => {
      const task = { feed: 'message_bodies.read', key: uuid(1), dueAt: minutesBack(0) }
      await transaction(() => tasks.askAt(task))
      await finish(stop)
    },
  })
  const result = await trial.run(['messages', 'message_bodies'])
  expect(outcomeOf(result, 'message_bodies')).toBe('complete')
  expect(result.complete).toBe(true)
})

describe('--since', () => {
  const range = { since: minutesBack(2 * 24 * 60) }

  test.concurrent('--since limits the requests, and a later run without it loads what is older', async context => {
    const api = await startScriptedApi(context.onTestFinished)
    const days = [0.5, 1.5, 2.5, 3.5]
    const rows = days.map((day, index) => message(index + 1, { received_at: minutesBack(day * 24 * 60) }))
    api.on('/v2/messages', ({ query: { received_from: from, received_to: to } }) =>
      v2Page(rows.filter(row => !(from && row.received_at < from) && !(to && row.received_at > to))),
    )
    api.on('/v2/messages/{id}', ({ params: [id] }) => ({
      body: { ...rows.find(row => row.id === id), text: 'words' },
    }))
    const trial = await startTrial(api)
    const state = 'SELECT text_state FROM messages ORDER BY received_at DESC'
    expect((await trial.run(['messages', 'message_bodies'], range)).complete).toBe(true)
    expect(api.asked('/v2/messages').map(({ query }) => query['received_from'])).toEqual([range.since])
    expect(trial.column(state)).toEqual(['present', 'present'])
    expect((await trial.run(['messages', 'message_bodies'])).complete).toBe(true)
    expect(trial.column(state)).toEqual(['present', 'present', 'present', 'present'])
  })

  test.concurrent('--since limits the requests of a run after a complete one too', async context => {
    const api = await startScriptedApi(context.onTestFinished)
    api.on('/v2/messages', () => v2Page([message(1)]))
    const trial = await startTrial(api)
    await trial.run(['messages'])
    const before = api.requests.length
    await trial.run(['messages'], range)
    expect(api.requests.slice(before).map(({ query }) => query['received_from'])).toEqual([range.since])
    expect(trial.column('SELECT count(*) FROM live_messages')).toEqual([1])
  })

  test.concurrent('reads that --since leaves out do not count as pending, and a later run without it makes them', async context => {
    const api = await startScriptedApi(context.onTestFinished)
    const meeting = (id: string, days: number) => ({
      meeting_id: id,
      start_time: minutesBack(days * 24 * 60),
      overview_status: 'COMPLETED',
    })
    const meetings = [meeting('new', 1), meeting('old', 3)]
    api.on('/v1/meetings', () => v1Page(meetings))
    api.on('/v1/meetings/{id}', ({ params: [id] }) => ({
      body: { data: meetings.find(row => row.meeting_id === id) },
    }))
    const trial = await startTrial(api)
    const pending = "SELECT pending_tasks FROM sync_status WHERE resource = 'meetings'"
    const ids = 'SELECT id FROM live_meetings ORDER BY id'
    expect((await trial.run(['meetings'], range)).complete).toBe(true)
    expect([trial.column(ids), trial.column(pending)]).toEqual([['new'], [0]])
    expect((await trial.run(['meetings'])).complete).toBe(true)
    expect([trial.column(ids), trial.column(pending)]).toEqual([['new', 'old'], [0]])
  })

  test.concurrent('--since deletes no older row', async context => {
    const api = await startScriptedApi(context.onTestFinished)
    const rows = [message(1), message(2, { received_at: minutesBack(10 * 24 * 60) })]
    api.on('/v2/messages', ({ query: { received_from: from, ids } }) =>
      ids === undefined ? v2Page(rows.filter(row => !from || row.received_at >= from)) : v2Page([]),
    )
    const trial = await startTrial(api)
    await trial.run(['messages'])
    await trial.run(['messages'], range)
    expect(trial.column('SELECT count(*) FROM live_messages')).toEqual([2])
  })
})
