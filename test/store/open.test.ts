import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, onTestFinished, test } from 'vitest'
import { EXIT_STATUS, StopError } from '../../src/base/errors.ts'
import { findingsOf } from '../../src/doctor/finding.ts'
import { writerFinding } from '../../src/doctor/writer.ts'
import { openSqlite, sqlitePackage } from '../../src/store/database/sqlite.ts'
import { databaseError, databaseFault } from '../../src/store/database/sqlite-errors.ts'
import { isMountPoint } from '../../src/store/disk/location.ts'
import { idleWriter } from '../../src/store/disk/lock-holders.ts'
import { type ModeChange, openDatabase } from '../../src/store/file/open.ts'
import { openWarehouse } from '../../src/store/open-warehouse.ts'
import { readUncountedReport } from '../../src/store/status/report.ts'
import { until } from '../support/until.ts'
import { newFolder, openAt, temporaryStore } from './temporary-store.ts'

function refusalOf(open: () => unknown): StopError {
  try {
    open()
  } catch (error) {
    if (error instanceof StopError) return error
    throw error
  }
  throw new Error('it was opened')
}

const HOLDER = fileURLToPath(new URL('lock-holder.ts', import.meta.url))

interface Holder {
  process: ChildProcess
  says: string
}

/** @param closed set for a process that holds the lock and has closed the database */
async function holdIt(path: string, closed = ''): Promise<Holder> {
  const child = spawn(process.execPath, ['--import', 'tsx', HOLDER, path, closed], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  onTestFinished(() => {
    child.kill('SIGKILL')
  })
  const [says] = (await once(child.stdout, 'data')) as [Buffer]
  return { process: child, says: says.toString() }
}

test('a program that reads a copy that was put in place without a WAL is named by a writer that has to wait for it', async () => {
  const store = temporaryStore()
  store.close()
  execFileSync('sqlite3', [store.path, 'PRAGMA journal_mode = DELETE'])
  const reader = spawn('sqlite3', [store.path], { stdio: ['pipe', 'pipe', 'inherit'] })
  onTestFinished(() => {
    reader.kill('SIGKILL')
  })
  reader.stdin.write('BEGIN; SELECT count(*) FROM sqlite_master;\n')
  await once(reader.stdout, 'data')
  const { code, message, hint } = refusalOf(() => openDatabase({ path: store.path }))
  expect({ code, message, hint }).toEqual({
    code: 'database-busy',
    message: `${store.path} is open in process ${reader.pid} (sqlite3), which is running`,
    hint: expect.stringMatching(/^Close it there, .* After a restore, /),
  })
  reader.kill('SIGKILL')
  await once(reader, 'close')
  openDatabase({ path: store.path }).close()
})

describe('one writer per database', () => {
  test('a second process gets an error that names the holder, and kill -9 releases the lock without loss', async () => {
    const path = join(newFolder(), 'parley.db')
    const holder = await holdIt(path)
    expect(holder.says).toBe('held\n')
    const error = refusalOf(() => openAt(path))
    expect(error.exitStatus).toBe(EXIT_STATUS.unfinished)
    expect(error.message).toContain(`process ${holder.process.pid} (parley holder)`)
    const second = await holdIt(path)
    expect(second.says).toContain('is being written by process')
    holder.process.kill('SIGKILL')
    await once(holder.process, 'exit')
    const store = openAt(path)
    expect(store.db.pragma('integrity_check', { simple: true })).toBe('ok')
    store.close()
  })

  test('a holder that is stopped, or whose file was moved or replaced, is reported as one that does not write', async () => {
    const path = join(newFolder(), 'parley.db')
    const { process: holder } = await holdIt(path)
    const daemon = () => readUncountedReport({ path, now: Date.now() }).daemon
    expect(daemon()).toBe(null)
    holder.kill('SIGSTOP')
    await until(
      () => idleWriter(path)?.isHalted,
      isHalted => isHalted === true,
    )
    expect(daemon()).toMatchObject({
      ...{ state: 'waiting', code: 'halted', reason: `Process ${holder.pid} is stopped (SIGSTOP)` },
      hint: `Continue process ${holder.pid} with kill -CONT ${holder.pid}, or end it with kill -KILL ${holder.pid}.`,
    })
    holder.kill('SIGCONT')
    await until(
      () => idleWriter(path),
      idle => idle === undefined,
    )
    const moved = `${path}.moved`
    for (const end of ['', '-wal', '-shm']) renameSync(`${path}${end}`, `${moved}${end}`)
    expect(refusalOf(daemon).message).toContain(
      `process ${holder.pid} holds its lock: it was moved or deleted`,
    )
    execFileSync('sqlite3', [moved, `VACUUM INTO '${path}'`])
    expect(daemon()).toMatchObject({ state: 'waiting', code: 'not-opened' })
    const db = openSqlite(path)
    onTestFinished(() => void db.close())
    const found = () => writerFinding({ database: path, db }, findingsOf('writer'))
    expect(found()).toMatchObject({
      found: expect.stringMatching(/ does not have this file open$/),
      hint: 'The file was moved or replaced: put it back.',
    })
    db.prepare(
      "UPDATE sync_meta SET value = json_set(value, '$.command', 'daemon') WHERE key = 'writer'",
    ).run()
    const waiting = { state: 'waiting', reason: 'The disk is full', hint: 'Free space.', until: null }
    const note = JSON.stringify({ ...waiting, since: '2026-03-04T12:00:00.000Z' })
    db.prepare("INSERT INTO sync_meta (key, value) VALUES ('daemon_state', ?)").run(note)
    expect(found()).toMatchObject({
      found: expect.stringMatching(/ waits since 2026-03-04 12:00 UTC: The disk is full$/),
      hint: 'Free space.',
    })
    holder.kill('SIGSTOP')
    await until(
      () => found().found,
      text => text.endsWith(`Process ${holder.pid} is stopped (SIGSTOP)`),
    )
  })

  test('a process that has closed its database is reported as waiting, and not as one whose file was moved', async () => {
    const path = join(newFolder(), 'parley.db')
    const { process: holder } = await holdIt(path, 'closed')
    const daemon = () => readUncountedReport({ path, now: Date.now() }).daemon
    const hint = 'The reason is in its log and in /status.'
    expect(daemon()).toMatchObject({
      ...{ state: 'waiting', code: 'not-writing', hint },
      reason: `Process ${holder.pid} has closed the database until it can use it again`,
    })
    const db = openSqlite(path)
    onTestFinished(() => void db.close())
    expect(writerFinding({ database: path, db }, findingsOf('writer'))).toMatchObject({
      found: expect.stringMatching(/ and waits: Process \d+ has closed the database until /),
      hint,
    })
    db.prepare("UPDATE sync_meta SET value = json_remove(value, '$.inode') WHERE key = 'writer'").run()
    expect(daemon()).toMatchObject({
      code: 'not-opened',
      hint: `${hint} If the file was moved or replaced, put it back.`,
    })
    const other = spawn('sqlite3', [path], { stdio: ['pipe', 'ignore', 'inherit'] })
    onTestFinished(() => {
      other.kill('SIGKILL')
    })
    other.stdin.write('BEGIN IMMEDIATE;\n')
    await until(
      () => daemon()?.code,
      code => code === 'database-busy',
    )
    expect(daemon()).toMatchObject({
      reason: `The database ${path} is locked by process ${other.pid} (sqlite3), which is running`,
      hint: expect.stringMatching(/^Close that program, /),
    })
  })

  test('the lock holds for the same file under another name', () => {
    const store = temporaryStore()
    const other = join(store.folder, 'other.db')
    symlinkSync(store.path, other)
    expect(refusalOf(() => openAt(other)).code).toBe('database-locked')
  })

  test('the lock holds when the first opening creates the file at the end of links', () => {
    const folder = newFolder()
    mkdirSync(join(folder, 'disk'))
    symlinkSync('disk/second.db', join(folder, 'first.db'))
    symlinkSync('third.db', join(folder, 'disk', 'second.db'))
    const store = openAt(join(folder, 'first.db'))
    for (const name of ['first.db', 'disk/second.db', 'disk/third.db'])
      expect(refusalOf(() => openAt(join(folder, name))).code).toBe('database-locked')
    store.close()
  })

  test('a reader may open the file at any time', async () => {
    const store = temporaryStore()
    const reader = openDatabase({ path: store.path, readonly: true })
    store.put('members', [{ id: 'a' }])
    expect(reader.prepare('SELECT id FROM live_members').pluck().all()).toEqual(['a'])
    await store.transaction(() => {
      store.db.exec("INSERT INTO sync_meta VALUES ('x', '1')")
      expect(reader.prepare("SELECT count(*) FROM sync_meta WHERE key = 'x'").pluck().get()).toBe(0)
    })
    reader.close()
  })
})

/** Acts as another program of the same user: opens the database for writing, reads and closes it. */
const visit = (path: string): string =>
  execFileSync('sqlite3', [path, "SELECT value FROM sync_meta WHERE key = 'x'"], { encoding: 'utf8' }).trim()

describe('the locks of the writer', () => {
  test('the locks stay when another connection of the same process opens and closes', () => {
    const path = join(newFolder(), 'parley.db')
    openAt(path).close()
    const reader = openDatabase({ path, readonly: true })
    reader.prepare('SELECT count(*) FROM sync_meta').get()
    const store = openAt(path)
    reader.close()
    store.state.setMeta('x', 'first')
    // A program that finds no other locks would delete the WAL, and every later commit with it.
    expect(visit(path)).toBe('first')
    store.state.setMeta('x', 'second')
    expect(visit(path)).toBe('second')
    expect(statSync(`${path}-wal`).nlink).toBe(1)
    expect(store.db.pragma('integrity_check', { simple: true })).toBe('ok')
    store.close()
  })

  test.each([
    [0o600, 0o600],
    [0o640, 0o600],
    [0o644, 0o600],
    [0o660, 0o660],
    [0o664, 0o660],
  ])(
    'the lock file of a database with mode %o has mode %o: who may only read cannot lock it',
    (mode, wanted) => {
      const path = join(newFolder(), 'parley.db')
      const modeOfLock = () => statSync(`${path}-lock`).mode & 0o777
      openAt(path, mode).close()
      expect(modeOfLock()).toBe(wanted)
      // The file as an earlier version made it.
      chmodSync(`${path}-lock`, 0o644)
      openAt(path, mode).close()
      expect(modeOfLock()).toBe(wanted)
    },
  )
})

describe('a database with a second name', () => {
  test.each(['first', 'second'])('a database is refused by its %s name and not changed', name => {
    const folder = newFolder()
    const path = join(folder, 'first.db')
    openAt(path).close()
    linkSync(path, join(folder, 'second.db'))
    const before = readFileSync(path)
    const error = refusalOf(() => openAt(join(folder, `${name}.db`)))
    expect([error.code, error.exitStatus]).toEqual(['database-second-name', EXIT_STATUS.databaseUnavailable])
    expect(error.message).toContain('2 names')
    expect(existsSync(join(folder, 'second.db-lock'))).toBe(false)
    expect(readFileSync(path).equals(before)).toBe(true)
    rmSync(join(folder, 'second.db'))
    openAt(path).close()
  })

  test('a database with a second name may be read', () => {
    const folder = newFolder()
    const path = join(folder, 'first.db')
    openAt(path).close()
    linkSync(path, join(folder, 'backup.db'))
    openDatabase({ path, readonly: true }).close()
  })

  test.each([
    ['/data/parley.db', true],
    ['/data/with a blank.db', true],
    ['/data/back\\slash.db', true],
    ['/data', true],
    ['/data/other.db', false],
    ['/srv/parley.db', false],
  ])('the mount table decides whether %s is a mount point (%s)', (path, isOne) => {
    const table = String.raw`22 27 0:21 / /proc rw,nosuid - proc proc rw
1143 1130 8:1 /srv/parley.db /data/parley.db rw,relatime - ext4 /dev/sda1 rw
1144 1130 8:1 /srv/a /data/with\040a\040blank.db rw,relatime - ext4 /dev/sda1 rw
1145 1130 8:1 /srv/b /data/back\134slash.db rw,relatime - ext4 /dev/sda1 rw
1146 1130 8:1 /srv /data rw,relatime - ext4 /dev/sda1 rw
`
    expect(isMountPoint(path, table)).toBe(isOne)
  })
})

describe('a database that parley did not create', () => {
  test('a foreign database is refused and not changed by a byte', () => {
    const path = join(newFolder(), 'foreign.db')
    const foreign = openSqlite(path)
    foreign.exec('CREATE TABLE theirs (a); INSERT INTO theirs VALUES (1)')
    foreign.close()
    const before = readFileSync(path)
    const error = refusalOf(() => openAt(path))
    expect([error.code, error.exitStatus]).toEqual(['database-foreign', EXIT_STATUS.databaseUnavailable])
    expect(readFileSync(path).equals(before)).toBe(true)
    expect([`${path}-wal`, `${path}-shm`].map(existsSync)).toEqual([false, false])
  })

  test('a database of a newer version is refused and not changed by a byte', () => {
    const path = join(newFolder(), 'newer.db')
    openAt(path).close()
    const newer = openSqlite(path)
    newer.pragma('journal_mode = DELETE')
    newer.exec("INSERT INTO __drizzle_migrations (hash, created_at) VALUES ('x', 99999999999999)")
    newer.close()
    const before = readFileSync(path)
    const error = refusalOf(() => openAt(path))
    expect([error.code, error.exitStatus]).toEqual(['database-newer', EXIT_STATUS.databaseUnavailable])
    expect(readFileSync(path).equals(before)).toBe(true)
  })

  test('a file that is not a database is refused and not changed', () => {
    const path = join(newFolder(), 'letter.txt')
    writeFileSync(path, 'Dear Sir or Madam, this is a letter and no database, whatever you may think of it.')
    const before = readFileSync(path)
    expect(refusalOf(() => openAt(path)).exitStatus).toBe(EXIT_STATUS.databaseUnavailable)
    expect(readFileSync(path).equals(before)).toBe(true)
  })

  test('a folder that does not exist is refused with a hint', () => {
    const error = refusalOf(() => openAt(join(newFolder(), 'nowhere', 'parley.db')))
    expect(error.exitStatus).toBe(EXIT_STATUS.databaseUnavailable)
    expect(error.hint).toBeTruthy()
  })

  test('an empty file becomes a warehouse', () => {
    const path = join(newFolder(), 'empty.db')
    writeFileSync(path, '')
    openAt(path).close()
    expect(openDatabase({ path, readonly: true }).pragma('application_id', { simple: true })).toBe(0x7061726c)
  })
})

describe('the files of a warehouse', () => {
  test.each([0o600, 0o640])(
    'the files have the mode of the settings (%o), -wal and -shm too, whatever the umask',
    mode => {
      const path = join(newFolder(), 'parley.db')
      const umask = process.umask(0o027)
      onTestFinished(() => {
        process.umask(umask)
      })
      const store = openAt(path, mode)
      store.db.exec("INSERT INTO sync_meta VALUES ('x', '1')")
      const modes = () => ['', '-wal', '-shm'].map(suffix => statSync(path + suffix).mode & 0o777)
      expect(modes()).toEqual([mode, mode, mode])
      store.close()
      expect(modes()).toEqual([mode, mode, mode])
    },
  )

  test('files with another mode get the mode of the settings, and each change is reported', () => {
    const path = join(newFolder(), 'parley.db')
    openAt(path, 0o600).close()
    const changes: ModeChange[] = []
    openWarehouse({ path, mode: 0o640, onMode: change => changes.push(change) }).close()
    const modes = ['', '-wal', '-shm']
      .filter(end => existsSync(path + end))
      .map(end => statSync(path + end).mode & 0o777)
    expect(new Set(modes)).toEqual(new Set([0o640]))
    expect(changes[0]).toEqual({ path, found: 0o600, wanted: 0o640, isApplied: true })
    openWarehouse({ path, mode: 0o640, onMode: () => expect.unreachable() }).close()
    openWarehouse({ path, mode: 0o600 }).close()
    expect(statSync(path).mode & 0o777).toBe(0o640)
  })

  test('a user who may not write the folder can read the files after the database was closed', async () => {
    const folder = join(newFolder(), 'open')
    mkdirSync(folder)
    const path = join(folder, 'parley.db')
    const store = openAt(path, 0o644)
    store.db.exec("INSERT INTO sync_meta VALUES ('x', 'seen')")
    store.close()
    expect([`${path}-wal`, `${path}-shm`].map(existsSync)).toEqual([true, true])
    if (process.getuid?.() !== 0) return
    chmodSync(join(folder, '..'), 0o755)
    chmodSync(folder, 0o755)
    const sqlite = createRequire(import.meta.url).resolve(sqlitePackage(process.versions.node))
    const script = `process.setgid(65534); process.setuid(65534)
      const db = new (require('${sqlite}'))('${path}', { readonly: true })
      console.log(db.prepare("SELECT value FROM sync_meta WHERE key = 'x'").pluck().get())`
    // Loads the native module before dropping the permissions, since other users may not be able to read its folder.
    const child = spawn(process.execPath, ['-e', `new (require('${sqlite}'))(':memory:').close(); ${script}`])
    let said = ''
    child.stdout.on('data', chunk => {
      said += chunk
    })
    child.stderr.on('data', chunk => {
      said += chunk
    })
    await once(child, 'close')
    expect(said).toBe('seen\n')
  })

  test('a warehouse has its application id, WAL mode and no foreign-key checks', () => {
    const store = temporaryStore()
    const pragma = (name: string) => store.db.pragma(name, { simple: true })
    expect(['application_id', 'journal_mode', 'foreign_keys', 'synchronous'].map(pragma)).toEqual([
      0x7061726c,
      'wal',
      0,
      1,
    ])
  })
})

describe('a process that died', () => {
  test('the next process closes the runs of a dead one', () => {
    const path = join(newFolder(), 'parley.db')
    const first = openAt(path)
    first.runs.begin('members', 'history', '2026-01-01T00:00:00.000Z')
    first.close()
    const second = openAt(path)
    expect(second.db.prepare('SELECT outcome FROM sync_runs').pluck().all()).toEqual(['interrupted'])
    second.close()
  })
})

test('a write that is refused although there is space is not called a full disk', () => {
  const { problem, hint } = databaseFault('SQLITE_FULL', join(newFolder(), 'parley.db')) ?? {}
  expect(problem).toMatch(/^the system let it write no more, although [\d.]+ .B are free on \/.*\(\w+\)$/)
  expect(hint).toContain('quotas')
})

test('a read-only file system is reported differently from a missing permission', () => {
  const said = (code: string) => databaseFault(code, join(newFolder(), 'parley.db'))?.problem
  expect([said('EROFS'), said('EACCES')]).toEqual([
    'its file system is read-only',
    'no permission to open or write it',
  ])
})

test('a WAL that a halted process keeps from being read is a lock of another program', () => {
  const halted = Object.assign(new Error('locking protocol'), { code: 'SQLITE_PROTOCOL' })
  expect(databaseError(halted, '/data/parley.db')).toMatchObject({
    code: 'database-busy',
    exitStatus: EXIT_STATUS.unfinished,
  })
})
