import { chmodSync, existsSync, statSync } from 'node:fs'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type Clock, systemClock } from '../../src/base/clock.ts'
import { EXIT_STATUS, StopError } from '../../src/base/errors.ts'
import { openSqlite } from '../../src/store/database/sqlite.ts'
import { askWriter, createRequests, type NewRequest, readRequests } from '../../src/store/file/handed-over.ts'
import { openDatabase } from '../../src/store/file/open.ts'
import { takeOutOfUse } from '../../src/store/restore/swap.ts'
import { newFolder, openAt, temporaryStore } from './temporary-store.ts'

const NOW = '2026-01-01T00:00:00.000Z'

const wish = (resource: NewRequest['resource']): NewRequest => ({ kind: 'resync', resource })

/** A clock that stands still. It calls the function at every short wait. */
function clockThat(whileWaiting: () => void, elapsed: () => number = () => 0): Clock {
  return {
    now: () => Date.parse(NOW),
    elapsed,
    sleep: async () => whileWaiting(),
  }
}

const STILL = clockThat(() => {
  throw new Error('it waited')
})

async function refusalOf(asking: Promise<unknown>): Promise<StopError> {
  const error = await asking.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  if (error instanceof StopError) return error
  throw error ?? new Error('it was not refused')
}

describe('a request to the writer', () => {
  test('a request stays open, the first one first, until it is done', async () => {
    const store = temporaryStore()
    const requests = createRequests(store.prepare)
    await askWriter(store.path, wish('meetings'), STILL)
    await askWriter(store.path, wish('teams'), STILL)
    expect(requests.open()).toEqual([
      { id: 1, kind: 'resync', resource: 'meetings', askedAt: NOW },
      { id: 2, kind: 'resync', resource: 'teams', askedAt: NOW },
    ])
    requests.done(1, NOW)
    expect(requests.open().map(({ resource }) => resource)).toEqual(['teams'])
  })

  test('a request is not added twice while it is open, and can be added again after it was done', async () => {
    const store = temporaryStore()
    const requests = createRequests(store.prepare)
    await askWriter(store.path, wish('teams'), STILL)
    await askWriter(store.path, wish('teams'), STILL)
    expect(requests.open()).toHaveLength(1)
    requests.done(1, NOW)
    await askWriter(store.path, wish('teams'), STILL)
    expect(requests.open().map(({ id }) => id)).toEqual([2])
  })

  test('an unknown request of a newer version is left to that version', () => {
    const store = temporaryStore()
    store.db.exec(
      `INSERT INTO sync_requests (kind, resource, asked_at)
       VALUES ('polish', 'teams', '${NOW}'), ('resync', 'nonsense', '${NOW}')`,
    )
    expect(createRequests(store.prepare).open()).toEqual([])
    expect(readRequests(store.db)).toEqual([])
  })

  test('a request shows who the writer is', async () => {
    const store = temporaryStore()
    expect(await askWriter(store.path, wish('teams'), STILL)).toEqual({
      pid: process.pid,
      command: 'test',
      since: expect.stringMatching(/^20.*Z$/),
      inode: statSync(store.path).ino,
    })
  })
})

