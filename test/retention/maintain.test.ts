import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { createLog } from '../../src/base/log.ts'
import { maintainAfterBackfill } from '../../src/commands/backfill/final-steps.ts'
import {
  dueMaintenance,
  dueRebuild,
  type MaintainDeps,
  maintain,
  rebuildLarge,
  removePurgedRemains,
} from '../../src/retention/maintain.ts'
import { openSqlite } from '../../src/store/database/sqlite.ts'
import { rebuildFile } from '../../src/store/maintenance/maintenance.ts'
import { readStatusReport } from '../../src/store/status/report.ts'
import { META } from '../../src/store/sync/meta.ts'
import { virtualClock } from '../api/virtual-clock.ts'
import { owners } from '../store/snapshot-copies.ts'
import { temporaryStore } from '../store/temporary-store.ts'

const REBUILD_PROGRAM = new URL('../../dist/store/maintenance/rebuild-worker.js', import.meta.url)
const NOW = Date.parse('2026-03-04T03:17:00.000Z')
const DAY = 86_400_000
const daysAgo = (days: number) => new Date(NOW - days * DAY).toISOString()

/** Teams, some of them deleted this many days ago. */
async function worldOf(withdrawnDaysAgo: readonly number[]) {
  const store = temporaryStore()
  let lines = ''
  const log = await createLog({ level: 'info', stream: { write: (text: string) => (lines += text) } })
  const names = withdrawnDaysAgo.map((_, at) => ({ id: `t${at}`, name: `Team ${at}`, member_ids: [] }))
  store.put('teams', [...names, { id: 'live', name: 'Team of today', member_ids: [] }])
  await store.transaction(() => {
    // Ages count from a maintenance under a correct clock.
    store.state.setMeta(META.maintainedAt, daysAgo(500))
    withdrawnDaysAgo.forEach((days, at) => {
      store.tombstone('teams', [[`t${at}`]], daysAgo(days))
    })
  })
  const clock = virtualClock(NOW)
  const depsWith = (retention: MaintainDeps['settings']['retention']): MaintainDeps => ({
    store,
    clock,
    log,
    settings: {
      database: { path: store.path, mode: 0o600 },
      retention,
      search: { enabled: true },
      snapshot: { every: undefined, folder: undefined, keep: 7 },
    },
    signal: new AbortController().signal,
    readOwners: owners,
  })
  return {
    store,
    clock,
    depsWith,
    run: (retention: MaintainDeps['settings']['retention']) => maintain(depsWith(retention)),
    logged: () => lines,
  }
}

const USUAL = { withdrawnDays: 30, runsDays: 90 } as const

test('rows that were deleted longer ago than the owner keeps them lose their content, and no others do', async () => {
  const { store, run, logged } = await worldOf([31, 29, 400])
  await run(USUAL)
  expect(store.all('SELECT id, name FROM teams ORDER BY id')).toEqual([
    { id: 'live', name: 'Team of today' },
    { id: 't0', name: null },
    { id: 't1', name: 'Team 1' },
    { id: 't2', name: null },
  ])
  expect(JSON.parse(logged())).toMatchObject({ msg: 'Maintenance finished', rows: 2 })
})

test('content that a reader keeps in the WAL is noted for cleaning until any process cleans it', async () => {
  const { store, clock, run, depsWith } = await worldOf([31])
  const reader = openSqlite(store.path, { readonly: true })
  reader.exec('BEGIN; SELECT * FROM teams')
  await run(USUAL)
  const holds = () => readFileSync(`${store.path}-wal`).includes('Team 0')
  expect(holds()).toBe(true)
  expect(dueMaintenance({ store, clock }, NOW)).toBe('cleaning')
  reader.close()
  await removePurgedRemains(depsWith(USUAL))
  expect(holds()).toBe(false)
  expect(dueMaintenance({ store, clock }, NOW)).toBe('nothing')
})

test('with purging turned off all content stays', async () => {
  const { store, run } = await worldOf([31, 4000])
  await run({ withdrawnDays: 'never', runsDays: 90 })
  expect(store.column('SELECT count(*) FROM teams WHERE name IS NULL')).toEqual([0])
})

test('old runs are removed, and quiet ones too, except the newest and today’s', async () => {
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
  await run(USUAL)
  expect(store.column('SELECT started_at FROM sync_runs ORDER BY 1')).toEqual([daysAgo(89), daysAgo(0.5)])
})

test('maintenance notes when it was done, so that a missed one is caught up on', async () => {
  const { store, run } = await worldOf([])
  await run(USUAL)
  expect(store.state.meta(META.maintainedAt)).toBe(daysAgo(0))
})

test('interrupted maintenance is not noted as done, and continues where it was', async () => {
  const { store, clock, depsWith, run } = await worldOf([31])
  await maintain({ ...depsWith(USUAL), signal: AbortSignal.abort() })
  expect(dueMaintenance({ store, clock }, NOW)).toBe('maintenance')
  await run(USUAL)
  expect(store.column("SELECT name FROM teams WHERE id = 't0'")).toEqual([null])
})

