import { type ChildProcess, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import {
  appendFileSync,
  chmodSync,
  existsSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, onTestFinished, test } from 'vitest'
import { EXIT_STATUS, StopError } from '../../src/base/errors.ts'
import { currentPoint } from '../../src/store/changes/changes-since.ts'
import { hasTable } from '../../src/store/database/existing-tables.ts'
import { quote } from '../../src/store/database/sql.ts'
import { openSqlite } from '../../src/store/database/sqlite.ts'
import type { Sqlite } from '../../src/store/database/sqlite-types.ts'
import type { Upgrade } from '../../src/store/migrations/migrate.ts'
import { openWarehouse } from '../../src/store/open-warehouse.ts'
import { newFolder, openAt } from '../store/temporary-store.ts'
import { journalIn, migrationsOf, migrationsWith, PRESENT } from './older-version.ts'

const UPGRADE_PROCESS = fileURLToPath(new URL('upgrade-process.ts', import.meta.url))
const TAGS = journalIn(PRESENT).entries.map(({ tag }) => tag)
const FIRST_PENDING = TAGS[1] ?? ''

const LARGE_BYTES = 12_000_000

interface Older {
  path: string
  folder: string
  /** The path of the copy that an upgrade to the current version makes. */
  copy: string
}

/** A closed database of the very first version, with rows that refer to each other and `bytes` of text. */
function olderDatabase(bytes = 0, mode = 0o600): Older {
  const folder = newFolder()
  const path = join(folder, 'parley.db')
  const db = openWarehouse({ path, mode, migrations: migrationsOf(folder, 1) })
  fill(db, bytes)
  db.close()
  return { path, folder, copy: `${path}-before-${FIRST_PENDING}` }
}

function fill(db: Sqlite, bytes: number): void {
  const now = '2026-01-01T00:00:00.000Z'
  const meeting = db.prepare(
    'INSERT INTO meetings (id, title, _first_seen_at, _synced_at) VALUES (?, ?, ?, ?)',
  )
  const attendee = db.prepare('INSERT INTO meeting_attendees (meeting_id, position, name) VALUES (?, ?, ?)')
  const team = db.prepare(
    'INSERT INTO meeting_attendee_teams (meeting_id, attendee_position, team_id) VALUES (?, 0, ?)',
  )
  const title = 'x'.repeat(10_000)
  db.transaction(() => {
    for (let number = 0; number < Math.max(10, bytes / title.length); number += 1) {
      meeting.run(`m${number}`, `${title}${number}`, now, now)
      attendee.run(`m${number}`, 0, `a${number}`)
      team.run(`m${number}`, `t${number}`)
    }
    db.prepare("INSERT INTO sync_meta VALUES ('writer', ?)").run(JSON.stringify({ pid: 1, since: now }))
  })()
}

/** The whole content of a database as one value: the schema and every row of every table. */
function contentOf(path: string): Record<string, string> {
  const db = openSqlite(path, { readonly: true })
  const objects = db.prepare('SELECT type, name, sql FROM sqlite_master ORDER BY 1, 2').all() as {
    type: string
    name: string
  }[]
  const content: Record<string, string> = { schema: JSON.stringify(objects) }
  for (const { name } of objects.filter(({ type }) => type === 'table')) {
    const hash = createHash('sha256')
    for (const row of db
      .prepare(`SELECT * FROM ${quote(name)}`)
      .raw()
      .iterate())
      hash.update(JSON.stringify(row))
    content[name] = hash.digest('hex')
  }
  db.close()
  return content
}

const renamed = (table: string) => (table === 'sync_absences' ? 'sync_suspicions' : 'sync_purge_queue')

/** Only the tables and columns that the older version had. */
function rowsOf(path: string, columnsFrom: string): Record<string, unknown[]> {
  const db = openSqlite(path, { readonly: true })
  const rows: Record<string, unknown[]> = {}
  const older = openSqlite(columnsFrom, { readonly: true })
  const tables = older
    .prepare("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT GLOB '__*'")
    .pluck()
    .all() as string[]
  for (const table of tables) {
    const columns = older.prepare('SELECT name FROM pragma_table_info(?)').pluck().all(table) as string[]
    rows[table] = db
      .prepare(
        `SELECT ${columns.map(quote).join(', ')} FROM ${quote(hasTable(db, table) ? table : renamed(table))}`,
      )
      .raw()
      .all()
  }
  older.close()
  db.close()
  return rows
}

function upgraded(path: string): Sqlite {
  const db = openWarehouse({ path })
  onTestFinished(() => {
    db.close()
  })
  return db
}

function expectPresent(path: string): void {
  const db = upgraded(path)
  expect(db.prepare('SELECT count(*) FROM __drizzle_migrations').pluck().get()).toBe(TAGS.length)
  expect(db.prepare('SELECT count(*) FROM sync_requests').pluck().get()).toBe(0)
  expect(db.pragma('foreign_key_check')).toEqual([])
  expect(db.pragma('quick_check', { simple: true })).toBe('ok')
}

function refusalOf(open: () => unknown): StopError {
  try {
    open()
  } catch (error) {
    if (error instanceof StopError) return error
    throw error
  }
  throw new Error('it was opened')
}

function copiesBeside(path: string): string[] {
  return readdirSync(dirname(path)).filter(name => name.startsWith(`${basename(path)}-before-`))
}

describe('a database of the first version', () => {
  test('the upgrade keeps every row, and its copy is unchanged', () => {
    const { path, copy } = olderDatabase(LARGE_BYTES)
    const before = contentOf(path)
    expectPresent(path)
    expect(contentOf(copy)).toEqual(before)
    expect(rowsOf(path, copy)).toEqual(rowsOf(copy, copy))
    expect(rowsOf(path, copy)['meeting_attendee_teams']?.length).toBeGreaterThan(1000)
  })

  test('the next publication after the upgrade compares all rows, since what migrations change is not noted', () => {
    const { path } = olderDatabase()
    const older = openSqlite(path)
    older.exec(`INSERT INTO sync_meta VALUES ('openings', '[["a",0]]')`)
    older.close()
    expect(currentPoint(upgraded(path))).toBe(undefined)
  })

  test('the copy of an upgrade is a complete database that can be upgraded itself', () => {
    const { path, copy } = olderDatabase(LARGE_BYTES)
    upgraded(path)
    expectPresent(copy)
  })

  test('the upgraded file can be opened as a store at once', () => {
    const { path } = olderDatabase()
    const store = openAt(path)
    expect(store.requests.open()).toEqual([])
    store.close()
  })

  test('the upgrade is reported before it starts, but not for a current or a new database', () => {
    const { path, copy } = olderDatabase(LARGE_BYTES)
    const told: Upgrade[] = []
    const onUpgrade = (upgrade: Upgrade) => {
      expect(existsSync(copy)).toBe(false)
      told.push(upgrade)
    }
    openWarehouse({ path, onUpgrade }).close()
    openWarehouse({ path, onUpgrade }).close()
    openWarehouse({ path: join(newFolder(), 'new.db'), onUpgrade }).close()
    expect(told).toEqual([{ migrations: TAGS.slice(1), copy: { path: copy, bytes: expect.any(Number) } }])
  })
})

describe('the copy before an upgrade', () => {
  test.each([0o600, 0o640])('the copy has the mode of the database (%o), whatever the umask', mode => {
    const umask = process.umask(0o077)
    onTestFinished(() => {
      process.umask(umask)
    })
    const { path, copy } = olderDatabase(LARGE_BYTES, mode)
    upgraded(path)
    expect(statSync(copy).mode & 0o777).toBe(mode)
  })

  test('a small file is not copied', () => {
    const { path } = olderDatabase()
    expectPresent(path)
    expect(copiesBeside(path)).toEqual([])
  })

  test('the copy has the content of the WAL', () => {
    const { path, copy } = olderDatabase(LARGE_BYTES)
    const writer = openSqlite(path)
    onTestFinished(() => {
      writer.close()
    })
    writer.exec("INSERT INTO sync_meta VALUES ('late', 'yes')")
    upgraded(path)
    const kept = openSqlite(copy, { readonly: true })
    expect(kept.prepare("SELECT value FROM sync_meta WHERE key = 'late'").pluck().get()).toBe('yes')
    kept.close()
  })

  test('the copy replaces the copies of earlier upgrades, and no other files', () => {
    const { path, folder, copy } = olderDatabase(LARGE_BYTES)
    const mine = `${path}-before-I-try-something`
    writeFileSync(mine, 'mine')
    writeFileSync(`${folder}/other.db-before-0001_daemon`, 'of another database')
    upgraded(path).close()
    const next = migrationsWith(folder, '0900_next', 'CREATE TABLE more (a TEXT) STRICT;')
    openWarehouse({ path, migrations: next }).close()
    expect(copiesBeside(path).sort()).toEqual([basename(mine), 'parley.db-before-0900_next'].sort())
    expect(existsSync(copy)).toBe(false)
    expect(existsSync(`${folder}/other.db-before-0001_daemon`)).toBe(true)
  })

  test('an upgrade without space for the copy is refused before any change, with the space that it needs', () => {
    const { path } = olderDatabase(LARGE_BYTES)
    const bytes = () =>
      ['', '-wal'].map(end => (existsSync(path + end) ? readFileSync(path + end) : Buffer.of()))
    const before = Buffer.concat(bytes())
    const error = refusalOf(() => openWarehouse({ path, freeBytes: () => LARGE_BYTES }))
    expect([error.code, error.exitStatus]).toEqual(['no-space-for-backup', EXIT_STATUS.databaseUnavailable])
    expect(error.hint).toMatch(
      /^Free [3-7]\.\d MB more in .+ \(needed: 1[5-9](\.\d)? MB\).+the previous version still works/,
    )
    expect(Buffer.concat(bytes()).equals(before)).toBe(true)
    expect(copiesBeside(path)).toEqual([])
    openWarehouse({ path, freeBytes: () => 2 * LARGE_BYTES }).close()
    expectPresent(path)
  })

  test('a copy that fails, for example because the disk fills, leaves no file', async () => {
    const { path, folder } = olderDatabase(LARGE_BYTES)
    const before = contentOf(path)
    const [status] = await once(startLimitedUpgrade(path, folder, 4000), 'exit')
    expect(status).toBe(1)
    expect(copiesBeside(path)).toEqual([])
    expect(contentOf(path)).toEqual(before)
    expectPresent(path)
  })
})

/** Arguments of a process that upgrades to the current migrations, or to those in a folder. */
function upgradeCommand(path: string, migrations: string): string[] {
  return ['--import', 'tsx', UPGRADE_PROCESS, path, existsSync(`${migrations}/meta`) ? migrations : PRESENT]
}

function startUpgrade(path: string, migrations: string = PRESENT): ChildProcess {
  const child = spawn(process.execPath, upgradeCommand(path, migrations), {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  onTestFinished(() => {
    child.kill('SIGKILL')
  })
  return child
}

/** Starts an upgrade in a process that may write only `kilobytes` of any file. */
function startLimitedUpgrade(path: string, migrations: string, kilobytes: number, dies = ''): ChildProcess {
  const limited = `ulimit -f ${2 * kilobytes}; exec "$0" "$@"`
  return spawn('sh', ['-c', limited, process.execPath, ...upgradeCommand(path, migrations), dies], {
    stdio: 'ignore',
  })
}

describe('an upgrade that receives kill -9', () => {
  test('a kill in the middle of the copy leaves an upgradable database and no partial copy', async () => {
    const { path, folder, copy } = olderDatabase(LARGE_BYTES)
    const [, signal] = await once(startLimitedUpgrade(path, folder, 4000, 'at-removal'), 'exit')
    expect(signal).toBe('SIGKILL')
    expect(copiesBeside(path)).toEqual([`${basename(copy)}.part`])
    const before = contentOf(path)
    expectPresent(path)
    expect(copiesBeside(path)).toEqual([basename(copy)])
    expect(contentOf(copy)).toEqual(before)
  })

  test.each([
    ['between the copy and the first statement', (sql: string) => `SELECT die();\n${sql}`],
    [
      'in the middle of the statements',
      (sql: string) => sql.replace('ALTER TABLE', 'SELECT die();\nALTER TABLE'),
    ],
    ['after the last statement, before it is kept', (sql: string) => `${sql};\nSELECT die();`],
  ])('a kill %s leaves the database unchanged with its copy, which is reused', async (_name, deadly) => {
    const { path, folder, copy } = olderDatabase(LARGE_BYTES)
    const before = contentOf(path)
    const migrations = migrationsOf(folder, TAGS.length)
    const file = `${migrations}/${FIRST_PENDING}.sql`
    writeFileSync(file, deadly(readFileSync(file, 'utf8')))
    const [, signal] = await once(startUpgrade(path, migrations), 'exit')
    expect(signal).toBe('SIGKILL')
    expect(contentOf(path)).toEqual(before)
    const inode = statSync(copy).ino
    expectPresent(path)
    expect(contentOf(copy)).toEqual(before)
    expect(statSync(copy).ino).toBe(inode)
  })

  test('a later start of the previous version makes the copy outdated, so that it is written again', () => {
    const { path, folder, copy } = olderDatabase(LARGE_BYTES)
    const failing = migrationsOf(folder, TAGS.length)
    appendFileSync(`${failing}/${FIRST_PENDING}.sql`, ';\nnonsense')
    expect(refusalOf(() => openWarehouse({ path, migrations: failing })).code).toBe('migration-broken')
    const older = openSqlite(path)
    older.exec("UPDATE sync_meta SET value = 'a later one' WHERE key = 'writer'")
    older.close()
    const before = contentOf(path)
    expectPresent(path)
    expect(contentOf(copy)).toEqual(before)
  })
})

describe('a migration', () => {
  const failing = (folder: string, sql: string) => migrationsWith(folder, '0900_next', sql)

  test.each([
    [
      'fails in the middle',
      'CREATE TABLE more (a TEXT); DELETE FROM meetings; INSERT INTO nowhere VALUES (1);',
    ],
    ['breaks a rule of the data', 'CREATE UNIQUE INDEX one ON meeting_attendees (position);'],
    ['leaves rows without their parent', "DELETE FROM meetings WHERE id = 'm3';"],
  ])('a migration that %s leaves everything unchanged and is reported', (_name, sql) => {
    const { path, folder } = olderDatabase()
    openWarehouse({ path }).close()
    const before = contentOf(path)
    const error = refusalOf(() => openWarehouse({ path, migrations: failing(folder, sql) }))
    expect([error.code, error.exitStatus]).toEqual(['migration-broken', EXIT_STATUS.databaseUnavailable])
    expect(error.hint).toContain('Nothing was changed')
    expect(contentOf(path)).toEqual(before)
    expectPresent(path)
  })

  test('a failing migration rolls back the earlier ones of the same upgrade', () => {
    const { path, folder } = olderDatabase()
    const before = contentOf(path)
    expect(
      refusalOf(() => openWarehouse({ path, migrations: failing(folder, 'nonsense') })).message,
    ).toContain('0900_next')
    expect(contentOf(path)).toEqual(before)
  })

  test('a migration may rebuild a table with references and views, those of analysts too', () => {
    const { path, folder } = olderDatabase()
    const db = openWarehouse({ path })
    db.exec('CREATE VIEW titles AS SELECT id, title FROM meetings')
    const { sql } = db.prepare("SELECT sql FROM sqlite_master WHERE name = 'meetings'").get() as {
      sql: string
    }
    db.close()
    const rebuilt = sql.replace('meetings', '__new_meetings').replace(') STRICT', ', more text) STRICT')
    const columns = '`_id`, `id`, `title`, `_first_seen_at`, `_synced_at`'
    const migrations = failing(
      folder,
      `PRAGMA foreign_keys=OFF;
       --> statement-breakpoint
       ${rebuilt};
       INSERT INTO __new_meetings (${columns}) SELECT ${columns} FROM meetings;
       DROP TABLE meetings; ALTER TABLE __new_meetings RENAME TO meetings; PRAGMA foreign_keys=ON;
       CREATE UNIQUE INDEX meetings_key ON meetings (id);`,
    )
    const next = openWarehouse({ path, migrations })
    onTestFinished(() => {
      next.close()
    })
    const count = (table: string) => next.prepare(`SELECT count(*) FROM ${table}`).pluck().get()
    expect(
      ['meetings', 'meeting_attendees', 'meeting_attendee_teams', 'live_meetings', 'titles'].map(count),
    ).toEqual([10, 10, 10, 10, 10])
    expect(next.pragma('foreign_key_check')).toEqual([])
  })

  test('a migration of a newer version makes this version refuse the file without a change', () => {
    const { path, folder } = olderDatabase()
    openWarehouse({ path, migrations: failing(folder, 'CREATE TABLE more (a TEXT) STRICT;') }).close()
    const before = contentOf(path)
    expect(refusalOf(() => openWarehouse({ path })).code).toBe('database-newer')
    expect(contentOf(path)).toEqual(before)
  })
})

test('a database stays readable for its group after an upgrade', () => {
  const { path } = olderDatabase(LARGE_BYTES)
  chmodSync(path, 0o640)
  upgraded(path)
  expect(['', '-wal', '-shm'].map(end => statSync(path + end).mode & 0o777)).toEqual([0o640, 0o640, 0o640])
})
