import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  linkSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  watch,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { systemClock } from '../../src/base/clock.ts'
import { EXIT_STATUS } from '../../src/base/errors.ts'
import { startSimulator } from '../../src/simulator/server.ts'
import { openSqlite } from '../../src/store/database/sqlite.ts'
import { laterRequests, takeOutOfUse } from '../../src/store/restore/swap.ts'
import { openStore } from '../../src/store/store.ts'
import { column } from '../daemon/cli-daemon.ts'
import { asNobody, giveToNobody } from '../store/other-user.ts'
import { emptyFolder, parleyProcess, startParley } from './parley.ts'
import { type Place, placeFor } from './workspace.ts'

let made: Place

/** Created once: a warehouse, and a snapshot of it with another team name. */
beforeAll(async () => {
  const simulator = await startSimulator({ messages: 10, meetings: 2, deals: 2, transcriptTurns: 2 })
  made = placeFor(simulator)
  expect((await parleyProcess(['backfill'], made)).status).toBe(EXIT_STATUS.done)
  expect((await parleyProcess(['snapshot', 'copy.db'], made)).status).toBe(EXIT_STATUS.done)
  change(join(made.cwd, 'copy.db'), "UPDATE teams SET name = 'of the copy'")
  return () => simulator.close()
})

/** Copies of both in a separate folder. */
function withSnapshot() {
  const cwd = emptyFolder()
  const [file, copy] = [join(cwd, 'parley.db'), join(cwd, 'copy.db')]
  copyFileSync(made.file, file)
  copyFileSync(join(made.cwd, 'copy.db'), copy)
  return { place: { ...made, cwd, file }, copy }
}

function change(file: string, sql: string): void {
  const db = openSqlite(file)
  db.exec(sql)
  db.close()
}

const teamNames = (file: string) => column(file, 'SELECT DISTINCT name FROM teams')
const OF_THE_COPY = ['of the copy']

/** The files of the old database that a restore keeps. */
const kept = ({ cwd }: Place) => readdirSync(cwd).filter(name => name.includes('-before-restore-'))
const unfinished = ({ cwd }: Place) => readdirSync(cwd).filter(name => name.includes('.part'))

test.concurrent('restore replaces the database with a copy, and keeps the old one under another name', async () => {
  const { place, copy } = withSnapshot()
  const names = teamNames(place.file)
  chmodSync(place.file, 0o640)
  const { status, stdout, stderr } = await parleyProcess(['restore', 'copy.db'], { cwd: place.cwd })
  expect({ status, stderr }).toEqual({ status: EXIT_STATUS.done, stderr: '' })
  const [aside = ''] = kept(place)
  expect(aside).toMatch(/^parley\.db-before-restore-\d{4}-\d\d-\d\dT\d{6}Z$/)
  expect(stdout).toMatch(
    /^Restored .*parley\.db from copy\.db: [\d.,]+ [kM]B in .*\.\nWorkspace: \S+\.\nThe data are complete as of \S+Z\.\n/,
  )
  expect(stdout).toContain(`\nThe old database is kept as ${join(place.cwd, aside)}. `)
  expect(teamNames(place.file)).toEqual(OF_THE_COPY)
  expect(teamNames(join(place.cwd, aside))).toEqual(names)
  expect(teamNames(copy)).toEqual(OF_THE_COPY)
  expect(statSync(place.file).mode & 0o777).toBe(0o640)
  const files = ['', '-lock', '-shm', '-wal'].map(end => `parley.db${end}`)
  expect(readdirSync(place.cwd).sort()).toEqual(['copy.db', ...files, aside].sort())
})