test('maintenance that is killed between purging and cleaning leaves the cleaning to the next one', async () => {
  const { store, run } = await worldOf([31])
  await store.transaction(() => store.purger.purge({ before: daysAgo(30), limit: 10, now: daysAgo(0) }))
  expect(store.purger.remains()).toMatchObject({ inLog: true, inFile: true })
  await run(USUAL)
  expect(store.purger.remains()).toMatchObject({ inLog: false, inFile: false })
})

test.each([
  ['that is not known', undefined, 'unknown'],
  ['that is 40 days away', NOW + 40 * DAY, 'clocks-differ'],
  ['that agrees', NOW + 3_600_000, 'maintenance'],
] as const)('maintenance with a clock of the API %s is: %s', async (_, server, due) => {
  const { store, clock } = await worldOf([31])
  expect(dueMaintenance({ store, clock }, server)).toBe(due)
})

test('a row that was deleted under a clock ahead is purged in time once the clock is right', async () => {
  const { store, clock, run } = await worldOf([-3650])
  await run(USUAL)
  expect(store.column('SELECT withdrawn_at FROM sync_purge_queue')).toEqual([daysAgo(0)])
  await clock.advance(31 * DAY)
  await run(USUAL)
  expect(store.column("SELECT name FROM teams WHERE id = 't0'")).toEqual([null])
})

test('a row that was deleted under a clock behind is not purged too early', async () => {
  const { store, clock, run } = await worldOf([])
  store.put('teams', [{ id: 'early', name: 'Early', member_ids: [] }])
  await run(USUAL)
  await store.transaction(() => store.tombstone('teams', [['early']], daysAgo(9000)))
  const name = () => store.column("SELECT name FROM teams WHERE id = 'early'")
  await run(USUAL)
  await clock.advance(29 * DAY)
  await run(USUAL)
  expect(name()).toEqual(['Early'])
  await clock.advance(2 * DAY)
  await run(USUAL)
  expect(name()).toEqual([null])
})

test('rejects that were resolved long ago leave no byte in the files', async () => {
  const { store, run } = await worldOf([])
  store.rejects.note(
    { resource: 'teams', feed: 'teams.list', scope: '', item: { name: 'Zxqvkjwp' }, reason: 'no id' },
    daysAgo(60),
  )
  store.rejects.resolve('teams.list', null, daysAgo(50), daysAgo(50))
  const files = () => Buffer.concat([store.path, `${store.path}-wal`].map(file => readFileSync(file)))
  expect(files().includes('Zxqvkjwp')).toBe(true)
  await run(USUAL)
  expect(files().includes('Zxqvkjwp')).toBe(false)
  expect(store.purger.remains()).toMatchObject({ inLog: false, inFile: false })
})

