import { expect, test } from 'vitest'
import type { CoverageGrid } from '../../src/store/status/coverage.ts'
import { readOverview } from '../../src/store/status/overview.ts'
import { temporaryStore } from './temporary-store.ts'

const NOW = Date.parse('2026-03-04T12:00:30.000Z')

const copy = (id: string, receivedAt: string | null) => ({
  id,
  header_message_id: `<${id}@example.com>`,
  received_at: receivedAt,
  participants: [],
})

const activity = (id: string, occurredAt: string) => ({
  id,
  type: 'call',
  source_type: 'MEETING',
  source_id: 'm',
  occurred_at: occurredAt,
  created_via: null,
  actor: null,
  links: [],
})

const cellsOf = ({ rows }: CoverageGrid, name: string) =>
  rows.find(({ resource }) => resource === name)?.cells

test('the coverage counts e-mails and their missing texts by month', () => {
  const store = temporaryStore()
  store.put('message_copies', [
    copy('a', '2026-02-01T00:00:00Z'),
    copy('b', '2026-03-01T00:00:00Z'),
    copy('c', '2026-03-02T00:00:00Z'),
  ])
  store.db.exec("UPDATE sync_segments SET listed_at = '2026-03-04T00:00:00.000Z'")
  store.db.exec("UPDATE messages SET text_state = 'present' WHERE received_at < '2026-03-02'")
  const { coverage } = readOverview(store.db, NOW)
  expect(coverage.months).toEqual(['2026-02', '2026-03'])
  expect(cellsOf(coverage, 'messages')).toMatchObject([
    { rows: 1, state: 'complete' },
    { rows: 2, state: 'complete' },
  ])
  expect(cellsOf(coverage, 'message_bodies')).toMatchObject([
    { rows: 1, missing: 0, state: 'complete' },
    { rows: 1, missing: 1, state: 'texts-missing' },
  ])
})

test('the coverage of a list that was never read says that it is being read', () => {
  const { coverage } = readOverview(temporaryStore().db, NOW)
  expect(cellsOf(coverage, 'activities')).toMatchObject([{ month: '2026-03', state: 'reading' }])
})

test('the coverage counts suspected deletions in the month of their rows', () => {
  const store = temporaryStore()
  store.put('activities', [activity('a', '2026-02-01T00:00:00Z'), activity('b', '2026-03-01T00:00:00Z')])
  store.db.exec("UPDATE sync_segments SET listed_at = '2026-03-04T00:00:00.000Z'")
  store.db.exec(
    `INSERT INTO sync_suspicions (table_name, key, missing_since) VALUES ('activities', 'a', '2026-03-04T00:00:00.000Z')`,
  )
  expect(cellsOf(readOverview(store.db, NOW).coverage, 'activities')).toMatchObject([
    { suspected: 1, state: 'suspected' },
    { suspected: 0, state: 'complete' },
  ])
})

test('the last 24 runs of a resource are shown, oldest first', () => {
  const store = temporaryStore()
  const insert = store.db.prepare(
    "INSERT INTO sync_runs (resource, lane, started_at, rows_changed) VALUES ('teams', 'audit', ?, ?)",
  )
  for (let hour = 0; hour < 30; hour += 1) insert.run(new Date(NOW + hour * 3_600_000).toISOString(), hour)
  const { runs } = readOverview(store.db, NOW)
  expect([...runs.keys()]).toEqual(['teams'])
  expect(runs.get('teams')?.map(row => row.rows_changed)).toEqual(
    Array.from({ length: 24 }, (_, index) => index + 6),
  )
})

test('traffic is summed by minute, by quarter of an hour and by two hours', () => {
  const store = temporaryStore()
  const insert = store.db.prepare(
    'INSERT INTO sync_minutes (at, requests, throttled, in_flight, rate) VALUES (?, ?, 1, ?, ?)',
  )
  insert.run('2026-03-04T12:00:00.000Z', 10, 2, 9.5)
  insert.run('2026-03-04T11:59:00.000Z', 20, 4, 8)
  insert.run('2026-03-04T11:45:00.000Z', 40, 3, null)
  insert.run('2026-02-20T00:00:00.000Z', 500, 3, null)
  const { hour, day, week } = readOverview(store.db, NOW).traffic
  expect([hour.length, day.length, week.length]).toEqual([60, 96, 84])
  expect(hour.at(-1)).toMatchObject({ at: '2026-03-04T12:00:00.000Z', minutes: 1, requests: 10, rate: 9.5 })
  expect(hour[0]).toMatchObject({ at: '2026-03-04T11:01:00.000Z', minutes: 0, requests: 0, rate: null })
  expect(day.at(-2)).toEqual({
    at: '2026-03-04T11:45:00.000Z',
    minutes: 2,
    requests: 60,
    throttled: 2,
    errors: 0,
    rows: 0,
    rate: 8,
    in_flight: 4,
    paused_seconds: 0,
  })
  expect(week.slice(-2).map(({ requests }) => requests)).toEqual([60, 10])
  expect(week.reduce((sum, { requests }) => sum + requests, 0)).toBe(70)
})

test('today has the rows of this day alone', () => {
  const store = temporaryStore()
  store.db.exec(
    `INSERT INTO sync_days (day, resource, rows_new) VALUES ('2026-03-03', 'teams', 1), ('2026-03-04', 'meetings', 2)`,
  )
  expect(readOverview(store.db, NOW).today).toMatchObject([{ resource: 'meetings', rows_new: 2 }])
})

test('fields that differ from their declaration are named', () => {
  const store = temporaryStore()
  store.db.exec(
    `INSERT INTO sync_meta (key, value) VALUES ('drift', '[["meetings","title","unexpected type"]]')
     ON CONFLICT DO UPDATE SET value = excluded.value`,
  )
  expect(readOverview(store.db, NOW).drift).toEqual([
    { table: 'meetings', field: 'title', reason: 'unexpected type' },
  ])
})
