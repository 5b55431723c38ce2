import { expect, onTestFinished, test } from 'vitest'
import { createClient } from '../../src/api/client.ts'
import { createGovernor } from '../../src/api/governor/governor.ts'
import type { Clock } from '../../src/base/clock.ts'
import { createLog } from '../../src/base/log.ts'
import type { ResourceName } from '../../src/declare/resource-names.ts'
import { createSession } from '../../src/engine/run/session.ts'
import {
  numberedPage,
  refused,
  type ScriptedAnswer,
  type ScriptedApi,
  startScriptedApi,
  v1Page,
  v2Page,
} from '../support/scripted-api.ts'
import { until } from '../support/until.ts'
import { API_KEY, startTrial, stateOf, type Trial } from './trial-backfill.ts'

const MINUTE = 60_000

interface Work {
  resources: readonly ResourceName[]
  since: string | null
}

/** Runs the daemon's work until the test ends, or until an error ends it, which `ended` has. All waits are short. */
async function startWork(api: ScriptedApi, trial: Trial, { resources, since }: Work) {
  const clock: Clock = { ...trial.clock, sleep: (ms, signal) => trial.clock.sleep(Math.min(ms, 50), signal) }
  const client = createClient({
    baseUrl: api.url,
    apiKey: () => API_KEY,
    workspaceId: 'workspace',
    keySource: { by: 'environment', text: 'environment PARLEY_API_KEY' },
    // Some answers come only when their test ends, which a busy machine may delay by minutes.
    timeoutMs: 60 * MINUTE,
    maxResponseBytes: 1 << 20,
    clock: trial.clock,
  })
  const initial = { ratePerSecond: 1000, concurrency: 8, limited: false }
  const governor = createGovernor({ clock, random: () => 0, ceilings: {}, initial })
  const end = new AbortController()
  const running = createSession({
    store: trial.store,
    client,
    governor,
    clock,
    log: await createLog({ level: 'silent', stream: { write: () => true } }),
    random: () => 0,
    options: { since, intervalScale: 1, accessLogEndParameter: 'to', words: true },
    resources,
    pollMs: MINUTE,
    access: { wasAnswered: true, wasLost: false, isFirstRefusalFinal: false },
    stopNew: end.signal,
    cancel: end.signal,
    observer: { onRequest: () => undefined, onRunEnd: () => undefined },
  }).run()
  const ended = running.catch((error: unknown) => error)
  onTestFinished(async () => {
    end.abort()
    await ended
    governor.close()
    await client.close()
  })
  return { ended }
}

test('a run ends after a last request that leaves nothing due', async () => {
  const api = await startScriptedApi()
  const trial = await startTrial(api)
  // The first request asks for the time. By that time, everything wanted lies in the future.
  const since = new Date(Date.now() + 24 * 60 * MINUTE).toISOString()
  await startWork(api, trial, { resources: ['access_logs'], since })
  const runs = await until(
    () => trial.all('SELECT resource, outcome FROM sync_runs'),
    ([run]) => run !== undefined && run['outcome'] !== null,
  )
  expect(runs).toEqual([{ resource: 'access_logs', outcome: 'complete' }])
})

test('a run whose first answer could not be stored is recorded', async () => {
  const api = await startScriptedApi()
  const trial = await startTrial(api)
  let answers = 0
  api.on('/v1/teams', () => {
    answers += 1
    return answers === 1 ? { body: {} } : numberedPage([{ id: 't', name: 'T' }])
  })
  await startWork(api, trial, { resources: ['teams'], since: null })
  const runs = await until(
    () => trial.all('SELECT resource, outcome, rows_read FROM sync_runs'),
    ([run]) => run !== undefined && run['outcome'] !== null,
  )
  expect(runs).toEqual([{ resource: 'teams', outcome: 'complete', rows_read: 1 }])
})

test('a trigger of other people holds up its resource alone, until it is dropped', async () => {
  const api = await startScriptedApi()
  const trial = await startTrial(api)
  api.on('/v1/teams', () => numberedPage([{ id: 't', name: 'T' }]))
  api.on('/v1/members', () => numberedPage([{ id: 'm', name: 'M' }]))
  trial.store.db.exec("CREATE TRIGGER picky BEFORE INSERT ON teams BEGIN SELECT RAISE(ABORT, 'no'); END")
  await startWork(api, trial, { resources: ['teams', 'members'], since: null })
  const failing = await until(
    () => trial.all("SELECT state, reason FROM sync_status WHERE resource = 'teams'"),
    ([row]) => row?.['state'] === 'failing',
  )
  expect(failing).toEqual([
    {
      state: 'failing',
      reason: expect.stringMatching(
        /the trigger picky on teams, .* DROP TRIGGER "picky"; in an sqlite3 shell\.$/,
      ),
    },
  ])
  await until(
    () => stateOf(trial, 'members'),
    state => state === 'ok',
  )
  trial.store.db.exec('DROP TRIGGER picky')
  await until(
    () => stateOf(trial, 'teams'),
    state => state === 'ok',
  )
})

