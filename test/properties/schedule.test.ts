import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isoInstant } from '../../src/base/clock.ts'
import { CATALOG } from '../../src/catalog/catalog.ts'
import type { ResourceName } from '../../src/declare/resource-names.ts'
import { schedulesOf } from '../../src/engine/due/lateness.ts'
import { virtualClock } from '../api/virtual-clock.ts'
import { startTrial } from '../engine/trial-backfill.ts'
import { startTimed } from '../engine/trial-timed.ts'
import { runs } from '../support/effort.ts'
import {
  numberedPage,
  refused,
  type ScriptedAnswer,
  startScriptedApi,
  v1Page,
  v2Page,
} from '../support/scripted-api.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
const WEEK = 7 * DAY
const START = Date.parse('2026-01-05T00:00:00.000Z')

/** One of each mode that reads lists. */
const RESOURCES: readonly ResourceName[] = ['members', 'activities', 'access_logs', 'bot_definition']
const ROUTES = {
  members: '/v1/members',
  activities: '/v2/activities',
  access_logs: '/v1/public-api-access-logs',
  bot_definition: '/v1/bot-definition',
} as const

type Answer = 'good' | 403 | 404 | 500 | 'garbled'

type Step =
  /** Time passes while the process runs, a piece at a time. */
  | { kind: 'run'; pieces: number; pieceMs: number }
  /** Time passes while nothing runs: a suspended machine, or a process that was not started. */
  | { kind: 'pause'; ms: number }
  /** After this many further answers the process is killed with a request in flight, and another starts. */
  | { kind: 'kill'; after: number }
  /** After this many further answers one takes this long, as when the machine sleeps or the API is down. */
  | { kind: 'late'; after: number; ms: number }
  | { kind: 'answer'; of: keyof typeof ROUTES; answer: Answer }
  /** This machine's clock, or the one in the API's answers, goes wrong by so much. */
  | { kind: 'clock'; whose: 'machine' | 'server'; byMs: number }

const span = fc.oneof(
  fc.integer({ min: 1000, max: 10 * MINUTE }),
  fc.integer({ min: 10 * MINUTE, max: 5 * HOUR }),
  fc.integer({ min: DAY, max: 40 * DAY }),
)
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    kind: fc.constant('run' as const),
    pieces: fc.integer({ min: 1, max: 3 }),
    pieceMs: fc.integer({ min: MINUTE, max: 4 * HOUR }),
  }),
  fc.record({ kind: fc.constant('pause' as const), ms: span }),
  fc.record({ kind: fc.constant('kill' as const), after: fc.nat(4) }),
  fc.record({ kind: fc.constant('late' as const), after: fc.nat(4), ms: span }),
  fc.record({
    kind: fc.constant('answer' as const),
    of: fc.constantFrom(...(Object.keys(ROUTES) as (keyof typeof ROUTES)[])),
    answer: fc.constantFrom<Answer>('good', 403, 404, 500, 'garbled'),
  }),
  fc.record({
    kind: fc.constant('clock' as const),
    whose: fc.constantFrom('machine' as const, 'server' as const),
    byMs: fc.oneof(fc.constant(0), fc.integer({ min: -3 * DAY, max: 45 * DAY })),
  }),
)

/** The last part of the time, in which every request is answered: longer than the longest backoff. */
const LAST = { pieces: 12, pieceMs: 3 * HOUR }

