import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { isoInstant, systemClock } from '../../src/base/clock.ts'
import { EXIT_STATUS, StopError } from '../../src/base/errors.ts'
import { type StatusPageOptions, statusPage } from '../../src/commands/status/status-text.ts'
import { stoppedState } from '../../src/daemon/state.ts'
import { RESOURCE_NAMES } from '../../src/declare/resource-names.ts'
import { openSqlite } from '../../src/store/database/sqlite.ts'
import type { DaemonState } from '../../src/store/status/processes.ts'
import { readStatusReport, type StatusReport } from '../../src/store/status/report.ts'
import { openStore } from '../../src/store/store.ts'
import { META } from '../../src/store/sync/meta.ts'
import { emptyFolder, parley, startParley } from './parley.ts'
import { backfilled, placeFor, silentApi, workspace } from './workspace.ts'

test.concurrent('status shows every resource, the last writer and the size, and needs no API settings', async context => {
  const { cwd } = await backfilled(context, { securityOption: false })
  const { status, stdout, stderr } = await parley(['status'], { cwd })
  expect({ status, stderr }).toEqual({ status: EXIT_STATUS.done, stderr: '' })
  expect(stdout).toMatch(/^resource +state +rows +/)
  expect(stdout).toMatch(/\nteams +ok +2 /)
  expect(stdout).toMatch(/\naccess_logs +unavailable +0 /)
  expect(stdout).toMatch(/\n {2}access_logs: The API answers 403: /)
  expect(stdout).toMatch(
    /\nNo process is writing the warehouse\. The last one was parley backfill, process \d+, started /,
  )
  expect(stdout).toMatch(/parley\.db: [\d.,]+ [kM]B, and /)
})

test.concurrent('status --json has the exact instants of sync_status and the sizes', async context => {
  const { cwd, file } = await backfilled(context)
  const { stdout } = await parley(['status', '--json'], { cwd })
  const report = JSON.parse(stdout)
  expect(report).toMatchObject({
    database: file,
    database_bytes: expect.any(Number),
    wal_bytes: expect.any(Number),
    wal_readers: [],
    lock_holders: [],
    writer: { command: 'backfill', running: false, died: false },
    daemon: null,
    learned_rate: { was_refused: false },
    requests: [],
  })
  expect(report.resources).toHaveLength(17)
  expect(report.resources).toContainEqual(
    expect.objectContaining({
      resource: 'messages',
      state: 'ok',
      newest_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    }),
  )
})

test.concurrent('status --fields lists the fields that differ from the declared ones', async () => {
  const cwd = emptyFolder()
  const store = openStore({
    path: join(cwd, 'parley.db'),
    mode: 0o600,
    command: 'test',
    pid: 1,
    clock: systemClock(),
  })
  const fields = () => parley(['status', '--fields'], { cwd })
  const crm =
    'The values of CRM fields are not checked: one that does not fit the type of its field is NULL in the typed table, and crm_records.fields has it.\n'
  const none = `Every field that the API has sent is declared, and every value fits.\n${crm}`
  expect(await fields()).toMatchObject({ status: EXIT_STATUS.done, stdout: none })
  const drift = [
    ['members', 'mood', 'unknown field'],
    ['meetings', 'title', 'unexpected type'],
  ]
  await store.transaction(() => store.state.setMeta(META.drift, JSON.stringify(drift)))
  expect(await fields()).toMatchObject({
    status: EXIT_STATUS.done,
    stdout: `table     field  found
members   mood   unknown field
meetings  title  unexpected type
Their values are in the column _extra of the table.
${crm}`,
  })
  store.close()
})

test.concurrent('status distinguishes a running writer from a killed one', async context => {
  const silent = await silentApi(context)
  const { cwd, env } = placeFor(silent)
  const running = startParley(['backfill'], { cwd, env })
  await silent.asked
  const during = await parley(['status'], { cwd })
  expect(during.status).toBe(EXIT_STATUS.done)
  expect(during.stdout).toContain(
    `\nparley backfill, process ${running.child.pid}, is writing the warehouse. It started `,
  )
  expect(during.stdout).toMatch(/\nmessages +backfilling +0 /)
  running.child.kill('SIGKILL')
  await running.ended
  const after = await parley(['status'], { cwd })
  expect(after.stdout).toMatch(
    new RegExp(
      `\\nNo process is writing the warehouse. The last one, parley backfill, process ${running.child.pid}, .* killed`,
    ),
  )
})

