import { expect, test } from 'vitest'
import type { GovernorState } from '../../src/api/governor/governor.ts'
import { createLog } from '../../src/base/log.ts'
import type { Traffic } from '../../src/engine/requests/request-counts.ts'
import { recordMinutes } from '../../src/engine/run/minute-recorder.ts'
import { META, readNote } from '../../src/store/sync/meta.ts'
import { virtualClock } from '../api/virtual-clock.ts'
import { type TemporaryStore, temporaryStore } from '../store/temporary-store.ts'

const NOON = Date.parse('2026-03-04T12:00:00.000Z')
const IDLE: GovernorState = {
  ratePerSecond: 50,
  concurrency: 4,
  inFlight: 0,
  throttled: 0,
  accepted: 0,
  usedToday: 0,
  reservedToday: 0,
}

const minutesOf = (store: TemporaryStore) => store.all('SELECT * FROM sync_minutes ORDER BY at')

/** So many new meetings written so far. */
const newMeetings = (rows: number) =>
  new Map([['meetings' as const, { rowsChanged: rows, rowsNew: rows, rowsDeleted: 0 }]])

async function startRecording(startsAt = NOON) {
  const store = temporaryStore()
  const virtual = virtualClock(startsAt)
  let jumpedMs = 0
  const clock = { ...virtual, now: () => virtual.now() + jumpedMs }
  let lines = ''
  const log = await createLog({ level: 'info', stream: { write: (text: string) => (lines += text) } })
  const seen = {
    state: IDLE,
    learned: { ratePerSecond: 50, concurrency: 4, limited: false },
    traffic: { requests: 0, throttled: 0, errors: 0, written: new Map() } as Traffic,
  }
  let tell: () => void = () => undefined
  const governor = {
    state: () => seen.state,
    learned: () => seen.learned,
    onChange: (listener: () => void) => {
      tell = listener
      return () => undefined
    },
  }
  const ending = new AbortController()
  const saveLearned = () => store.state.setMeta(META.learnedRate, JSON.stringify(seen.learned))
  const ended = recordMinutes({ clock, store, governor, log, saveLearned }, () => seen.traffic, ending.signal)
  const end = () => {
    ending.abort()
    return ended
  }
  /** Second by second, so that each sample is taken and each minute stored before time goes on. */
  const advance = async (ms: number) => {
    for (let passed = 0; passed < ms; passed += 1000) {
      await virtual.advance(1000)
      await store.transaction(() => undefined).catch(() => undefined)
    }
  }
  const jump = (ms: number) => {
    jumpedMs += ms
  }
  return { store, advance, jump, seen, end, tell: () => tell(), lines: () => lines }
}

test('each minute gets one row with the requests and rows of that minute', async () => {
  const { store, advance, seen, end } = await startRecording()
  seen.traffic = { requests: 10, throttled: 2, errors: 1, written: newMeetings(300) }
  await advance(60_000)
  seen.traffic = { requests: 15, throttled: 2, errors: 1, written: newMeetings(450) }
  await advance(30_000)
  await end()
  expect(minutesOf(store)).toMatchObject([
    { at: '2026-03-04T12:00:00.000Z', requests: 10, throttled: 2, errors: 1, rows: 300 },
    { at: '2026-03-04T12:01:00.000Z', requests: 5, throttled: 0, errors: 0, rows: 150 },
  ])
})

test('each day counts the new, changed and deleted rows of each resource once', async () => {
  const { store, advance, seen, end } = await startRecording(Date.parse('2026-03-04T23:59:00.000Z'))
  const teams = { rowsChanged: 2, rowsNew: 0, rowsDeleted: 1 }
  const written = new Map([...newMeetings(5), ['teams' as const, teams]])
  seen.traffic = { ...seen.traffic, written }
  await advance(60_000)
  seen.traffic = { ...seen.traffic, written: new Map([...written, ...newMeetings(6)]) }
  await advance(90_000)
  await end()
  expect(store.all('SELECT * FROM sync_days ORDER BY day, resource')).toEqual([
    { day: '2026-03-04', resource: 'meetings', rows_new: 5, rows_changed: 0, rows_deleted: 0 },
    { day: '2026-03-04', resource: 'teams', rows_new: 0, rows_changed: 2, rows_deleted: 1 },
    { day: '2026-03-05', resource: 'meetings', rows_new: 1, rows_changed: 0, rows_deleted: 0 },
  ])
})