test.concurrent('status after a restore names it as the last writer, and no daemon of the copy', async () => {
  const { place, copy } = withSnapshot()
  const state = { state: 'running', reason: null, since: '2026-01-01T00:00:00.000Z', until: null }
  change(copy, `INSERT OR REPLACE INTO sync_meta VALUES ('daemon_state', '${JSON.stringify(state)}')`)
  change(copy, "INSERT INTO sync_runs (resource, lane, started_at) VALUES ('teams', 'head', '2026-01-01')")
  const said = JSON.parse((await parleyProcess(['restore', 'copy.db', '--json'], place)).stdout)
  expect(said).toMatchObject({
    database: place.file,
    restored_from: 'copy.db',
    bytes: expect.any(Number),
    workspace: { id: place.env['PARLEY_WORKSPACE_ID'] },
    complete_as_of: expect.stringMatching(/Z$/),
    kept_as: join(place.cwd, kept(place)[0] ?? ''),
  })
  const report = JSON.parse((await parleyProcess(['status', '--json'], place)).stdout)
  expect(report.writer).toMatchObject({ command: 'restore', running: false, died: false })
  expect(report.daemon).toBeNull()
})

test.concurrent('without a database, restore creates it from the copy with the mode of the settings', async () => {
  const { copy } = withSnapshot()
  const place = { cwd: emptyFolder() }
  const args = ['restore', copy, '--database-mode', '0644', '--json']
  const { status, stdout } = await parleyProcess(args, place)
  expect({ status, kept: JSON.parse(stdout).kept_as }).toEqual({ status: EXIT_STATUS.done, kept: null })
  const file = join(place.cwd, 'parley.db')
  expect(teamNames(file)).toEqual(OF_THE_COPY)
  expect(statSync(file).mode & 0o777).toBe(0o644)
})

test.concurrent('the WAL of a killed writer is part of the database that is kept', async () => {
  const { place } = withSnapshot()
  const crashed = join(emptyFolder(), 'parley.db')
  const db = openSqlite(place.file)
  db.pragma('wal_autocheckpoint = 0')
  db.exec("UPDATE teams SET name = 'in the -wal'")
  for (const end of ['', '-wal']) copyFileSync(`${place.file}${end}`, `${crashed}${end}`)
  db.close()
  const { stdout } = await parleyProcess([
    'restore',
    join(place.cwd, 'copy.db'),
    '--json',
    '--database',
    crashed,
  ])
  expect(teamNames(crashed)).toEqual(OF_THE_COPY)
  expect(teamNames(JSON.parse(stdout).kept_as)).toEqual(['in the -wal'])
})

test.concurrent.each<[what: string, spoil: (file: string) => void]>([
  ['is damaged', file => writeFileSync(file, 'x'.repeat(8192))],
  ['is gone and has left its -wal', file => rmSync(file)],
])('a database that %s is replaced too, and its files are kept', async (_, spoil) => {
  const { place } = withSnapshot()
  writeFileSync(`${place.file}-wal`, 'of the old one')
  spoil(place.file)
  const before = ['', '-wal'].filter(end => existsSync(`${place.file}${end}`))
  expect((await parleyProcess(['restore', 'copy.db'], place)).status).toBe(EXIT_STATUS.done)
  expect(teamNames(place.file)).toEqual(OF_THE_COPY)
  // SQLite creates the -shm when it opens the damaged file.
  const ends = kept(place).map(name => name.replace(/^.*Z/, ''))
  expect(ends.filter(end => end !== '-shm')).toEqual(before)
})

interface Refusal {
  args?: (place: Place) => string[]
  prepare?: (place: Place, copy: string) => void
  env?: Record<string, string>
  status: number
  says: RegExp
}