test.concurrent('status leaves the folder unchanged', async context => {
  const { cwd, env } = placeFor(await workspace(context))
  await parley(['backfill', '--only', 'teams'], { cwd, env })
  const before = readdirSync(cwd)
  await parley(['status'], { cwd })
  expect(readdirSync(cwd)).toEqual(before)
})

test.concurrent('without a warehouse status ends with 73, says how to create one, and creates none', async () => {
  const cwd = emptyFolder()
  for (const command of [['status'], ['status', '--json'], ['resync', 'teams']]) {
    const { status, stdout, stderr } = await parley(command, { cwd })
    expect({ status, stdout }).toEqual({ status: EXIT_STATUS.databaseUnavailable, stdout: '' })
    expect(stderr).toMatch(
      /^parley: There is no warehouse at .*parley\.db yet\nhint: Run parley backfill to create it, /,
    )
  }
  expect(readdirSync(cwd)).toEqual([])
})

/** The notes of a daemon about itself and its learned rate. */
function note(file: string, notes: Readonly<Record<string, unknown>>): void {
  const db = openSqlite(file)
  const put = db.prepare('INSERT OR REPLACE INTO sync_meta (key, value) VALUES (?, ?)')
  for (const [key, value] of Object.entries(notes)) {
    put.run(key, typeof value === 'string' ? value : JSON.stringify(value))
  }
  db.close()
}

/** Holds the warehouse as a daemon does; returns what frees it. */
function writeAsDaemon(file: string): () => void {
  const clock = systemClock()
  return openStore({ path: file, mode: 0o600, command: 'daemon', pid: process.pid, clock }).close
}

const NEVER = '2999-01-01T00:00:00.000Z'
const WAITING: DaemonState = {
  state: 'waiting',
  reason: 'the disk is full',
  since: '2026-01-01T00:00:00.000Z',
  until: NEVER,
}

test.concurrent('status --json has the notes of the daemon: its state, arrival lags in seconds, the age of the rate', async context => {
  const place = placeFor(await workspace(context))
  await parley(['backfill', '--only', 'teams'], place)
  const at = '2026-02-03T04:05:06.789Z'
  note(place.file, {
    daemon_state: WAITING,
    learned_rate: { ratePerSecond: 9.5, concurrency: 4, limited: true, at },
  })
  const db = openSqlite(place.file)
  db.exec("INSERT INTO sync_arrivals VALUES ('messages', 0, 98, 250), ('messages', 50, 2, 70500)")
  db.exec(`UPDATE sync_resources SET next_run_at = '${NEVER}' WHERE resource = 'teams'`)
  db.close()
  const release = writeAsDaemon(place.file)
  const report: StatusReport = JSON.parse((await parley(['status', '--json'], place)).stdout)
  release()
  expect(report).toMatchObject({
    daemon: WAITING,
    learned_rate: {
      requests_per_second: 9.5,
      concurrency: 4,
      was_refused: true,
      limited_by: 'rate',
      learned_at: at,
    },
  })
  const of = (name: string) => report.resources.find(({ resource }) => resource === name)
  expect(of('messages')?.arrival_lag).toEqual({
    rows: 100,
    median_seconds: 0.25,
    p99_seconds: 70.5,
    longest_seconds: 70.5,
  })
  expect([of('teams')?.arrival_lag, of('teams')?.next_run_at]).toEqual([null, NEVER])
})

test.concurrent('a killed daemon is not reported as running', async context => {
  const place = placeFor(await workspace(context))
  await parley(['backfill', '--only', 'teams'], place)
  const running = { ...WAITING, state: 'running', reason: null, until: null }
  note(place.file, { daemon_state: running })
  const { stdout } = await parley(['status', '--json'], place)
  expect(JSON.parse(stdout).daemon).toEqual({
    state: 'stopped',
    reason: 'it was killed, or the machine or disk failed',
    since: null,
    until: null,
  })
  note(place.file, {
    writer: { pid: 0, command: 'daemon', since: WAITING.since },
  })
  expect((await parley(['status'], place)).stdout).toContain(
    'Needs you: The daemon is not running, so nothing is updated. It was killed, or the machine or disk failed. Start parley daemon again.\n',
  )
})

