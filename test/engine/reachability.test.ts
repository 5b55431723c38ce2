import { expect, test } from 'vitest'
import type { Sent } from '../../src/api/client.ts'
import type { ReachOptions } from '../../src/api/reach.ts'
import type { HealthCheck } from '../../src/api/reach-events.ts'
import { systemClock } from '../../src/base/clock.ts'
import { createLog } from '../../src/base/log.ts'
import type { ResourceName } from '../../src/declare/resource-names.ts'
import { growingBackoff } from '../../src/engine/context/feed-waits.ts'
import { createReachability } from '../../src/engine/requests/reachability.ts'
import { API_GATE, type Gate } from '../../src/store/sync/gates.ts'
import { temporaryStore } from '../store/temporary-store.ts'

const MINUTE = 60_000
const AT = '2026-01-01T00:00:00.000Z'
const REQUEST = { route: '/v2/messages', path: '/v2/messages' }

const CHECKS: readonly HealthCheck[] = [
  { resource: 'messages', feed: 'messages.list', request: REQUEST },
  { resource: 'teams', feed: 'teams.list', request: { route: '/v1/teams', path: '/v1/teams' } },
]

/** With a clock that a test moves. */
async function reachable(options: Partial<ReachOptions> = {}, before: readonly Gate[] = []) {
  const store = temporaryStore()
  const lines: string[] = []
  let passed = 0
  let drifted = 0
  const system = systemClock()
  const clock = {
    ...system,
    now: () => system.now() + passed + drifted,
    elapsed: () => system.elapsed() + passed,
  }
  const log = await createLog({ level: 'info', stream: { write: line => lines.push(line) } })
  const excusedUntil = new Map<ResourceName, number>()
  const backoffs = growingBackoff({ clock, random: () => 1, unavailableMs: MINUTE, refusedMs: MINUTE })
  const reachability = createReachability({
    context: {
      store,
      clock,
      backoffs,
      excusedUntil,
      log,
    },
    access: {
      baseUrl: 'https://api.example.com',
      workspaceId: 'acme',
      keySource: { by: 'file', text: 'the test' },
    },
    resources: ['messages'],
    before,
    resourcesOf: () => ['messages'],
    options: { healthChecks: [], againAfterMs: MINUTE, wasAnswered: true, accessWasLost: false, ...options },
    random: () => 0.5,
  })
  const answered = () => {
    const answer = { kind: 'answer', value: {}, bytes: 2, serverTime: undefined } as const
    const asked = { feed: 'messages.list', request: REQUEST, isDeclared: false }
    reachability.observe(asked, { ...answer, startedAt: clock.now(), durationMs: 10 }, {})
  }
  return {
    reachability,
    backoffs,
    excusedUntil,
    store,
    clock,
    answered,
    logged: () => lines.map(line => JSON.parse(line)),
    pass: (ms: number) => {
      passed += ms
    },
    /** Only the wall clock, as when it is adjusted. */
    drift: (ms: number) => {
      drifted += ms
    },
    noted: async () => {
      await store.transaction(() => undefined)
      return store.gates.closed()
    },
  }
}

test.each([
  ['asked', 'asked-to-wait', 'The API asked parley to wait'],
  ['requests-per-day', 'day-used-up', 'The requests of this day are used up'],
] as const)(
  'a pause (%s) is stored until it is over, also while earlier requests are answered, and logged once',
  async (pauseReason, kind, msg) => {
    const { reachability, clock, answered, pass, noted, logged } = await reachable()
    const pausedUntil = clock.now() + 10 * MINUTE
    reachability.notePause({ pausedUntil, pauseReason })
    expect(await noted()).toMatchObject([{ what: 'api', kind, resources: ['messages'] }])

    pass(9.9 * MINUTE)
    answered()
    reachability.notePause({ pausedUntil, pauseReason })
    expect(await noted()).toMatchObject([{ kind }])

    pass(MINUTE)
    answered()
    reachability.notePause({})
    expect(await noted()).toEqual([])
    expect(logged()).toMatchObject([
      { level: 'warn', msg, wait_ms: expect.any(Number) },
      { level: 'info', msg: 'Requests are sent again', duration_ms: expect.any(Number) },
    ])
  },
)

test('an outage began at one time although the wall clock drifts, until the clock is set', async () => {
  const { reachability, clock, drift } = await reachable()
  const asked = { feed: 'messages.list', request: REQUEST, isDeclared: false }
  for (let failures = 0; failures < 5; failures += 1) {
    const failed = { kind: 'retry', cause: 'unreachable', message: 'connection refused' } as const
    reachability.observe(asked, { ...failed, startedAt: clock.now(), durationMs: 10 }, {})
  }
  const began = () => reachability.trouble()?.since ?? 0
  const since = began()
  expect(since).toBeGreaterThan(0)
  drift(3)
  expect(began()).toBe(since)
  drift(60 * MINUTE)
  expect(began() - since).toBeGreaterThan(59 * MINUTE)
})