describe('a purge that is not complete', () => {
  const REPORTS = / content| purged|could not|not complete/
  /** The warnings about the purge, and the lines about their ends. */
  const reports = (logged: string) =>
    logged
      .split('\n')
      .filter(line => line !== '')
      .map(line => JSON.parse(line))
      .filter(({ msg }) => REPORTS.test(msg))
      .map(({ level, msg, path, reason }) => ({ level, msg, path, reason }))

  const inStatus = ({ path }: { path: string }) => readStatusReport({ path, now: NOW }).purge_remains

  test('a -wal file that a reader holds is logged once with its path, and once when it is free', async () => {
    const { store, clock, run, depsWith, logged } = await worldOf([31])
    const path = `${store.path}-wal`
    const reader = openSqlite(store.path, { readonly: true })
    reader.exec('BEGIN; SELECT * FROM teams')
    await run(USUAL)
    for (let tries = 0; tries < 3; tries += 1) await removePurgedRemains(depsWith(USUAL))
    await clock.advance(DAY)
    await run(USUAL)
    const begins = {
      level: 'warn',
      msg: 'Purged content stays in the -wal file; its removal is tried again',
      path,
      reason: 'a program reads an older state of the database',
    }
    expect(reports(logged())).toEqual([begins])
    expect(inStatus(store)).toEqual([{ place: 'wal', path, reason: begins.reason }])
    reader.close()
    for (let tries = 0; tries < 2; tries += 1) await removePurgedRemains(depsWith(USUAL))
    expect(inStatus(store)).toEqual([])
    const ends = { level: 'info', msg: 'The -wal file no longer holds purged content', path }
    expect(reports(logged())).toEqual([begins, ends])
  })

  test('a small file that cannot be rebuilt is logged once with its path, and once when it was rebuilt', async () => {
    const { store, clock, run, logged } = await worldOf([31])
    const other = openSqlite(store.path)
    other.function('shout', { deterministic: true }, text => `${text}!`)
    // SQLite cannot rebuild a file with an index whose function it does not know.
    other.exec('CREATE TABLE notes (note TEXT); CREATE INDEX by_note ON notes (shout(note))')
    await run(USUAL)
    await clock.advance(DAY)
    await run(USUAL)
    const begins = {
      level: 'warn',
      msg: 'The free space of the database file may hold remains of purged content',
      path: store.path,
      reason:
        'the rebuild failed: another program may hold the write lock of the database, the disk may be full, or a limit on memory or file sizes is too low',
    }
    expect(reports(logged())).toEqual([begins])
    expect(inStatus(store)).toEqual([{ place: 'free space', path: store.path, reason: begins.reason }])
    other.exec('DROP INDEX by_note')
    other.close()
    await clock.advance(DAY)
    await run(USUAL)
    const msg = 'The free space of the database file no longer holds remains of purged content'
    expect(reports(logged())).toEqual([begins, { level: 'info', msg, path: store.path }])
  })

  test('a file that is too large for any rebuild is logged once with its path', async () => {
    const { store, clock, depsWith, logged } = await worldOf([31])
    const deps = depsWith(USUAL)
    const remains = () => ({ ...store.purger.remains(), bytes: 9 * 1024 ** 3 })
    const large = { ...deps, store: { ...store, purger: { ...store.purger, remains } } }
    await maintain(large)
    await clock.advance(DAY)
    await maintain(large)
    expect(reports(logged())).toMatchObject([
      { level: 'warn', path: store.path, reason: expect.stringContaining('the file is larger than 8 GiB') },
    ])
  })

  test('deleted rows of a table that this version does not know are logged with the table', async () => {
    const { store, run, logged } = await worldOf([])
    store.db.exec('CREATE TABLE elsewhere (id TEXT)')
    for (const table of ['elsewhere', 'dropped'])
      store.db.exec(
        `INSERT INTO sync_purge_queue (table_name, key, withdrawn_at) VALUES ('${table}', 'a', '${daysAgo(40)}')`,
      )
    await run(USUAL)
    const [line, ...others] = logged()
      .split('\n')
      .filter(one => one.includes('could not be purged'))
    expect(JSON.parse(line ?? '')).toMatchObject({
      level: 'warn',
      msg: 'Deleted rows of a table could not be purged',
      table: 'elsewhere',
      path: store.path,
      reason: 'another version of parley created the table, and this one does not know its columns',
    })
    expect(others).toEqual([])
  })

  test('a backfill logs that its time for maintenance was too short', async () => {
    const { store, clock, depsWith, logged } = await worldOf([31])
    // The limit is over at once.
    const deps = { ...depsWith(USUAL), clock: { ...clock, sleep: () => Promise.resolve() } }
    await maintainAfterBackfill(deps, NOW)
    expect(reports(logged())).toEqual([
      {
        level: 'warn',
        msg: 'Maintenance is not complete; the next run continues it',
        path: store.path,
        reason: 'it takes longer than 60 s',
      },
    ])
  })

  test('a backfill logs that it purged nothing when the API sends no time', async () => {
    const { store, depsWith, logged } = await worldOf([31])
    await maintainAfterBackfill(depsWith(USUAL), undefined)
    expect(logged()).toContain('Maintenance is delayed: nothing is purged while the clock may be wrong')
    expect(store.column("SELECT name FROM teams WHERE id = 't0'")).toEqual(['Team 0'])
  })
})

describe('a large file that may contain remains', () => {
  /** Larger than a file that is rewritten at once. */
  async function largeWorld() {
    const world = await worldOf([31])
    const { store, run } = world
    const name = 'x'.repeat(40_000)
    store.put(
      'teams',
      Array.from({ length: 1000 }, (_, at) => ({ id: `large${at}`, name, member_ids: [] })),
    )
    await run(USUAL)
    return { ...world, isNoted: () => store.purger.remains().inFile }
  }

  test('the file is rewritten on disk when nothing else runs, at most once a week', async () => {
    const { store, clock, depsWith, isNoted, logged } = await largeWorld()
    expect(isNoted()).toBe(true)
    await rebuildLarge(depsWith(USUAL), { freeBytes: () => 0 })
    expect(logged()).toContain('needs free space of 2.1 times the size of the database')
    const [remains] = readStatusReport({ path: store.path, now: NOW }).purge_remains
    expect(remains).toEqual({
      place: 'free space',
      path: store.path,
      reason: 'a rebuild needs free space of 2.1 times the size of the database on the disk',
    })
    expect(dueRebuild({ store, clock })).toBe('none')
    await clock.advance(7 * DAY)
    expect(dueRebuild({ store, clock })).toBe('alone')
    expect(await rebuildFile(store.db, new AbortController().signal, REBUILD_PROGRAM)).toBe(true)
    expect(store.column('PRAGMA integrity_check')).toEqual(['ok'])
  })

  test('a file whose remains are gone is not rewritten', async () => {
    const { store, clock } = await largeWorld()
    await store.transaction(() => store.state.forgetMeta(META.fileHoldsPieces))
    expect(dueRebuild({ store, clock })).toBe('none')
  })

  test('a stopped rewrite leaves the file as it was', async () => {
    const { store } = await largeWorld()
    expect(await rebuildFile(store.db, AbortSignal.abort(), REBUILD_PROGRAM)).toBe(false)
    expect(store.column('PRAGMA integrity_check')).toEqual(['ok'])
  })
})