test.concurrent('a daemon that holds the warehouse and notes nothing for minutes is reported as waiting', async context => {
  const place = placeFor(await workspace(context))
  await parley(['backfill', '--only', 'teams'], place)
  const lastNoted = '2026-01-01T00:10:00.000Z'
  note(place.file, {
    daemon_state: { ...WAITING, state: 'running', reason: null, until: null },
    clock: lastNoted,
  })
  const release = writeAsDaemon(place.file)
  const { stdout } = await parley(['status', '--json'], place)
  release()
  expect(JSON.parse(stdout).daemon).toEqual({
    state: 'waiting',
    code: 'not-writing',
    reason: 'it has not written the database for some minutes; see its log or /status',
    since: lastNoted,
    until: null,
  })
})

test.concurrent('a process that has the warehouse open for writing reads the same report through its own connection', async context => {
  const { cwd, file, env } = placeFor(await workspace(context))
  await parley(['backfill', '--only', 'teams'], { cwd, env })
  const clock = systemClock()
  const store = openStore({ path: file, mode: 0o600, command: 'daemon', pid: process.pid, clock })
  const running: DaemonState = { state: 'running', reason: null, since: isoInstant(clock.now()), until: null }
  await store.transaction(() => {
    store.state.setMeta('daemon_state', JSON.stringify(running))
    store.arrivals.note('messages', 90_000)
  })
  const own = readStatusReport({ path: file, now: clock.now(), db: store.db })
  const printed = JSON.parse((await parley(['status', '--json'], { cwd })).stdout)
  expect(printed).toEqual(JSON.parse(JSON.stringify(own)))
  expect(own).toMatchObject({ writer: { command: 'daemon', running: true }, daemon: running })
  // On a full disk the daemon cannot note that it waits.
  const waiting = readStatusReport({ path: file, now: clock.now(), db: store.db, daemon: WAITING })
  const resources = own.resources.map(row => ({ ...row, state: 'on hold' }))
  expect(waiting).toEqual({ ...own, daemon: WAITING, resources })
  store.close()
})

test.concurrent('after a backfill each resource has a due time: the next poll, an interval ahead, or at once for failed ones', async context => {
  const { cwd, file, env } = await backfilled(context)
  const due = () => {
    const db = openSqlite(file, { readonly: true })
    const rows = db
      .prepare('SELECT resource, (julianday(next_run_at) - julianday(last_success_at)) * 24 FROM sync_status')
      .raw()
      .all() as [string, number][]
    db.close()
    return new Map(rows)
  }
  const hours = due()
  expect([...hours.values()].filter(ahead => ahead === null || ahead < 0 || ahead > 168)).toEqual([])
  expect(hours.get('messages')).toBeLessThan(0.1)
  expect(hours.get('members')).toBeGreaterThan(5)
  expect((await parley(['status'], { cwd })).stdout).toMatch(/^resource .* due *\n/)
  const silent = await silentApi(context)
  const failed = await parley(['backfill', '--only', 'teams'], {
    cwd,
    env: {
      ...env,
      PARLEY_BASE_URL: silent.url,
      PARLEY_API_TIMEOUT_SECONDS: '1',
      PARLEY_API_GIVE_UP_SECONDS: '1',
    },
  })
  expect(failed.status).toBe(EXIT_STATUS.apiUnavailable)
  expect((await parley(['status'], { cwd })).stdout).toMatch(/\nteams .* now *\n/)
})

test.concurrent('status --json counts e-mails and meetings by the state of their parts', async context => {
  const { cwd, file } = await backfilled(context)
  const { resources }: StatusReport = JSON.parse((await parley(['status', '--json'], { cwd })).stdout)
  const db = openSqlite(file, { readonly: true })
  const counted = (table: string, column: string) => {
    const sql = `SELECT ${column}, count(*) FROM ${table} WHERE _deleted_at IS NULL GROUP BY 1`
    return Object.fromEntries(db.prepare(sql).raw().all() as [string, number][])
  }
  expect(Object.fromEntries(resources.map(row => [row.resource, row.by_state]))).toEqual({
    ...Object.fromEntries(RESOURCE_NAMES.map(name => [name, null])),
    message_bodies: counted('messages', 'text_state'),
    transcripts: counted('meetings', 'transcript_state'),
  })
  db.close()
})

