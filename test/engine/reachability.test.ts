import { expect, test } from 'vitest'
import { systemClock } from '../../src/clock.ts'
import { createReachability } from '../../src/engine/scheduler/reachability.ts'
import { createLog } from '../../src/log.ts'
import { META } from '../../src/store/sync/meta.ts'
import { temporaryStore } from '../store/temporary-store.ts'

const MINUTE = 60_000
const REQUEST = { resource: 'messages', route: '/v2/messages', path: '/v2/messages' }

/** With a clock that a test moves. */
async function reachable() {
  const store = temporaryStore()
  let passed = 0
  const system = systemClock()
  const clock = { ...system, now: () => system.now() + passed, elapsed: () => system.elapsed() + passed }
  const reachability = createReachability({
    context: { store, clock, log: await createLog({ level: 'fatal' }) },
    access: { baseUrl: 'https://api.example.com', workspaceId: 'acme', keySource: 'the test' },
    resources: ['messages'],
    options: { healthChecks: [], againAfterMs: MINUTE, wasAnswered: true, accessWasLost: false },
    giveUpMs: Number.POSITIVE_INFINITY,
    random: () => 0.5,
  })
  const answered = () => {
    const answer = { kind: 'answer', value: {}, bytes: 2, serverTime: undefined } as const
    const asked = { feed: 'messages.list', request: REQUEST, isDeclared: false }
    reachability.observe(asked, { ...answer, startedAt: clock.now(), durationMs: 10 })
  }
  return {
    reachability,
    clock,
    answered,
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
  ['asked', 'asked-to-wait'],
  ['requests-per-day', 'day-used-up'],
] as const)(
  'a pause (%s) is stored until it is over, also while earlier requests are answered',
  async (pauseReason, kind) => {
    const { reachability, clock, answered, pass, noted } = await reachable()
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
  },
)

test('a pause of seconds is not stored', async () => {
  const { reachability, clock, noted } = await reachable()
  reachability.notePause({ pausedUntil: clock.now() + 5000, pauseReason: 'throttled' })
  expect(await noted()).toBeNull()
})