test('a plan that meets a full disk after an answer ends the session', async () => {
  const api = await startScriptedApi()
  const trial = await startTrial(api)
  let isFull = false
  api.on('/v2/messages', () => {
    isFull = true
    return v2Page([])
  })
  const { attempt } = trial.store
  const store: Trial['store'] = {
    ...trial.store,
    attempt(work) {
      if (isFull) throw Object.assign(new Error('database or disk is full'), { code: 'SQLITE_FULL' })
      return attempt(work)
    },
  }
  const { ended } = await startWork(api, { ...trial, store }, { resources: ['messages'], since: null })
  expect(await ended).toMatchObject({ code: 'database-unavailable' })
})

test('a day counts rows that were new and rows that changed', async () => {
  const api = await startScriptedApi()
  const trial = await startTrial(api)
  let teams = [{ id: 'a', name: 'A' }]
  api.on('/v1/teams', () => numberedPage(teams))
  await trial.run(['teams'])
  teams = [
    { id: 'a', name: 'Renamed' },
    { id: 'b', name: 'B' },
    { id: 'c', name: 'C' },
  ]
  await trial.run(['teams'])
  expect(trial.all('SELECT resource, rows_new, rows_changed FROM sync_days')).toEqual([
    { resource: 'teams', rows_new: 3, rows_changed: 1 },
  ])
})

test('a resource that is selected later and has nothing to read is complete', async () => {
  const api = await startScriptedApi()
  const trial = await startTrial(api)
  expect((await trial.run(['meetings'])).complete).toBe(true)
  expect(stateOf(trial, 'playbook_results')).toBe('backfilling')
  await startWork(api, trial, { resources: ['meetings', 'playbook_results'], since: null })
  const state = await until(
    () => stateOf(trial, 'playbook_results'),
    found => found === 'ok',
  )
  expect(state).toBe('ok')
})

const WEEK = 7 * 24 * 60 * MINUTE

const playbook = (id: string): ScriptedAnswer => ({ body: { data: { id, name: id, talk_points: [] } } })

/** An answer that arrives after the test. */
function lateAnswer(answer: ScriptedAnswer): Promise<ScriptedAnswer> {
  return new Promise(resolve => onTestFinished(() => resolve(answer)))
}

test('a read that failed and then succeeded no longer makes its resource failing, though the run continues', async () => {
  const api = await startScriptedApi()
  const trial = await startTrial(api)
  const late = lateAnswer({ body: { mode: 'AUTO' } })
  const state = () => stateOf(trial, 'playbooks')
  const hasFailed = () => state() === 'failing'
  let isRefused = true
  api.on('/v1/playbooks', () => v1Page([{ id: 'a' }, { id: 'b' }]))
  api.on('/v1/playbooks/{id}', async ({ params: [id = ''] }) => {
    if (id === 'a') return isRefused ? { status: 400, body: { error: { message: 'no' } } } : playbook(id)
    if (isRefused) {
      await until(hasFailed, found => found)
      isRefused = false
      trial.passTime(3 * 60 * MINUTE)
    }
    return playbook(id)
  })
  api.on('/v1/playbooks/{id}/execution-setting', () => late)
  await startWork(api, trial, { resources: ['playbooks'], since: null })
  await until(
    () => trial.column('SELECT id FROM playbooks').length,
    stored => stored === 2,
  )
  expect(await until(state, found => found !== 'failing')).toBe('backfilling')
  expect(trial.column("SELECT outcome FROM sync_runs WHERE resource = 'playbooks'")).toEqual([null])
})

test('a resource is complete after its lists and first reads, also when repeats are always due', async () => {
  const api = await startScriptedApi()
  const trial = await startTrial(api)
  const late = lateAnswer(playbook('a'))
  const isStored = () => trial.column('SELECT id FROM playbooks').length > 0
  api.on('/v1/playbooks', () => v1Page([{ id: 'a' }, { id: 'b' }]))
  api.on('/v1/playbooks/{id}', async ({ params: [id = ''] }) => {
    if (id === 'a') return isStored() ? late : playbook(id)
    if (trial.column('SELECT id FROM playbooks').length < 2) {
      await until(isStored, found => found)
      trial.passTime(WEEK)
    }
    return playbook(id)
  })
  await startWork(api, trial, { resources: ['playbooks'], since: null })
  const state = () => stateOf(trial, 'playbooks')
  expect(await until(state, found => found === 'ok')).toBe('ok')
  expect(trial.column("SELECT outcome FROM sync_runs WHERE resource = 'playbooks'")).toEqual([null])
})