test.concurrent('status --json has the number of consecutive failures of a resource', async context => {
  const faults = [{ kind: 'status', status: 403, route: '/v1/members' }] as const
  const place = placeFor(await workspace(context, { faults }))
  const report = async (): Promise<StatusReport> =>
    JSON.parse((await parley(['status', '--json'], place)).stdout)
  for (const times of [1, 2]) {
    await parley(['backfill', '--only', 'members,teams'], place)
    const [members, teams] = (await report()).resources
    expect(members).toMatchObject({ state: 'failing', failed_in_a_row: times })
    expect(teams).toMatchObject({ state: 'ok', failing_since: null, failed_in_a_row: null })
  }
})

const NOW = Date.parse('2026-05-01T12:00:00.000Z')
const before = (seconds: number) => isoInstant(NOW - seconds * 1000)

/** A warehouse with a value in every column of the report. */
const BUSY: StatusReport = {
  database: '/w.db',
  workspace: { id: 'acme-workspace', base_url: 'https://api.example.com' },
  database_bytes: 2_570_084_352,
  wal_bytes: 4096,
  wal_readers: [],
  lock_holders: [],
  writer: { pid: 4711, command: 'daemon', since: before(900_000), running: true, died: false },
  chosen_resources: RESOURCE_NAMES,
  daemon: { state: 'waiting', reason: 'the API asks for it.', since: before(130), until: before(-41) },
  backfill: null,
  api: null,
  closed_routes: [],
  learned_rate: {
    requests_per_second: 9.5,
    concurrency: 4,
    was_refused: true,
    limited_by: 'rate',
    learned_at: before(10_800),
  },
  snapshot: {
    made_at: before(30_000),
    path: '/w.db.snapshots/w-2026-05-01T034000Z.db',
    bytes: 2_570_000_000,
    failed_at: before(3600),
    reason: 'Cannot write the snapshot: the disk is full.',
  },
  publication: {
    target: 's3://bucket/lake',
    since: before(900_000),
    due_at: before(-30),
    late_at: before(100),
    running_since: null,
    is_late: true,
    lag_seconds: 2400,
    last: {
      publication: 311,
      started_at: before(2400),
      finished_at: before(2390),
      published_at: before(2400),
      complete_as_of: before(500_000),
      fresh_as_of: before(2430),
      tables_changed: 2,
      rows: 1_234_567,
      files_written: 3,
      files_removed: 4,
      bytes_written: 41_200,
      error: null,
    },
    failing: {
      since: before(2000),
      times: 7,
      at: before(240),
      code: 'publish-refused',
      reason: 'The bucket refuses access. Check the key.',
    },
  },
  purge_remains: [
    { place: 'wal', path: '/data/parley.db-wal', reason: 'a program reads an older state of the database' },
  ],
  requests: [{ kind: 'resync', resource: 'meetings', asked_at: before(60) }],
  resources: RESOURCE_NAMES.map((resource, index) => ({
    resource,
    state: index === 3 ? 'failing' : 'ok',
    reason: index === 3 ? 'The API answers 500 to everything that it is asked for, again and again.' : null,
    failing_since: index === 3 ? before(240) : null,
    failed_in_a_row: index === 3 ? 12 : null,
    deletions_held_since: null,
    size_differs_since: null,
    rejected_since: null,
    by_state: null,
    rows_live: 1_234_567,
    rows_deleted: 12,
    newest_at: before(90),
    fresh_as_of: before(30),
    complete_as_of: before(500_000),
    backfill_done: 1,
    backfill_total: 1,
    pending_tasks: 3,
    rejected: 1,
    last_success_at: before(30),
    next_run_at: before(index * 40 - 100),
    read_since: null,
    arrival_lag:
      resource === 'messages'
        ? { rows: 1000, median_seconds: 0.4, p99_seconds: 7260, longest_seconds: 35_000_000 }
        : null,
  })),
}

const printed = (columns: StatusPageOptions['columns'], report: StatusReport = BUSY) =>
  statusPage(report, { now: NOW, columns }).split('\n')

