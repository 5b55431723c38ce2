import { expect, onTestFinished, test } from 'vitest'
import { createLog } from '../../src/base/log.ts'
import { maintainNightly } from '../../src/daemon/nightly.ts'
import { META } from '../../src/store/sync/meta.ts'
import { virtualClock } from '../api/virtual-clock.ts'
import { owners } from '../store/snapshot-copies.ts'
import { temporaryStore } from '../store/temporary-store.ts'
import { until } from '../support/until.ts'

const NOON = Date.parse('2026-03-04T12:00:00.000Z')
const HOUR = 3_600_000
const DAY = 24 * HOUR

/** A daemon at noon, with a team that was deleted forty days ago. */
async function daemonAtNoon() {
  const store = temporaryStore()
  const lines: { msg: string; reason?: string }[] = []
  const stream = { write: (text: string) => lines.push(JSON.parse(text)) }
  const log = await createLog({ level: 'info', stream })
  store.put('teams', [{ id: 't', name: 'Team', member_ids: [] }])
  await store.transaction(() => store.tombstone('teams', [['t']], new Date(NOON - 40 * DAY).toISOString()))
  const even = virtualClock(NOON)
  let [jumpedBy, server, ends] = [0, undefined as number | undefined, 0]
  const clock = { ...even, now: () => even.now() + jumpedBy }
  const stop = new AbortController()
  return {
    store,
    clock,
    lines,
    ends: () => ends,
    name: () => store.column('SELECT name FROM teams')[0],
    doneAt: () => store.state.meta(META.maintainedAt),
    /** Moves the clock without timers, as a sleeping machine does. */
    sleep(ms: number) {
      jumpedBy += ms
    },
    /** The API answers with a clock that is this far ahead of this machine's. */
    answer(aheadMs: number) {
      server = aheadMs
    },
    /** Resolves when the daemon waits for the first time, or has work. */
    async start() {
      const settings = {
        database: { path: store.path, mode: 0o600 },
        retention: { withdrawnDays: 30, runsDays: 90 },
        search: { enabled: false },
        snapshot: { every: undefined, folder: undefined, keep: 7 },
      }
      const ended = maintainNightly(
        { store, clock, log, settings, signal: stop.signal, readOwners: owners },
        {
          serverTime: () => (server === undefined ? undefined : clock.now() + server),
          endSession: () => {
            ends += 1
          },
        },
      )
      onTestFinished(() => {
        stop.abort()
        return ended
      })
      await new Promise(setImmediate)
    },
  }
}

const at = (ms: number) => new Date(ms).toISOString()

test('without a note of earlier maintenance, it is due once the API has told the time, and ages count from then', async () => {
  const { clock, start, name, doneAt, answer, sleep } = await daemonAtNoon()
  await start()
  await clock.advance(60_000)
  expect([name(), doneAt()]).toEqual(['Team', undefined])
  answer(0)
  await clock.advance(1000)
  expect(await until(doneAt, done => done !== undefined)).toBe(at(NOON + 61_000))
  // The clock that set the time of the deletion may have been wrong.
  expect(name()).toBe('Team')
  sleep(31 * DAY)
  await clock.advance(HOUR)
  expect(await until(name, found => found === null)).toBe(null)
})

test('maintenance that a sleeping machine missed is done when it wakes', async () => {
  const { store, clock, start, name, doneAt, answer, sleep } = await daemonAtNoon()
  store.state.setMeta(META.maintainedAt, at(NOON - HOUR))
  answer(0)
  await start()
  await clock.advance(HOUR)
  expect(name()).toBe('Team')
  sleep(20 * HOUR)
  await clock.advance(60_000)
  expect(await until(doneAt, done => done !== at(NOON - HOUR))).toBe(at(NOON + 21 * HOUR + 60_000))
  expect(name()).toBe(null)
})

test('a note with a time in the future, made under a wrong clock, does not delay maintenance', async () => {
  const { store, clock, start, name, answer } = await daemonAtNoon()
  store.state.setMeta(META.maintainedAt, at(NOON + 40 * DAY))
  answer(0)
  await start()
  await clock.advance(0)
  expect(await until(name, found => found === null)).toBe(null)
})

test.each([
  ['is more than a day away from this machine’s', 40 * DAY, 'differ by more than a day', 1000],
  ['is not known for an hour', undefined, 'the API has not sent its time', HOUR + 1000],
] as const)(
  'nothing is purged while the clock of the API %s, and this is logged once',
  async (_, ahead, reason, ms) => {
    const { clock, start, name, doneAt, answer, lines } = await daemonAtNoon()
    if (ahead !== undefined) answer(ahead)
    await start()
    await clock.advance(ms)
    const told = () => lines.filter(({ msg }) => msg.startsWith('Maintenance is delayed'))
    expect((await until(told, found => found.length > 0))[0]?.reason).toContain(reason)
    await clock.advance(HOUR)
    expect([told().length, name(), doneAt()]).toEqual([1, 'Team', undefined])
  },
)

test('a large database that needs a rewrite ends the session', async () => {
  const { store, clock, start, answer, ends, doneAt } = await daemonAtNoon()
  store.state.setMeta(META.maintainedAt, at(NOON - 50 * DAY))
  const name = 'x'.repeat(40_000)
  store.put(
    'teams',
    Array.from({ length: 1000 }, (_, index) => ({ id: `large${index}`, name, member_ids: [] })),
  )
  answer(0)
  await start()
  await clock.advance(0)
  await until(doneAt, done => done !== undefined)
  expect(await until(ends, count => count > 0)).toBe(1)
})