const REFUSALS: [what: string, refusal: Refusal][] = [
  ['a copy that is not there', { args: () => ['none.db'], status: 73, says: /There is no file .*none\.db/ }],
  ['the database itself', { args: ({ file }) => [file], status: 64, says: /is the database itself/ }],
  [
    'a file that is no database',
    {
      prepare: (_, copy) => writeFileSync(copy, 'not a database at all'),
      status: 73,
      says: /Cannot read .*copy\.db: it is not a SQLite database/,
    },
  ],
  [
    'a database that parley did not create',
    {
      prepare: (_, copy) => {
        rmSync(copy)
        change(copy, 'CREATE TABLE other (id)')
      },
      status: 73,
      says: /copy\.db is a SQLite database, but parley did not create it/,
    },
  ],
  [
    'a database with nothing in it',
    { prepare: (_, copy) => writeFileSync(copy, ''), status: 73, says: /copy\.db is not a warehouse/ },
  ],
  [
    'a copy of a newer version',
    {
      prepare: (_, copy) => change(copy, 'UPDATE __drizzle_migrations SET created_at = 9e15'),
      status: 73,
      says: /copy\.db was written by a newer version.*\nhint: Install the newer version again, or use an older copy/,
    },
  ],
  [
    'a damaged copy',
    {
      prepare: (_, copy) => writeFileSync(copy, readFileSync(copy).fill(7, 8192)),
      status: 73,
      says: /copy\.db/,
    },
  ],
  [
    'a copy of another workspace than that of the settings',
    {
      env: { PARLEY_WORKSPACE_ID: 'other' },
      status: 78,
      says: /copy\.db holds workspace \S+, but the settings name workspace other/,
    },
  ],
  [
    'a copy of another workspace than that of the database',
    {
      prepare: (_, copy) =>
        change(copy, `UPDATE sync_meta SET value = '{"id":"other","base_url":""}' WHERE key = 'workspace'`),
      env: {},
      status: 78,
      says: /copy\.db holds workspace other, but the current database holds workspace /,
    },
  ],
  [
    "a database that is someone else's",
    {
      args: ({ cwd }) => {
        change(join(cwd, 'theirs.db'), 'CREATE TABLE other (id)')
        return ['copy.db', '--database', 'theirs.db']
      },
      status: 73,
      says: /theirs\.db is a SQLite database, but parley did not create it/,
    },
  ],
]

test.concurrent.each(REFUSALS)('restore refuses %s, and changes nothing', async (_, refusal) => {
  const { place, copy } = withSnapshot()
  refusal.prepare?.(place, copy)
  const args = refusal.args?.(place) ?? ['copy.db']
  const names = teamNames(place.file)
  const { status, stdout, stderr } = await parleyProcess(['restore', ...args], {
    cwd: place.cwd,
    env: refusal.env ?? place.env,
  })
  expect({ status, stdout }).toEqual({ status: refusal.status, stdout: '' })
  expect(stderr).toMatch(refusal.says)
  expect(stderr).toContain('\nhint: ')
  expect(teamNames(place.file)).toEqual(names)
  expect(column(place.file, 'PRAGMA journal_mode')).toEqual(['wal'])
  expect([...kept(place), ...unfinished(place)]).toEqual([])
  expect(existsSync(join(place.cwd, 'theirs.db-lock'))).toBe(false)
})

test.concurrent('while another process writes the database or has it open, restore ends with 75 and changes nothing', async () => {
  const { place } = withSnapshot()
  const names = teamNames(place.file)
  const clock = systemClock()
  const store = openStore({ path: place.file, mode: 0o600, command: 'daemon', pid: process.pid, clock })
  const written = await parleyProcess(['restore', 'copy.db'], place)
  store.close()
  expect(written.status).toBe(EXIT_STATUS.unfinished)
  expect(written.stderr).toContain(`is being written by process ${process.pid} (parley daemon)`)
  const reader = openSqlite(place.file, { readonly: true })
  expect(reader.prepare('SELECT count(*) FROM teams').pluck().get()).toBeGreaterThan(0)
  const read = await parleyProcess(['restore', 'copy.db'], place)
  reader.close()
  expect(read.status).toBe(EXIT_STATUS.unfinished)
  expect(read.stderr).toMatch(/parley\.db is open in process \d+ .*\nhint: Close it there/)
  expect(teamNames(place.file)).toEqual(names)
  expect([...kept(place), ...unfinished(place)]).toEqual([])
})