test('a table of unlimited width shows everything', () => {
  const lines = printed(undefined)
  const [titles, first, second] = lines.slice(lines.findIndex(line => line.startsWith('resource ')))
  expect(titles).toBe(
    'resource             state         rows  deleted  pending  rejected  newest     fresh as of  complete as of  due',
  )
  expect(second).toBe(
    'members              ok       1,234,567       12        3         1  1 min ago  30 s ago     5 days ago      in 1 min',
  )
  // Failing resources come first.
  expect(first).toMatch(/^\S+ +failing .* now$/)
  expect(lines).toContain(
    `  ${RESOURCE_NAMES[3]}: The API answers 500 to everything that it is asked for, again and again.`,
  )
  expect(lines.join('\n')).toContain(`
arrival lag   rows     median  99 of 100   longest
messages     1,000  under 1 s  2 h 1 min  1 y 40 d
`)
  for (const sentence of [
    'Requested and not started yet: resync of meetings (1 min ago).',
    'The daemon has been waiting for 2 min 10 s. It resumes in 41 s.',
    'parley daemon, process 4711, is writing the warehouse. It started 10 days ago (2026-04-21 02:00 UTC).',
    'The daemon took its last snapshot 8 h ago: /w.db.snapshots/w-2026-05-01T034000Z.db, 2.6 GB.',
    'Published to s3://bucket/lake: publication 311, 40 min old: 3 files, 41.2 kB written.',
  ]) {
    expect(lines).toContain(sentence)
  }
  expect(lines.join(' ')).toContain('about 9.5 requests/s, measured 3 h ago.')
})

test('a publication that fails says why before it is late', () => {
  const { publication } = BUSY
  if (publication === null) throw new Error('nothing is published')
  const lines = printed(undefined, { ...BUSY, publication: { ...publication, is_late: false } })
  expect(lines).toContain(
    'Published to s3://bucket/lake: publication 311, 40 min old: 3 files, 41.2 kB written. The last try failed: The bucket refuses access. Check the key. Next try: 12:00:30 UTC (in 30 s).',
  )
})

test('the problems that the page shows come first, the most serious first, each with what to do', () => {
  const lines = printed(undefined)
  const problems = lines.slice(
    0,
    lines.findIndex(line => line.startsWith('resource ')),
  )
  const ofKind = (label: string) => problems.filter(line => line.startsWith(label))
  expect(problems).toEqual([...ofKind('Needs you'), ...ofKind('Waiting')])
  const failed = before(3600).slice(11, 19)
  for (const problem of [
    'Needs you: Purged content may remain in /data/parley.db-wal. A program reads an older state of the database. End the query or transaction of the program that reads; parley then empties the file. Never remove the file: it has rows that the database has not yet.',
    `Needs you since ${failed} UTC: The last snapshot failed. Cannot write the snapshot: the disk is full. Remove the cause; the next snapshot is made at its usual time.`,
    `Needs you since ${before(2000).slice(11, 19)} UTC: The warehouse is not published to s3://bucket/lake. The bucket refuses access. Check the key. Next try: 12:00:30 UTC (in 30 s). Remove the cause; parley tries again by itself. parley publish tries at once.`,
    `Waiting since ${before(240).slice(11, 19)} UTC: Reading ${RESOURCE_NAMES[3]} fails. The API answers 500 to everything that it is asked for, again and again. Next try: 11:59:40 UTC (now). Nothing to do yet. It needs you if it lasts until 12:56:00 UTC.`,
  ])
    expect(problems).toContain(problem)
})

test.each([
  [80, 'rejected', 'deleted, pending, newest, due'],
  [100, 'pending', 'deleted, newest'],
  [120, 'newest', undefined],
])('on a terminal of %d columns no line is longer, and omitted columns are named', (columns, shown, left) => {
  const lines = printed(columns)
  expect(lines.filter(line => line.length > columns)).toEqual([])
  expect(lines.find(line => line.startsWith('resource '))).toContain(shown)
  expect(lines.join('\n').includes('Hidden columns')).toBe(left !== undefined)
  if (left !== undefined) expect(lines.join('\n')).toContain(`\nHidden columns: ${left}. `)
})

test.each(['backfilling', 'ok'] as const)(
  'resources that the settings leave out are named in one sentence and not due (%s)',
  state => {
    const resources = BUSY.resources.map(row => ({ ...row, state, reason: 'Left out' }))
    const lines = printed(undefined, { ...BUSY, resources, chosen_resources: RESOURCE_NAMES.slice(2) })
    expect(lines).toContain(
      'Left out by sync.resources, --only or --skip, so not read: members, teams. Choose them there to read them.',
    )
    expect(lines.find(line => line.startsWith('teams '))).not.toMatch(/ due (now|in)/)
    expect(lines.find(line => line.startsWith('teams: '))).toBeUndefined()
    expect(printed(undefined).join('\n')).not.toContain('so not read')
  },
)