describe('the writer of the warehouse', () => {
  test('the writer notices the writes of others once, and not its own', async () => {
    const store = temporaryStore()
    const { changedByOthers } = createRequests(store.prepare)
    expect([changedByOthers(), changedByOthers()]).toEqual([true, false])
    await store.transaction(() => store.state.setMeta('x', '1'))
    expect(changedByOthers()).toBe(false)
    await askWriter(store.path, wish('teams'), STILL)
    expect([changedByOthers(), changedByOthers()]).toEqual([true, false])
  })

  test("the writer's transaction makes a request wait", async () => {
    const store = temporaryStore()
    store.db.exec('BEGIN IMMEDIATE')
    await askWriter(
      store.path,
      wish('teams'),
      clockThat(() => store.db.exec('COMMIT')),
    )
    expect(readRequests(store.db)).toHaveLength(1)
  })

  test('a request waits 10 s for a writer that never pauses, and then ends with 75', async () => {
    const store = temporaryStore()
    store.db.exec('BEGIN IMMEDIATE')
    let waited = 0
    const clock = clockThat(
      () => {
        waited += 4000
      },
      () => waited,
    )
    const { code, exitStatus } = await refusalOf(askWriter(store.path, wish('teams'), clock))
    expect({ code, exitStatus }).toEqual({ code: 'database-busy', exitStatus: EXIT_STATUS.unfinished })
    expect(waited).toBe(12_000)
    store.db.exec('ROLLBACK')
    expect(readRequests(store.db)).toEqual([])
  })

  test('the writer continues when the requester is gone', async () => {
    const store = temporaryStore()
    await store.transaction(() => store.state.setMeta('x', 'before'))
    await askWriter(store.path, wish('teams'), STILL)
    await store.transaction(() => store.state.setMeta('x', 'after'))
    const reader = openDatabase({ path: store.path, readonly: true })
    expect(reader.prepare("SELECT value FROM sync_meta WHERE key = 'x'").pluck().get()).toBe('after')
    expect(reader.pragma('integrity_check', { simple: true })).toBe('ok')
    reader.close()
  })

  test('the writer may end meanwhile, and -wal and -shm stay for users who may only read the folder', async () => {
    const path = `${newFolder()}/parley.db`
    const store = openAt(path)
    const other = openSqlite(path)
    other.exec('BEGIN IMMEDIATE')
    await askWriter(
      path,
      wish('teams'),
      clockThat(() => {
        other.exec('ROLLBACK')
        other.close()
        store.close()
      }),
    )
    expect([`${path}-wal`, `${path}-shm`].map(existsSync)).toEqual([true, true])
    const next = openAt(path)
    expect(createRequests(next.prepare).open()).toHaveLength(1)
    next.close()
  })
})

describe('a refused request', () => {
  test('a request of a user who may not write the file is refused with 73', async () => {
    const folder = newFolder()
    const path = `${folder}/parley.db`
    openAt(path, 0o644).close()
    chmodSync(folder, 0o755)
    if (process.getuid?.() === 0) {
      process.seteuid?.(65534)
      onTestFinished(() => process.seteuid?.(0))
    } else chmodSync(path, 0o444)
    const { exitStatus, message } = await refusalOf(askWriter(path, wish('teams'), systemClock()))
    expect(exitStatus).toBe(EXIT_STATUS.databaseUnavailable)
    expect(message).toContain('no permission to open or write it')
  })

  test('a request to a writer of an older version, which would not see it, is refused with 75', async () => {
    const store = temporaryStore()
    store.db.exec('DROP TABLE sync_requests')
    const { exitStatus, message } = await refusalOf(askWriter(store.path, wish('teams'), STILL))
    expect(exitStatus).toBe(EXIT_STATUS.unfinished)
    expect(message).toContain('the table sync_requests is missing')
    expect(readRequests(store.db)).toEqual([])
  })

  test('a request during a restore, which would replace the request with the file, is refused with 75', async () => {
    const path = `${newFolder()}/parley.db`
    openAt(path).close()
    const replaced = takeOutOfUse(path, 0)
    const { exitStatus, message } = await refusalOf(askWriter(path, wish('teams'), STILL))
    expect(exitStatus).toBe(EXIT_STATUS.unfinished)
    expect(message).toContain('is restoring or creating the file, or does not use it')
    replaced.close()
    await askWriter(path, wish('teams'), STILL)
    const reader = openDatabase({ path, readonly: true })
    expect(readRequests(reader)).toHaveLength(1)
    reader.close()
  })

  test('a request on a database of a newer version is refused with 73', async () => {
    const store = temporaryStore()
    store.db.exec("INSERT INTO __drizzle_migrations (hash, created_at) VALUES ('x', 99999999999999)")
    const { code } = await refusalOf(askWriter(store.path, wish('teams'), STILL))
    expect(code).toBe('database-newer')
    expect(store.column('SELECT * FROM sync_requests')).toEqual([])
  })
})