test('an idle minute has a row too, so that a missing row means that parley did not run', async () => {
  const { store, advance, end } = await startRecording()
  await advance(120_000)
  await end()
  expect(store.column('SELECT requests FROM sync_minutes')).toEqual([0, 0, 0])
})

test('what was learned about the API is saved with each minute, also with an idle one', async () => {
  const { store, advance, seen, end } = await startRecording()
  const saved = () => readNote(store.state.meta, META.learnedRate)
  await advance(30_000)
  expect(saved()).toBeUndefined()
  await advance(30_000)
  expect(saved()).toEqual(seen.learned)
  seen.learned = { ...seen.learned, ratePerSecond: 20 }
  await advance(60_000)
  expect(saved()).toEqual(seen.learned)
  await end()
})

test('a process that starts within a minute adds to the row of that minute', async () => {
  const { store, advance, seen, end } = await startRecording(NOON + 5000)
  store.db.exec(
    `INSERT INTO sync_minutes (at, requests, in_flight) VALUES ('2026-03-04T12:00:00.000Z', 7, 3)`,
  )
  seen.traffic = { ...seen.traffic, requests: 4 }
  seen.state = { ...IDLE, inFlight: 2 }
  await advance(1000)
  await end()
  expect(minutesOf(store)).toMatchObject([{ requests: 11, in_flight: 3 }])
})

test('a request that lasts into the next minute is in flight in both', async () => {
  const { store, advance, seen, end, tell } = await startRecording()
  seen.state = { ...IDLE, inFlight: 1 }
  tell()
  await advance(60_000)
  seen.state = IDLE
  tell()
  await end()
  expect(store.column('SELECT in_flight FROM sync_minutes')).toEqual([1, 1])
})

test('the limit of the API is stored once it is known, and a pause counts by the second', async () => {
  const { store, advance, seen, end, tell } = await startRecording()
  seen.state = { ...IDLE, pausedUntil: NOON + 20_500, pauseReason: 'asked' }
  tell()
  await advance(60_000)
  seen.learned = { ratePerSecond: 9.5, concurrency: 4, limited: true }
  await end()
  expect(minutesOf(store)).toMatchObject([
    { rate: null, paused_seconds: 20 },
    { rate: 9.5, paused_seconds: 0 },
  ])
})

test('a minute that cannot be stored is logged and lost, and the next one is stored', async () => {
  const { store, advance, seen, end, lines } = await startRecording()
  store.db.pragma('query_only = ON')
  await advance(60_000)
  store.db.pragma('query_only = OFF')
  seen.traffic = { ...seen.traffic, requests: 6 }
  await advance(60_000)
  await end()
  expect(lines()).toContain('could not be stored in sync_minutes')
  expect(minutesOf(store)).toMatchObject([{ at: '2026-03-04T12:01:00.000Z', requests: 6 }, {}])
})

test('the time of a machine that was suspended during a pause does not count as paused', async () => {
  const { store, advance, jump, seen, end, tell } = await startRecording()
  seen.state = { ...IDLE, pausedUntil: NOON + 86_400_000, pauseReason: 'asked' }
  tell()
  await advance(30_000)
  jump(3_600_000)
  await advance(30_000)
  await end()
  expect(store.all('SELECT at, paused_seconds FROM sync_minutes ORDER BY at')).toEqual([
    { at: '2026-03-04T12:00:00.000Z', paused_seconds: 60 },
    { at: '2026-03-04T13:01:00.000Z', paused_seconds: 0 },
  ])
})