test('an API that does not answer is reported once, and the reasons of single resources stay', () => {
  const since = before(240)
  const next = before(-30)
  const reason = `No request to the API has succeeded since ${since} (connection refused); next try at ${next}`
  const lines = printed(undefined, {
    ...BUSY,
    api: { kind: 'silent', since, reason: 'connection refused', next_try_at: next },
    resources: BUSY.resources.map(row =>
      row.reason === null ? { ...row, state: 'on hold', reason } : { ...row, state: 'failing' },
    ),
  })
  expect(lines).toContain(
    `Waiting since ${since.slice(11, 19)} UTC: No request to the API succeeds. connection refused. Next try: 12:00:30 UTC (in 30 s). Nothing to do yet. It needs you if it lasts until 12:56:00 UTC.`,
  )
  expect(lines.filter(line => /succeed|connection refused/.test(line))).toHaveLength(1)
  expect(lines.join('\n')).toContain('answers 500 to everything')
  // When one of them is read next is known when the API answers again.
  const held = lines.filter(line => /^\S+ +on hold /.test(line))
  expect(held).toHaveLength(16)
  for (const line of held) expect(line).toMatch(/ ago +-$/)
})

test('a resource says why it is on hold while the API answers', () => {
  const reason = 'The API has throttled requests for /v1/meetings since 12:00:00 UTC'
  const lines = printed(undefined, {
    ...BUSY,
    api: null,
    resources: BUSY.resources.map(row =>
      row.resource === 'meetings' ? { ...row, state: 'on hold', reason } : row,
    ),
  })
  expect(lines).toContain(`  meetings: ${reason}`)
})

test('the report names no file while none may still hold purged content', () => {
  expect(printed(undefined, { ...BUSY, purge_remains: [] }).join('\n')).not.toContain('Purged content')
})

test('a text count lower than the e-mail count is explained', () => {
  const lines = printed(undefined, {
    ...BUSY,
    resources: BUSY.resources.map(row =>
      row.resource === 'message_bodies'
        ? { ...row, by_state: { empty: 20, gone: 9, pending: 3, present: 554 } }
        : { ...row, by_state: row.resource === 'transcripts' ? { present: 16 } : null },
    ),
  })
  expect(lines).toContain(
    '554 of 586 e-mails have a text; of the others: 20 empty at the API, 9 gone (404), 3 not read yet.',
  )
  expect(lines.join('\n')).not.toContain('have a transcript')
})

test('without a daemon the report shows due times, and no line about what has never happened', () => {
  const quiet = printed(undefined, {
    ...BUSY,
    daemon: null,
    requests: [],
    learned_rate: null,
    snapshot: null,
  })
  expect(quiet.find(line => line.startsWith('resource '))).toMatch(/ due$/)
  expect(quiet.join('\n')).not.toMatch(/daemon has|daemon stopped|Asked for|snapshot/)
  expect(quiet).toContain('The rate limit of the API is not known yet.')
})

test.concurrent('status reports how the last backfill ended, with its exit status and reason', async context => {
  const place = placeFor(await workspace(context))
  const only = ['backfill', '--only', 'teams']
  const page = async () => (await parley(['status'], place)).stdout
  expect((await parley(only, place)).status).toBe(EXIT_STATUS.done)
  expect(await page()).toMatch(/\nThe last backfill ended (now|.* ago): complete\.\n/)
  const refused = await parley(only, { ...place, env: { ...place.env, PARLEY_API_KEY: 'no-such-key' } })
  expect(refused.status).toBe(EXIT_STATUS.refused)
  const reason = /^parley: (.*?)\.?$/m.exec(refused.stderr)?.[1]
  expect(await page()).toContain(` (exit status 77): ${reason}.\n`)
  const { backfill } = JSON.parse((await parley(['status', '--json'], place)).stdout)
  expect(backfill).toMatchObject({
    exit_status: EXIT_STATUS.refused,
    reason: expect.stringContaining(reason ?? '?'),
  })
})

