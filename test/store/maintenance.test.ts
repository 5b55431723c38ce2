import { spawnSync } from 'node:child_process'
import { describe, expect, test } from 'vitest'
import type { Maintenance, PruneBounds } from '../../src/store/maintenance/maintenance.ts'
import { requirePrograms } from '../systemd/tools.ts'
import { type TemporaryStore, temporaryStore } from './temporary-store.ts'

const DAY = { old: '2026-01-01', quiet: '2026-03-01', young: '2026-04-01' }

const BOUNDS: PruneBounds = {
  runsBefore: '2026-02-01T00:00:00.000Z',
  quietBefore: '2026-03-25T00:00:00.000Z',
  olderAnswersBefore: '2026-03-01T00:00:00.000Z',
  minutesBefore: '2026-03-01T00:00:00.000Z',
  daysBefore: '2026-03-01',
  rejectsBefore: '2026-02-01T00:00:00.000Z',
  chosen: ['members', 'activities'],
  unnamedBefore: '2026-03-01T00:00:00.000Z',
  limit: 3,
  onPurged: () => undefined,
}

interface RunRow {
  day: string
  lane?: string
  resource?: string
  ended?: boolean
  outcome?: string
  changed?: number
  deleted?: number
  error?: string
}

function putRuns(store: TemporaryStore, runs: readonly RunRow[]): void {
  const put = store.db.prepare(
    `INSERT INTO sync_runs (resource, lane, started_at, ended_at, outcome, rows_changed, rows_deleted, error)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
  )
  for (const { day, lane, resource, ended = true, outcome, changed, deleted, error } of runs) {
    const at = `${day}T12:00:00.000Z`
    put.run(
      resource ?? 'members',
      lane ?? 'head',
      at,
      ended ? at : null,
      ended ? (outcome ?? 'complete') : null,
      changed ?? 0,
      deleted ?? 0,
      error ?? null,
    )
  }
}

/** Prunes to the end, each batch in a transaction; returns the number of batches. */
async function pruneAll(
  store: TemporaryStore,
  { prune }: Pick<Maintenance, 'prune'> = store.maintenance,
): Promise<number> {
  for (let batches = 1; ; batches += 1) {
    if (!(await store.transaction(() => prune(BOUNDS)))) return batches
  }
}

const runIds = (store: TemporaryStore) => store.column('SELECT id FROM sync_runs ORDER BY id')

describe('pruning of old rows', () => {
  const OLD = `${DAY.old}T12:00:00.000Z`
  const put = (
    store: TemporaryStore,
    key: string,
    task: { feed?: string; dueAt?: string; namedAt?: string },
  ) => store.transaction(() => store.tasks.demand({ feed: 'meetings.detail', key, dueAt: OLD, ...task }))

  test.each([
    ['a meeting that nothing names', {}, 0],
    ['results of a meeting that nothing names', { feed: 'playbook_results.read' }, 0],
    ['a meeting that an activity names', { names: true }, 1],
    ['results of a meeting that an activity names', { feed: 'playbook_results.read', names: true }, 1],
    ['a meeting that a webhook named of late', { namedAt: `${DAY.young}T12:00:00.000Z` }, 1],
    ['a meeting that is due of late', { dueAt: `${DAY.young}T12:00:00.000Z` }, 1],
    ['a playbook, which is read', { feed: 'playbooks.detail', chosen: ['playbooks'] as const }, 1],
  ])(
    'of resources that are not read, pruning keeps reads that a row names: %s',
    async (_what, task, left) => {
      const { names, chosen, ...times } = { names: false, chosen: BOUNDS.chosen, ...task }
      const store = temporaryStore()
      for (const number of [1, 2, 3, 4]) await put(store, `m${number}`, times)
      if (names)
        for (const number of [1, 2, 3, 4])
          store.db
            .prepare(
              "INSERT INTO activities (id, source_type, source_id, _first_seen_at, _synced_at) VALUES (?, 'MEETING', ?, @at, @at)",
            )
            .run(`a${number}`, `m${number}`, { at: OLD })
      await pruneAll(store, { prune: bounds => store.maintenance.prune({ ...bounds, chosen }) })
      expect(store.column('SELECT key FROM sync_tasks')).toHaveLength(4 * left)
    },
  )

  test('pruning removes runs that ended long ago, and no open one', async () => {
    const store = temporaryStore()
    putRuns(store, [
      { day: DAY.old },
      { day: DAY.old, changed: 5 },
      { day: DAY.old, outcome: 'failed', error: 'x' },
      { day: DAY.old, ended: false },
      { day: DAY.young },
    ])
    await pruneAll(store)
    expect(runIds(store)).toEqual([4, 5])
  })

  test.each([
    ['changed rows', { changed: 1 }],
    ['deleted rows', { deleted: 1 }],
    ['failed', { outcome: 'failed' }],
    ['was stopped', { outcome: 'stopped' }],
    ['told of an error', { error: 'x' }],
    ['is open', { ended: false }],
    ['is young', { day: DAY.young }],
  ])('pruning removes quiet runs early, but not one that %s', async (_name, run) => {
    const store = temporaryStore()
    putRuns(store, [{ day: DAY.quiet }, { day: DAY.quiet, ...run }, { day: DAY.quiet }, { day: DAY.young }])
    await pruneAll(store)
    expect(runIds(store)).toEqual([2, 4])
  })

  test('pruning keeps the newest run of each resource and lane, however quiet, until there is a newer one', async () => {
    const store = temporaryStore()
    const feeds = [
      { resource: 'members', lane: 'head' },
      { resource: 'members', lane: 'audit' },
      { resource: 'teams', lane: 'head' },
    ]
    for (let turn = 0; turn < 4; turn += 1)
      putRuns(
        store,
        feeds.map(feed => ({ ...feed, day: DAY.quiet })),
      )
    putRuns(store, [{ resource: 'teams', lane: 'head', day: DAY.young, changed: 1 }])
    const maintenance = store.maintenance
    await pruneAll(store, maintenance)
    expect(store.all('SELECT id, resource, lane FROM sync_runs ORDER BY id')).toEqual([
      { id: 10, ...feeds[0] },
      { id: 11, ...feeds[1] },
      { id: 13, ...feeds[2] },
    ])
    putRuns(store, [{ ...feeds[1], day: DAY.quiet }])
    await pruneAll(store, maintenance)
    expect(runIds(store)).toEqual([10, 13, 14])
  })

  test('pruning examines a bounded number of rows per batch and ends, whichever table is longer', async () => {
    const store = temporaryStore()
    putRuns(
      store,
      Array.from({ length: 10 }, () => ({ day: DAY.old })),
    )
    putRejects(
      store,
      Array.from({ length: 8 }, () => `${DAY.old}T00:00:00.000Z`),
    )
    const { prune } = store.maintenance
    expect(await store.transaction(() => prune(BOUNDS))).toBe(true)
    expect(runIds(store)).toEqual([4, 5, 6, 7, 8, 9, 10])
    expect(await pruneAll(store)).toBe(7)
    expect([runIds(store), store.column('SELECT id FROM sync_rejects')]).toEqual([[], []])
    expect(await pruneAll(store)).toBe(3)
  })

  test('pruning removes only rejects that were resolved long ago', async () => {
    const store = temporaryStore()
    putRejects(store, [`${DAY.old}T00:00:00.000Z`, null, `${DAY.young}T00:00:00.000Z`])
    await pruneAll(store)
    expect(store.column('SELECT id FROM sync_rejects ORDER BY id')).toEqual([2, 3])
  })

  test('pruning removes requests that were done long ago', async () => {
    const store = temporaryStore()
    const put = store.db.prepare(
      "INSERT INTO sync_requests (kind, resource, asked_at, done_at) VALUES ('resync', ?, ?, ?)",
    )
    for (const done of [DAY.old, DAY.young, null]) put.run('members', DAY.old, done)
    await pruneAll(store)
    expect(store.column('SELECT id FROM sync_requests')).toEqual([2, 3])
  })

  test('pruning removes a request some time after it was done, and never before', async () => {
    const store = temporaryStore()
    store.db.exec(
      `INSERT INTO sync_requests (kind, resource, asked_at, done_at) VALUES ('resync', 'teams', '${OLD}', '2026-01-31T00:00:00.000Z'),
        ('resync', 'members', '${OLD}', '2026-02-02T00:00:00.000Z'), ('resync', 'meetings', '${OLD}', NULL)`,
    )
    await pruneAll(store)
    expect(store.column('SELECT resource FROM sync_requests')).toEqual(['members', 'meetings'])
  })

  test('pruning removes old attempts to publish, but not the newest complete one of each target', async () => {
    const store = temporaryStore()
    const put = store.db.prepare(
      'INSERT INTO sync_publications (target, publication, started_at, finished_at, error) VALUES (?, ?, ?, ?, ?)',
    )
    const add = (day: string, publication: number | null, error: string | null, target = '/lake') =>
      put.run(target, publication, `${day}T00:00:00.000Z`, `${day}T00:00:00.000Z`, error)
    add('2026-01-01', 1, null)
    add('2026-01-02', null, 'Access is denied')
    add('2026-01-03', 2, 'The files of publication 1 could not be removed')
    add('2026-01-04', null, 'Access is denied')
    add('2026-01-01', 1, null, '/other')
    add('2026-02-01', null, 'Access is denied')
    await pruneAll(store)
    expect(store.column('SELECT id FROM sync_publications ORDER BY id')).toEqual([3, 5, 6])
  })

  test('pruning removes the counts of old days', async () => {
    const store = temporaryStore()
    store.db.exec(
      `INSERT INTO sync_days (day, resource) VALUES ('2026-02-28', 'teams'), ('2026-03-01', 'teams')`,
    )
    await pruneAll(store)
    expect(store.column('SELECT day FROM sync_days')).toEqual(['2026-03-01'])
  })

  test('pruning removes the traffic of old minutes', async () => {
    const store = temporaryStore()
    store.db.exec(
      `INSERT INTO sync_minutes (at) VALUES ('${DAY.old}T00:00:00.000Z'), ('${DAY.young}T00:00:00.000Z')`,
    )
    await pruneAll(store)
    expect(store.column('SELECT at FROM sync_minutes')).toEqual([`${DAY.young}T00:00:00.000Z`])
  })
})

function putRejects(store: TemporaryStore, resolved: readonly (string | null)[]): void {
  const put = store.db.prepare(
    `INSERT INTO sync_rejects (resource, item, reason, first_seen_at, last_seen_at, resolved_at, _feed, _digest)
     VALUES ('members', '{}', 'no id', '', '', ?, 'members', hex(randomblob(8)))`,
  )
  for (const at of resolved) put.run(at)
}

test('a join on the key of an e-mail returns all rows to the sqlite3 program, whatever statistics its index has', () => {
  requirePrograms('sqlite3')
  const store = temporaryStore()
  const numbers = Array.from({ length: 300 }, (_, index) => index)
  store.put(
    'members',
    numbers.map(index => ({ id: `m${index}` })),
  )
  store.put(
    'message_copies',
    numbers.map(index => ({ id: `c${index}`, header_message_id: `h${index}` })),
  )
  // SQLite 3.40 then uses a Bloom filter, which loses rows of a join on an indexed virtual column.
  store.db.exec('ANALYZE')
  const sql = `SELECT count(*) FROM members CROSS JOIN messages e
    CROSS JOIN live_message_copies c ON c.mail_id = e.header_message_id`
  const { stdout, stderr } = spawnSync('sqlite3', ['-readonly', store.path, sql], { encoding: 'utf8' })
  expect([stdout, stderr]).toEqual([`${300 * 300}\n`, ''])
})

test('the index statistics of SQLite cover the tables that are queried', () => {
  const store = temporaryStore()
  store.put(
    'members',
    Array.from({ length: 500 }, (_, index) => ({ id: `m${index}` })),
  )
  store.all("SELECT * FROM members WHERE id > 'm3' ORDER BY id")
  store.maintenance.optimize()
  expect(store.column('SELECT DISTINCT tbl FROM sqlite_stat1')).toContain('members')
})
