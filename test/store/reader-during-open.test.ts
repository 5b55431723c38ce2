import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, closeSync, openSync, writeSync } from 'node:fs'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { MAX_WAIT_MS, openReader } from '../../src/store/database/connections.ts'
import { openSqlite } from '../../src/store/database/sqlite.ts'
import { databaseError } from '../../src/store/database/sqlite-errors.ts'
import { requirePrograms } from '../systemd/tools.ts'
import { asNobody, openToReaders } from './other-user.ts'
import { newFolder } from './temporary-store.ts'

beforeAll(() => requirePrograms('sqlite3'))

const READ = 'SELECT count(*) FROM sqlite_master;\n'

/** Both copies of the header of the WAL index. */
const HEADER_BYTES = 96

/** The state of a database while a starting writer has emptied the `-shm` and not yet filled it. */
async function beingOpened() {
  const path = `${newFolder()}/parley.db`
  openToReaders(path)
  execFileSync('sqlite3', [path, 'PRAGMA journal_mode = WAL; CREATE TABLE made (id)'])
  const writer = spawn('sqlite3', [path], { stdio: ['pipe', 'pipe', 'inherit'] })
  onTestFinished(() => {
    writer.kill('SIGKILL')
  })
  writer.stdin.write(READ)
  await once(writer.stdout, 'data')
  const index = openSync(`${path}-shm`, 'r+')
  writeSync(index, Buffer.alloc(HEADER_BYTES), 0, HEADER_BYTES, 0)
  closeSync(index)
  chmodSync(`${path}-shm`, 0o444)
  return {
    path,
    /** The next action of the writer. */
    fill() {
      const user = process.geteuid?.() ?? 0
      process.seteuid?.(process.getuid?.() ?? 0)
      chmodSync(`${path}-shm`, 0o644)
      execFileSync('sqlite3', [path, READ])
      process.seteuid?.(user)
    },
  }
}

describe('a reader without write permission on a database that a writer is opening', () => {
  test('the reader waits until it can read', async () => {
    const { path, fill } = await beingOpened()
    let pauses = 0
    const pause = () => {
      pauses += 1
      if (pauses === 3) fill()
    }
    await asNobody(async () => {
      const db = openReader(path, 0, pause)
      expect(db.prepare('SELECT name FROM sqlite_master').pluck().all()).toEqual(['made'])
      db.close()
    })
    expect(pauses).toBe(3)
  })

  test('the reader fails in the end because the database is busy, not because of a missing permission', async () => {
    const { path } = await beingOpened()
    let waitedMs = 0
    await asNobody(async () => {
      let thrown: unknown
      try {
        openReader(path, 0, ms => {
          waitedMs += ms
        })
      } catch (error) {
        thrown = databaseError(error, path)
      }
      expect(thrown).toMatchObject({ code: 'database-busy', exitStatus: 75 })
    })
    expect(waitedMs).toBe(MAX_WAIT_MS)
  })
})

describe('a reader of a database that a process has to itself, as while it recovers the WAL of one that was killed', () => {
  function held() {
    const path = `${newFolder()}/parley.db`
    const holder = openSqlite(path)
    onTestFinished(() => void holder.close())
    holder.pragma('journal_mode = WAL')
    holder.pragma('locking_mode = EXCLUSIVE')
    holder.exec('CREATE TABLE made (id)')
    return { path, holder }
  }

  test('the reader waits until it can read', () => {
    const { path, holder } = held()
    let pauses = 0
    const db = openReader(path, 0, () => {
      pauses += 1
      if (pauses === 3) holder.close()
    })
    expect(db.prepare('SELECT name FROM sqlite_master').pluck().all()).toEqual(['made'])
    db.close()
  })

  test('the reader fails in the end because the database is busy', () => {
    const { path } = held()
    let waitedMs = 0
    const attempt = () =>
      openReader(path, 0, ms => {
        waitedMs += ms
      })
    expect(attempt).toThrow(expect.objectContaining({ code: expect.stringMatching(/^SQLITE_BUSY/) }))
    expect(waitedMs).toBe(MAX_WAIT_MS)
  })
})
