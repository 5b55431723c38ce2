import { chmodSync, existsSync, readFileSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type Clock, systemClock } from '../../src/base/clock.ts'
import { EXIT_STATUS } from '../../src/base/errors.ts'
import { openSqlite } from '../../src/store/database/sqlite.ts'
import { type OpenStore, openStore } from '../../src/store/store.ts'
import { newFolder, openAt } from './temporary-store.ts'

/** A store whose clock a test moves on, with one committed value that is still in its WAL. */
async function written(): Promise<{
  store: OpenStore
  path: string
  folder: string
  clock: Clock
  pass(ms: number): void
}> {
  const folder = newFolder()
  const path = join(folder, 'parley.db')
  let passed = 0
  const real = systemClock()
  const clock: Clock = { ...real, elapsed: () => real.elapsed() + passed }
  const store = openStore({ path, mode: 0o600, command: 'test', pid: process.pid, clock })
  await store.transaction(() => store.state.setMeta('x', 'committed'))
  return {
    store,
    path,
    folder,
    clock,
    pass: ms => {
      passed += ms
    },
  }
}

const write = (store: OpenStore) =>
  store.transaction(() => store.state.setMeta('x', 'later')).catch((error: unknown) => error)

const MOVED = { code: 'database-moved', exitStatus: EXIT_STATUS.databaseUnavailable }

test('a database that is moved away takes no further commit, and is complete without its -wal', async () => {
  const { store, path, folder, pass } = await written()
  const moved = join(folder, 'moved.db')
  renameSync(path, moved)
  pass(1000)
  expect(await write(store)).toMatchObject(MOVED)
  store.close()
  expect(existsSync(path)).toBe(false)
  const db = openSqlite(moved)
  expect(db.prepare("SELECT value FROM sync_meta WHERE key = 'x'").pluck().get()).toBe('committed')
  expect(db.pragma('integrity_check', { simple: true })).toBe('ok')
  db.close()
})

describe('a database whose -wal is removed while it is written', () => {
  test.each([
    ['alone', ['-wal']],
    ['with the -shm', ['-wal', '-shm']],
  ])('takes no further commit and loses none when the file is removed %s', async (_, suffixes) => {
    const { store, path, pass } = await written()
    for (const suffix of suffixes) rmSync(path + suffix)
    pass(1000)
    const failure = await write(store)
    expect(failure).toMatchObject({
      ...MOVED,
      message: `${path}-wal was moved, deleted or replaced while parley was using it`,
    })
    store.close()
    const reader = openSqlite(path, { readonly: true })
    onTestFinished(() => void reader.close())
    const value = "SELECT value FROM sync_meta WHERE key = 'x'"
    expect(reader.prepare(value).pluck().get()).toBe('committed')
    const next = openAt(path)
    await next.transaction(() => next.state.setMeta('x', 'next'))
    expect(reader.prepare(value).pluck().get()).toBe('next')
    expect(next.db.pragma('integrity_check', { simple: true })).toBe('ok')
    next.close()
  })

  test('takes no commit when the file was removed while the database was opened', async () => {
    const { store: before, path, pass, clock } = await written()
    before.close()
    chmodSync(path, 0o640)
    const wal = `${path}-wal`
    const onMode = () => rmSync(wal, { force: true })
    const store = openStore({ path, mode: 0o600, command: 'test', pid: process.pid, clock, onMode })
    expect(existsSync(wal)).toBe(false)
    pass(1000)
    expect(await write(store)).toMatchObject(MOVED)
    store.close()
    const next = openAt(path)
    expect(next.state.meta('x')).toBe('committed')
    next.close()
  })

  test('takes commits until the transaction of a reader ends, and loses none', async () => {
    const { store, path, pass } = await written()
    const reader = openSqlite(path, { readonly: true })
    reader.exec('BEGIN; SELECT count(*) FROM sync_meta')
    rmSync(`${path}-wal`)
    for (let commits = 0; commits < 3; commits += 1) {
      pass(1000)
      expect(await write(store)).toBeUndefined()
    }
    reader.close()
    pass(1000)
    expect(await write(store)).toMatchObject(MOVED)
    store.close()
    const next = openAt(path)
    expect(next.state.meta('x')).toBe('later')
    expect(next.db.pragma('integrity_check', { simple: true })).toBe('ok')
    next.close()
  })
})

test('a database whose folder the system no longer lets through says so, and is closed without an error', async () => {
  const { store, folder, pass } = await written()
  const aside = `${folder}-aside`
  renameSync(folder, aside)
  onTestFinished(() => rmSync(aside, { recursive: true }))
  // As without permission for a folder of the path, which root always has.
  symlinkSync(folder, folder)
  pass(1000)
  expect(await write(store)).toMatchObject({ code: 'database-unavailable' })
  store.close()
})

test('a rebuild of a database that is moved away ends, and rebuilds nothing', async () => {
  const { store, path, folder, pass } = await written()
  renameSync(path, join(folder, 'moved.db'))
  pass(1000)
  // VACUUM increases it.
  const version = store.db.pragma('schema_version')
  await expect(
    store.purger.clean({ rebuild: true, signal: new AbortController().signal }),
  ).rejects.toMatchObject(MOVED)
  expect(store.db.pragma('schema_version')).toEqual(version)
  store.close()
  expect(existsSync(path)).toBe(false)
})

test('the writer of a database does not touch another database that took its place', async () => {
  const { store, path, folder, pass } = await written()
  const other = join(folder, 'other.db')
  openAt(other).close()
  for (const suffix of ['-wal', '-shm']) rmSync(other + suffix, { force: true })
  const before = readFileSync(other)
  renameSync(other, path)
  pass(1000)
  expect(await write(store)).toMatchObject(MOVED)
  store.close()
  expect(readFileSync(path).equals(before)).toBe(true)
  const next = openAt(path)
  expect(next.state.meta('x')).toBeUndefined()
  expect(next.db.pragma('integrity_check', { simple: true })).toBe('ok')
  next.close()
})