/** A workspace, its API and one daemon after another over one file, on a clock that a test moves. */
async function startWorld(scale: number) {
  const virtual = virtualClock(START)
  const off = { machine: 0, server: 0 }
  const answers = new Map<string, Answer>()
  const clock = { ...virtual, now: () => virtual.now() + off.machine }
  const api = await startScriptedApi()
  const entries: { occurred_at: string; operation: string }[] = []
  const bodies: Readonly<
    Record<keyof typeof ROUTES, (query: Readonly<Record<string, string>>) => ScriptedAnswer>
  > = {
    members: () => numberedPage([{ id: 'm', name: 'M', email: 'm@example.com', role: 'x' }]),
    activities: () => v2Page([]),
    bot_definition: () => ({ body: { data: { name: 'bot' } } }),
    access_logs: ({ from = '', to = '~' }) =>
      v1Page(entries.filter(({ occurred_at: at }) => at >= from && at < to).reverse()),
  }
  for (const [name, route] of Object.entries(ROUTES)) {
    api.on(route, ({ query }) => {
      const answer = answers.get(name) ?? 'good'
      const date = new Date(virtual.now() + off.server).toUTCString()
      if (typeof answer === 'number') return { ...refused(answer), headers: { date } }
      if (answer === 'garbled') return { body: { nothing: true }, headers: { date } }
      return { ...bodies[name as keyof typeof ROUTES](query), headers: { date } }
    })
  }
  const trial = await startTrial(api)
  const start = () =>
    startTimed(api, trial, RESOURCES, { clock, intervalScale: scale, pollMs: MINUTE * scale })
  let timed = await start()

  const setClock = (whose: keyof typeof off, byMs: number) => {
    off[whose] = byMs
  }

  const pass = async (ms: number) => {
    await virtual.advance(Math.max(1, Math.round(ms * scale)))
    entries.push({ occurred_at: isoInstant(virtual.now() - 1), operation: `entry ${entries.length}` })
  }

  return {
    trial,
    context: () => timed.context,
    /** Moves time without a publication. Returns the number of requests that are due then. */
    async requestsAfter(ms: number): Promise<number> {
      await virtual.advance(ms)
      const before = api.requests.length
      await timed.drain()
      return api.requests.length - before
    },
    nextDueMs: () => timed.nextDueMs(),
    now: virtual.now,
    entries,
    async play(what: Step) {
      if (what.kind === 'run') {
        for (let piece = 0; piece < what.pieces; piece += 1) {
          await pass(what.pieceMs)
          await timed.drain()
        }
      } else if (what.kind === 'pause') await pass(what.ms)
      else if (what.kind === 'answer') answers.set(what.of, what.answer)
      else if (what.kind === 'clock') setClock(what.whose, what.byMs * scale)
      else {
        const asked = await timed.askAfter(what.after)
        if (what.kind === 'kill') timed = await start()
        else {
          await pass(what.ms)
          await asked?.apply()
        }
      }
    },
    async mend() {
      answers.clear()
      setClock('machine', 0)
      setClock('server', 0)
    },
  }
}

/** In ms. Due times that are computed from the server's clock and this machine's differ by a rounding. */
const ROUNDING_MS = 1

const DECLARED = CATALOG.filter(({ name }) => RESOURCES.includes(name))

describe('the lists that the workspace offers', () => {
  test('every list has a due time at most a week ahead, and is read on schedule again, whatever happened', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { minLength: 1, maxLength: 10 }),
        fc.constantFrom(1, 0.01),
        async (steps, scale) => {
          const world = await startWorld(scale)
          const schedules = () => DECLARED.flatMap(resource => schedulesOf(world.context(), resource))
          for (const each of steps) {
            await world.play(each)
            const until = world.context().server.now() + WEEK * scale
            const silent = schedules().filter(({ dueAt }) => dueAt === undefined || dueAt > until)
            expect(silent.map(({ feed }) => feed)).toEqual([])
          }
          await world.mend()
          await world.play({ kind: 'run', ...LAST })
          const late = schedules().filter(({ parts }) =>
            parts.some(
              ({ listedAt, intervalMs }) =>
                world.now() - listedAt > Math.max(2 * intervalMs, 2 * LAST.pieceMs * scale),
            ),
          )
          expect(late).toEqual([])
          // What the API dates wrongly itself cannot be told from what is read to its end.
          if (steps.some(each => each.kind === 'clock' && each.whose === 'server' && each.byMs > 0)) return
          const stored = new Set(world.trial.column('SELECT operation FROM access_logs'))
          const before = isoInstant(world.now() - 2 * LAST.pieceMs * scale)
          const missed = world.entries.filter(
            ({ occurred_at, operation }) => occurred_at < before && !stored.has(operation),
          )
          expect(missed).toEqual([])
        },
      ),
      { numRuns: runs(20), endOnFailure: true },
    )
  })

  test('an idle daemon sleeps until something is due, and something is due then, whatever happened', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 6 }), fc.constantFrom(1, 0.01), async (steps, scale) => {
        const world = await startWorld(scale)
        for (const each of steps) await world.play(each)
        await world.mend()
        await world.requestsAfter(1)
        for (let sleep = 0; sleep < 8; sleep += 1) {
          const ms = world.nextDueMs()
          expect(ms).toBeGreaterThan(0)
          expect(await world.requestsAfter(Math.max(0, ms - ROUNDING_MS))).toBe(0)
          expect(await world.requestsAfter(2 * ROUNDING_MS)).toBeGreaterThan(0)
        }
      }),
      { numRuns: runs(20), endOnFailure: true },
    )
  })
})
