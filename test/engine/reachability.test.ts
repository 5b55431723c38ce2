import { expect, test } from 'vitest'
import type { HealthCheck, ReachOptions } from '../../src/api/reach.ts'
import { systemClock } from '../../src/base/clock.ts'
import { createLog } from '../../src/base/log.ts'
import { createReachability } from '../../src/engine/requests/reachability.ts'
import { META } from '../../src/store/sync/meta.ts'
import { temporaryStore } from '../store/temporary-store.ts'

const MINUTE = 60_000
const AT = '2026-01-01T00:00:00.000Z'
const REQUEST = { route: '/v2/messages', path: '/v2/messages' }

const CHECKS: readonly HealthCheck[] = [
  { resource: 'messages', feed: 'messages.list', request: REQUEST },
  { resource: 'teams', feed: 'teams.list', request: { route: '/v1/teams', path: '/v1/teams' } },
]

/** With a clock that a test moves. */
async function reachable(options: Partial<ReachOptions> = {}) {
  const store = temporaryStore()
  const lines: string[] = []
  let passed = 0
  const system = systemClock()
  const clock = { ...system, now: () => system.now() + passed, elapsed: () => system.elapsed() + passed }
  const reachability = createReachability({
    context: {
      store,
      clock,
      log: await createLog({ level: 'info', stream: { write: line => lines.push(line) } }),
    },
    access: {
      baseUrl: 'https://api.example.com',
      workspaceId: 'acme',
      keySource: { by: 'file', text: 'the test' },
    },
    resources: ['messages'],
    options: { healthChecks: [], againAfterMs: MINUTE, wasAnswered: true, accessWasLost: false, ...options },
    giveUpMs: Number.POSITIVE_INFINITY,
    random: () => 0.5,
  })
  const answered = () => {
    const answer = { kind: 'answer', value: {}, bytes: 2, serverTime: undefined } as const
    const asked = { feed: 'messages.list', request: REQUEST, isDeclared: false }
    reachability.observe(asked, { ...answer, startedAt: clock.now(), durationMs: 10 }, {})
  }
  return {
    reachability,
    store,
    clock,
    answered,
    logged: () => lines.map(line => JSON.parse(line)),
    pass: (ms: number) => {
      passed += ms
    },
    noted: async () => {
      await store.transaction(() => undefined)
      return JSON.parse(store.state.meta(META.unreachable) ?? 'null')
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
    expect(await noted()).toMatchObject({ kind, resources: ['messages'] })

    pass(9.9 * MINUTE)
    answered()
    reachability.notePause({ pausedUntil, pauseReason })
    expect(await noted()).toMatchObject({ kind })

    pass(MINUTE)
    answered()
    reachability.notePause({})
    expect(await noted()).toBeNull()
    expect(logged()).toMatchObject([
      { level: 'warn', msg, wait_ms: expect.any(Number) },
      { level: 'info', msg: 'Requests are sent again', duration_ms: expect.any(Number) },
    ])
  },
)

test('lost access that an earlier session stored is cleared by the first answer, and not before', async () => {
  const { reachability, store, answered, clock, noted } = await reachable({
    accessWasLost: true,
    healthChecks: CHECKS,
  })
  const lost = { kind: 'refused', reason: 'x', since: AT, next_try_at: AT, resources: ['messages'] } as const
  await store.transaction(() => store.state.noteUnreachable(lost))
  reachability.begin()
  const refusal = { kind: 'refused', status: 403, message: 'x', isForeign: false } as const
  const asked = { feed: 'messages.list', request: REQUEST, isDeclared: false }
  reachability.observe(asked, { ...refusal, startedAt: clock.now(), durationMs: 10 }, {})
  expect(await noted()).toMatchObject({ kind: 'refused' })
  answered()
  expect(await noted()).toBeNull()
})

test('a pause of seconds is not stored', async () => {
  const { reachability, clock, noted } = await reachable()
  reachability.notePause({ pausedUntil: clock.now() + 5000, pauseReason: 'throttled' })
  expect(await noted()).toBeNull()
})