test.concurrent('status does not report the end of an earlier backfill for one that was cut off', async context => {
  const place = placeFor(await workspace(context))
  await parley(['backfill', '--only', 'teams'], place)
  const { backfill, writer } = JSON.parse((await parley(['status', '--json'], place)).stdout)
  note(place.file, { writer: { ...writer, since: isoInstant(Date.parse(backfill.ended_at) + 1) } })
  expect(JSON.parse((await parley(['status', '--json'], place)).stdout).backfill).toBeNull()
})

test.for([
  [undefined, /^The daemon stopped now on request\.$/, undefined],
  [
    new StopError('The API refuses the key.', { code: 'unauthorized', exitStatus: EXIT_STATUS.refused }),
    /^The daemon stopped now \(exit status 77\)\.$/,
    'The API refuses the key',
  ],
  [new TypeError('words of a person'), /^The daemon stopped now \(exit status 1\)\.$/, 'Internal error'],
] as const)('status says that a daemon was asked to stop, or what ended it: %s', ([error, line, reason]) => {
  const daemon = stoppedState({ ...systemClock(), now: () => NOW }, error)
  const writer = { pid: 4711, command: 'daemon', since: before(900_000), running: false, died: false }
  const lines = printed(undefined, { ...BUSY, daemon, writer })
  expect(lines.filter(text => text.startsWith('The daemon stopped'))).toEqual([expect.stringMatching(line)])
  expect(lines).toContainEqual(
    expect.stringContaining(
      `The daemon is not running, so nothing is updated. ${reason === undefined ? '' : `${reason}. `}Start parley daemon again.`,
    ),
  )
})

test.concurrent('status --check prints one line and exits with 0 when all is well', async context => {
  const { cwd } = await backfilled(context)
  expect(await parley(['status', '--check'], { cwd })).toMatchObject({
    status: 0,
    stdout: expect.stringMatching(/^OK: Complete: everything published before .* is here\. No process reads/),
    stderr: '',
  })
})

test.concurrent('status --check exits with 2 when data is older than allowed, and names it', async context => {
  const { cwd, file } = await backfilled(context)
  const db = openSqlite(file)
  const setFresh = db.prepare('UPDATE sync_resources SET fresh_as_of = ? WHERE resource = ?')
  setFresh.run(isoInstant(Date.now()), 'activities')
  setFresh.run('2026-01-01T00:00:00.000Z', 'messages')
  db.close()
  expect(await parley(['status', '--max-age', '15m'], { cwd })).toMatchObject({
    status: 2,
    stdout: expect.stringMatching(
      /^CRITICAL: Needs you: messages is .* old \(allowed: 15 min\)\. Check .+\n$/,
    ),
  })
  const other = await parley(['status', '--max-age', '1d', '--resource', 'activities'], { cwd })
  expect(other.status).toBe(0)
})

test.concurrent('status --check reports a missing warehouse on its one line, with status 2', async () => {
  const { status, stdout, stderr } = await parley(['status', '--check'], { cwd: emptyFolder() })
  expect({ status, stderr }).toEqual({ status: 2, stderr: '' })
  expect(stdout).toMatch(/^CRITICAL: There is no warehouse at .+ yet\. Run parley backfill .+\n$/)
})

test.concurrent('status --check reports settings that it cannot read on its one line, with status 2', async () => {
  const cwd = emptyFolder()
  writeFileSync(join(cwd, 'bad.toml'), '[api')
  const { status, stdout, stderr } = await parley(['status', '--check', '--config', 'bad.toml'], { cwd })
  expect({ status, stderr }).toEqual({ status: 2, stderr: '' })
  expect(stdout).toMatch(/^CRITICAL: Invalid settings: bad\.toml .*\n$/)
})

test.concurrent('status --check refuses an age without a unit, and says what it expects', async () => {
  const { status, stderr } = await parley(['status', '--check', '--max-age', '15'], { cwd: emptyFolder() })
  expect(status).toBe(EXIT_STATUS.usage)
  expect(stderr).toContain('Expected a number with a unit, such as 90s, 15m, 2h or 1d.')
})

test.concurrent.each([
  [['--max-age', '5m'], '--max-age <time>'],
  [['--resource', 'members'], '--resource <resource>'],
])('status --json refuses %j by its name', async (check, name) => {
  const { status, stderr } = await parley(['status', ...check, '--json'], { cwd: emptyFolder() })
  expect(status).toBe(EXIT_STATUS.usage)
  expect(stderr).toContain(`option '${name}' cannot be used with option '--json'`)
})