test.concurrent('a restore finds an idle shell that opened the database after an earlier restore', async () => {
  const { place } = withSnapshot()
  expect((await parleyProcess(['restore', 'copy.db'], place)).status).toBe(EXIT_STATUS.done)
  const aside = kept(place)
  const shell = openSqlite(place.file, { readonly: true })
  shell.pragma('user_version')
  const { status, stderr } = await parleyProcess(['restore', 'copy.db'], place)
  shell.close()
  expect(status).toBe(EXIT_STATUS.unfinished)
  expect(stderr).toMatch(/parley\.db is open in process \d+ .*\nhint: Close it there/)
  expect(kept(place)).toEqual(aside)
})

test.concurrent.each(['.part', '-before-restore-'])(
  'killed when %s appears, the database is the old or the new one, and the next restore leaves nothing unfinished',
  async name => {
    const { place } = withSnapshot()
    const names = teamNames(place.file)
    const restore = startParley(['restore', 'copy.db'], place)
    const watcher = watch(place.cwd, (_, changed) => {
      if (changed?.includes(name)) restore.child.kill('SIGKILL')
    })
    await restore.ended
    watcher.close()
    expect([names, OF_THE_COPY]).toContainEqual(teamNames(place.file))
    expect((await parleyProcess(['restore', 'copy.db'], place)).status).toBe(EXIT_STATUS.done)
    expect(teamNames(place.file)).toEqual(OF_THE_COPY)
    expect(statSync(place.file).nlink).toBe(1)
    expect(unfinished(place)).toEqual([])
  },
)

test.concurrent('a restore that is killed between its two renames can be repeated', async () => {
  const { place } = withSnapshot()
  const names = teamNames(place.file)
  linkSync(place.file, `${place.file}-before-restore-2026-01-01T000000Z`)
  writeFileSync(`${place.file}.0123abcd.part`, 'unfinished')
  expect((await parleyProcess(['backfill', '--only', 'teams'], place)).status).toBe(
    EXIT_STATUS.databaseUnavailable,
  )
  expect((await parleyProcess(['restore', 'copy.db'], place)).status).toBe(EXIT_STATUS.done)
  const [aside = '', ...others] = kept(place)
  expect([...others, ...unfinished(place)]).toEqual([])
  expect(teamNames(join(place.cwd, aside))).toEqual(names)
  expect(statSync(join(place.cwd, aside)).nlink).toBe(1)
})

test('a second restore within the same second takes a name that is not taken', () => {
  const { place, copy } = withSnapshot()
  const now = Date.parse('2026-03-04T03:17:59.500Z')
  const aside = (time: string) => `${place.file}-before-restore-2026-03-04T${time}Z`
  writeFileSync(aside('031759'), 'of an earlier restore')
  const present = takeOutOfUse(place.file, now)
  expect(present.replaceWith(copy, 0o600)).toBe(aside('031800'))
  present.close()
  expect(readFileSync(aside('031759'), 'utf8')).toBe('of an earlier restore')
  expect(teamNames(place.file)).toEqual(OF_THE_COPY)
})

test.skipIf(process.getuid?.() !== 0)(
  'a user outside the group of the database may not restore, and reads which group it is',
  async () => {
    const { place, copy } = withSnapshot()
    for (const path of [place.cwd, place.file, copy]) giveToNobody(path)
    const { uid } = statSync(place.file)
    chownSync(place.file, uid, 4711)
    await asNobody(async () => {
      const present = takeOutOfUse(place.file, Date.now())
      expect(() => present.replaceWith(copy, 0o600)).toThrow(
        expect.objectContaining({
          message: `This user may not give the restored file the owner and group of ${place.file} (${uid}:4711)`,
          hint: expect.stringContaining(`stat -c %U:%G ${place.file}`),
          exitStatus: EXIT_STATUS.databaseUnavailable,
        }),
      )
      present.close()
    })
    expect(teamNames(place.file)).not.toEqual(OF_THE_COPY)
  },
)