test('lost access that an earlier session stored is cleared by the first answer, and not before', async () => {
  const { reachability, store, answered, clock, noted } = await reachable({
    accessWasLost: true,
    healthChecks: CHECKS,
  })
  const lost: Gate = {
    what: API_GATE,
    kind: 'refused',
    reason: 'x',
    since: AT,
    until: AT,
    resources: ['messages'],
    tries: 0,
  }
  await store.transaction(() => store.gates.set([lost]))
  reachability.begin()
  const refusal = { kind: 'refused', status: 403, message: 'x', isForeign: false, isWebPage: false } as const
  const asked = { feed: 'messages.list', request: REQUEST, isDeclared: false }
  reachability.observe(asked, { ...refusal, startedAt: clock.now(), durationMs: 10 }, {})
  expect(await noted()).toMatchObject([{ kind: 'refused' }])
  answered()
  expect(await noted()).toEqual([])
})

test('a pause of seconds is not stored', async () => {
  const { reachability, clock, noted } = await reachable()
  reachability.notePause({ pausedUntil: clock.now() + 5000, pauseReason: 'throttled' })
  expect(await noted()).toEqual([])
})

test('a route with its own limit has a gate while it is closed, and the others have none', async () => {
  const { reachability, clock, answered, pass, noted, logged } = await reachable()
  const route = '/v1/meetings/{meetingId}/transcript'
  const request = { route, path: '/v1/meetings/1/transcript' }
  const refusal = {
    kind: 'retry',
    cause: 'throttled',
    status: 429,
    message: 'x',
    waitMs: 10 * MINUTE,
  } as const
  const observe = (sent: Sent) =>
    reachability.observe({ feed: 'transcripts.read', request, isDeclared: false }, sent, {})
  observe({ ...refusal, startedAt: clock.now(), durationMs: 10 })
  const since = clock.now()
  expect(await noted()).toEqual([])

  pass(MINUTE)
  answered()
  expect(await noted()).toMatchObject([{ what: `route:${route}`, kind: 'asked-to-wait' }])
  const [gate] = await noted()
  expect(Math.abs(Date.parse(gate?.since ?? '') - since)).toBeLessThan(MINUTE)
  expect(reachability.trouble()).toBeUndefined()
  expect(reachability.restMs(route)).toBeGreaterThan(8 * MINUTE)
  expect(reachability.restMs(REQUEST.route)).toBe(0)

  pass(10 * MINUTE)
  observe({
    kind: 'answer',
    value: {},
    bytes: 2,
    serverTime: undefined,
    startedAt: clock.now(),
    durationMs: 10,
  })
  expect(await noted()).toEqual([])
  expect(logged()).toMatchObject([
    { level: 'warn', msg: 'The API limits the requests on one route; the others go on', route },
  ])
})

test('a list that waits for long is a gate beside those of the API, and its answer opens it', async () => {
  const { reachability, backoffs, clock, noted } = await reachable()
  reachability.begin()
  backoffs.unavailable('teams.list', '', { reason: 'the API answers 404', wasOffered: false })
  const closed = [{ what: 'feed:teams.list', kind: 'unavailable', tries: 1, resources: ['teams'] }]
  expect(await noted()).toMatchObject(closed)
  reachability.notePause({ pausedUntil: clock.now() + 10 * MINUTE, pauseReason: 'throttled' })
  expect(await noted()).toMatchObject([{ what: API_GATE }, ...closed])
  backoffs.answered('teams.list')
  expect(await noted()).toMatchObject([{ what: API_GATE }])
})

test('a route that rests for long is a gate, also when the process ends; the next begins with a trial', async () => {
  const { reachability, clock, pass, noted, store } = await reachable()
  const route = '/v2/messages/{messageId}'
  const fail = (path: string) => {
    const sent = { kind: 'retry', cause: 'server', status: 503, message: 'HTTP 503' } as const
    const asked = { feed: 'message_bodies.read', request: { route, path }, isDeclared: false }
    reachability.noteSending(asked.request)
    reachability.observe(asked, { ...sent, startedAt: clock.now(), durationMs: 10 }, {})
  }
  for (const path of ['1', '2', '1']) fail(path)
  expect(await noted()).toEqual([])
  for (let rest = 0; rest < 6; rest += 1) {
    pass(reachability.restMs(route))
    fail('1')
  }
  const gate = { what: `route:${route}`, kind: 'failing', tries: 7, resources: ['messages'] }
  expect(await noted()).toMatchObject([gate])
  reachability.end()
  expect(await noted()).toMatchObject([gate])

  const next = await reachable(
    {},
    store.gates.closed().map(one => ({ ...one, since: AT })),
  )
  next.reachability.begin()
  expect(await next.noted()).toMatchObject([gate])
  expect(next.reachability.restMs(route)).toBe(0)
})

test('resources do not count as late while the API is away, nor soon after', async () => {
  const { reachability, excusedUntil, clock, answered, noted } = await reachable()
  const asked = { feed: 'messages.list', request: REQUEST, isDeclared: false }
  const failed = { kind: 'retry', cause: 'unreachable', message: 'connection refused' } as const
  reachability.notePause({ pausedUntil: clock.now() + MINUTE, pauseReason: 'asked' })
  expect(excusedUntil.get('messages')).toBeUndefined()
  reachability.notePause({})
  for (let failures = 0; failures < 5; failures += 1)
    reachability.observe(asked, { ...failed, startedAt: clock.now(), durationMs: 10 }, {})
  expect(await noted()).toMatchObject([{ kind: 'silent' }])
  expect(excusedUntil.get('messages')).toBe(Number.POSITIVE_INFINITY)
  answered()
  expect(excusedUntil.get('messages')).toBeGreaterThan(clock.elapsed())
  expect(excusedUntil.get('messages')).toBeLessThan(clock.elapsed() + 11 * MINUTE)
})