test.each([
  ['all routes refuse ends the session', () => true],
  ['one route refuses holds up the resource of that route alone', (route: string) => route === '/v1/teams'],
])('a key that %s', async (_, refuses) => {
  const api = await startScriptedApi()
  const trial = await startTrial(api)
  let isRefused = false
  for (const name of ['teams', 'members'])
    api.on(`/v1/${name}`, () =>
      isRefused && refuses(`/v1/${name}`) ? refused(401) : numberedPage([{ id: name, name }]),
    )
  await trial.run(['teams', 'members'])
  isRefused = true
  trial.passTime(WEEK)
  const asked = api.requests.length
  const { ended } = await startWork(api, trial, { resources: ['teams', 'members'], since: null })
  if (refuses('/v1/members')) {
    expect(await ended).toMatchObject({ code: 'unauthorized' })
    expect(api.requests.length - asked).toBe(2)
    return
  }
  const reason = await until(
    () => trial.column("SELECT reason FROM sync_status WHERE resource = 'teams'")[0],
    found => String(found).includes('401'),
  )
  expect(reason).toContain('The API answers 401: Unauthorized (other routes accept the key)')
  expect(stateOf(trial, 'members')).toBe('ok')
  isRefused = false
  trial.passTime(60 * MINUTE)
  const teams = await until(
    () => stateOf(trial, 'teams'),
    found => found === 'ok',
  )
  expect(teams).toBe('ok')
})

test('a session goes on with what an earlier one has closed, after one request for each', async () => {
  const api = await startScriptedApi()
  const trial = await startTrial(api)
  api.on('/v1/settings/integrations', () => refused(404))
  api.on('/v1/members', () => refused(503))
  const AT = '2026-01-01T00:00:00.000Z'
  const gate = { since: AT, until: new Date().toISOString(), reason: 'before' }
  await trial.store.transaction(() =>
    trial.store.gates.set([
      { ...gate, what: 'feed:integrations.read', kind: 'unavailable', tries: 4, resources: ['integrations'] },
      { ...gate, what: 'route:/v1/members', kind: 'failing', tries: 9, resources: ['members'] },
      { ...gate, what: 'feed:meetings.list', kind: 'failing', tries: 9, resources: ['meetings'] },
    ]),
  )
  await startWork(api, trial, { resources: ['integrations', 'members', 'activities'], since: null })
  const gates = await until(
    () => trial.all('SELECT what, kind, tries FROM sync_gates ORDER BY what'),
    rows => rows.every(({ tries }) => tries === 5 || tries === 10),
  )
  expect(gates).toEqual([
    { what: 'feed:integrations.read', kind: 'unavailable', tries: 5 },
    { what: 'route:/v1/members', kind: 'failing', tries: 10 },
  ])
  expect([api.asked('/v1/settings/integrations').length, api.asked('/v1/members').length]).toEqual([1, 1])
})

test.each([
  ['between two looks', false],
  ['while a look waited for its turn to write', true],
])('a process that stood still %s is not late before it has had time to read', async (_, atLook) => {
  const api = await startScriptedApi()
  const trial = await startTrial(api)
  let [answers, looks] = [0, 0]
  let isHanging = false
  api.on('/v2/activities', () => {
    if (isHanging) return new Promise<ScriptedAnswer>(resolve => api.atEnd(() => resolve(v2Page([]))))
    answers += 1
    return v2Page([])
  })
  const { transaction } = trial.store
  let stillAtLook = 0
  const aside: typeof transaction.aside = work => {
    looks += 1
    trial.passTime(stillAtLook)
    stillAtLook = 0
    return transaction.aside(work)
  }
  const store: Trial['store'] = {
    ...trial.store,
    transaction: Object.assign(transaction.bind(null), transaction, { aside }),
  }
  const state = () => stateOf(trial, 'activities')
  const next = (count: () => number) => {
    const before = count()
    return until(count, now => now > before)
  }
  await startWork(api, { ...trial, store }, { resources: ['activities'], since: null })
  await until(state, found => found === 'ok')
  for (let minutes = 0; minutes < 12; minutes += 1) {
    trial.passTime(MINUTE)
    await next(() => answers)
  }
  isHanging = true
  if (atLook) stillAtLook = 5 * MINUTE
  else trial.passTime(5 * MINUTE)
  for (let times = 0; times < 3; times += 1) await next(() => looks)
  expect(state()).toBe('ok')
  for (let minutes = 0; minutes < 12; minutes += 1) {
    trial.passTime(MINUTE - 1000)
    await next(() => looks)
  }
  expect(await until(state, found => found === 'failing')).toBe('failing')
})
