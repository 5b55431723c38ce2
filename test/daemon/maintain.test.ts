import { readFileSync } from 'node:fs'
import Database from 'better-sqlite3'
import { expect, test } from 'vitest'
import { maintain } from '../../src/daemon/maintain.ts'
import { createLog } from '../../src/log.ts'
import { virtualClock } from '../api/virtual-clock.ts'
import { temporaryStore } from '../store/temporary-store.ts'
import { until } from '../support/until.ts'

const NOW = Date.parse('2026-03-04T03:17:00.000Z')
const DAY = 86_400_000
const daysAgo = (days: number) => new Date(NOW - days * DAY).toISOString()

/** Teams of which some were withdrawn so many days ago. */
async function worldOf(withdrawnDaysAgo: readonly number[]) {
  const store = temporaryStore()
  let lines = ''
  const log = await createLog({ level: 'info', stream: { write: (text: string) => (lines += text) } })
  const names = withdrawnDaysAgo.map((_, at) => ({ id: `t${at}`, name: `Team ${at}`, member_ids: [] }))
  store.put('teams', [...names, { id: 'live', name: 'Team of today', member_ids: [] }])
  await store.transaction(() =>
    withdrawnDaysAgo.forEach((days, at) => {
      store.tombstone('teams', [[`t${at}`]], daysAgo(days))
    }),
  )
  const clock = virtualClock(NOW)
  const run = (retention: { withdrawnDays: number | 'never'; runsDays: number }) =>
    maintain({
      store,
      clock,
      log,
      retention,
      search: { enabled: true },
      signal: new AbortController().signal,
    })
  return { store, clock, run, logged: () => lines }
}

test('what was withdrawn longer ago than the owner keeps it loses its content, and nothing else does', async () => {
  const { store, run, logged } = await worldOf([31, 29, 400])
  await run({ withdrawnDays: 30, runsDays: 90 })
  expect(store.all('SELECT id, name FROM teams ORDER BY id')).toEqual([
    { id: 'live', name: 'Team of today' },
    { id: 't0', name: null },
    { id: 't1', name: 'Team 1' },
    { id: 't2', name: null },
  ])
  expect(JSON.parse(logged())).toMatchObject({ msg: 'Maintenance is done', rows: 2 })
})

test('what a reader keeps of it in the log is cleared once the reader has gone', async () => {
  const { store, clock, run, logged } = await worldOf([31])
  const reader = new Database(store.db.name, { readonly: true })
  reader.exec('BEGIN; SELECT * FROM teams')
  const done = run({ withdrawnDays: 30, runsDays: 90 })
  await until(logged, lines => lines.includes('Maintenance is done'))
  const holds = () => readFileSync(`${store.db.name}-wal`).includes('Team 0')
  expect(holds()).toBe(true)
  reader.close()
  await clock.advance(60_000)
  await done
  expect(holds()).toBe(false)
})

test('an owner who never wants it erased keeps all of it', async () => {
  const { store, run } = await worldOf([31, 4000])
  await run({ withdrawnDays: 'never', runsDays: 90 })
  expect(store.column('SELECT count(*) FROM teams WHERE name IS NULL')).toEqual([0])
})

test('old runs go, and of those that had nothing to tell all but the newest and today’s', async () => {
  const { store, run } = await worldOf([])
  const insert = store.prepare(
    `INSERT INTO sync_runs (resource, lane, started_at, ended_at, outcome, rows_changed) VALUES ('teams', 'audit', ?, ?, 'complete', ?)`,
  )
  for (const [days, changed] of [
    [91, 5],
    [89, 5],
    [3, 0],
    [2, 0],
    [0.5, 0],
  ] as const) {
    insert.run(daysAgo(days), daysAgo(days), changed)
  }
  await run({ withdrawnDays: 30, runsDays: 90 })
  expect(store.column('SELECT started_at FROM sync_runs ORDER BY 1')).toEqual([daysAgo(89), daysAgo(0.5)])
})

test('it is noted when it was done, so that a missed night is made up for', async () => {
  const { store, run } = await worldOf([])
  await run({ withdrawnDays: 30, runsDays: 90 })
  expect(store.state.meta('maintained_at')).toBe(daysAgo(0))
})