test.concurrent('the requests of today, the learned rate and the announced problems of the old database are kept', async () => {
  const { place } = withSnapshot()
  const used = JSON.stringify({ day: '2999-01-01', used: 100 })
  const rate = JSON.stringify({ ratePerSecond: 3, concurrency: 1, limited: true })
  const put = 'INSERT OR REPLACE INTO sync_meta VALUES'
  const problems = JSON.stringify([{ id: 'settings:invalid' }])
  change(
    place.file,
    `${put} ('requests_today', '${used}'), ('learned_rate', '${rate}'), ('announced_problems', '${problems}')`,
  )
  await parleyProcess(['restore', 'copy.db'], place)
  const noted = (key: string) => column(place.file, `SELECT value FROM sync_meta WHERE key = '${key}'`)
  expect(['requests_today', 'learned_rate', 'announced_problems'].map(noted)).toEqual([
    [used],
    [rate],
    [problems],
  ])
})

/** The command reads the value on its way. */
const DAMAGED: readonly [key: string, command: string[]][] = [
  ['requests_today', ['backfill', '--plan']],
  ['learned_rate', ['backfill']],
  ['drift', ['backfill']],
  ['workspace', ['snapshot', 'other.db']],
]

test.concurrent.for(DAMAGED)(
  'an error with 73 names the invalid value %s of sync_meta without quoting it, and a restore replaces that database',
  async ([key, command]) => {
    const { place } = withSnapshot()
    change(place.file, `INSERT OR REPLACE INTO sync_meta VALUES ('${key}', 'a private word')`)
    const refused = await parleyProcess(command, place)
    expect(refused).toMatchObject({ status: EXIT_STATUS.databaseUnavailable, stdout: '' })
    expect(refused.stderr).toContain(
      `parley: The value ${key} in the table sync_meta of the database is not `,
    )
    expect(refused.stderr).not.toContain('private')
    const reader = openSqlite(place.file, { readonly: true })
    reader.exec('BEGIN; SELECT count(*) FROM teams')
    expect((await parleyProcess(['restore', 'copy.db'], place)).status).toBe(EXIT_STATUS.unfinished)
    reader.close()
    expect((await parleyProcess(['restore', 'copy.db'], place)).status).toBe(EXIT_STATUS.done)
    expect(teamNames(place.file)).toEqual(OF_THE_COPY)
    expect((await parleyProcess(command, place)).status).toBe(EXIT_STATUS.done)
  },
)

test.each([
  ['of one day the larger', ['2026-01-02', 5], ['2026-01-02', 90], 90],
  ['that of the copy where it is larger', ['2026-01-02', 90], ['2026-01-02', 5], 90],
  ['that of the later day', ['2026-01-01', 90], ['2026-01-02', 5], 5],
  ['the only one', ['2026-01-01', 7], undefined, 7],
] as const)('from two notes of requests a day, %s counts', (_, copy, present, used) => {
  const noted = (note: readonly [string, number] | undefined) => note && { day: note[0], used: note[1] }
  expect(laterRequests(noted(copy), noted(present))?.used).toBe(used)
  expect(laterRequests(undefined, undefined)).toBeUndefined()
})

test.concurrent('a copy from before an upgrade can replace a database of a newer version', async () => {
  const { place } = withSnapshot()
  change(place.file, 'UPDATE __drizzle_migrations SET created_at = 9e15')
  expect((await parleyProcess(['backfill', '--only', 'teams'], place)).status).toBe(
    EXIT_STATUS.databaseUnavailable,
  )
  expect((await parleyProcess(['restore', 'copy.db'], place)).status).toBe(EXIT_STATUS.done)
  expect((await parleyProcess(['backfill', '--only', 'teams'], place)).status).toBe(EXIT_STATUS.done)
})
