import { expect, test } from 'vitest'
import type { Storage } from '../../src/publish/storage/storage.ts'
import { openSqlite } from '../../src/store/database/sqlite.ts'
import { openAt, temporaryStore, withShortcuts } from '../store/temporary-store.ts'
import { auditLake } from './lake-audit.ts'
import { rowsOf } from './lake-reader.ts'
import { dataWrittenBy, newLake, publishTo } from './publishing.ts'

test('what another program changes is published when everything is compared', async () => {
  const store = temporaryStore()
  store.put('members', [{ id: 'm', name: 'M' }])
  const lake = await newLake()
  await publishTo(store.path, lake)
  const other = openSqlite(store.path)
  other.exec("UPDATE members SET name = 'by hand'")
  other.close()
  expect(dataWrittenBy(await publishTo(store.path, lake))).toEqual({ publications: 1 })
  expect(dataWrittenBy(await publishTo(store.path, lake, { full: true }))).toEqual({
    members: 1,
    publications: 1,
  })
  expect(await rowsOf(lake, 'members')).toMatchObject([{ name: 'by hand' }])
})

test('the state of a resource is published when it has changed, though no row has', async () => {
  const store = temporaryStore()
  store.put('members', [{ id: 'm', name: 'M' }])
  const lake = await newLake()
  await publishTo(store.path, lake)
  const reject = {
    resource: 'members',
    feed: 'members.list',
    scope: '',
    item: { id: 7 },
    reason: 'no text',
  } as const
  store.rejects.note(reject, '2026-03-04T12:00:00.000Z')
  await publishTo(store.path, lake)
  const published = await rowsOf(lake, 'sync_status')
  expect(published.find(({ resource }) => resource === 'members')).toMatchObject({ rejected: 1n })
})

test('the publication of an unchanged warehouse lists the target once, and reads each table once', async () => {
  const store = temporaryStore()
  store.put('members', [{ id: 'm', name: 'M' }])
  const lake = await newLake()
  await publishTo(store.path, lake)
  const used = { listed: [] as string[], read: [] as string[] }
  const through = (storage: Storage): Storage => ({
    ...storage,
    list(folder) {
      used.listed.push(folder)
      return storage.list(folder)
    },
    read(path) {
      used.read.push(path)
      return storage.read(path)
    },
  })
  await publishTo(store.path, lake, { through })
  expect(used.listed).toEqual([''])
  const others = used.read.filter(path => !path.startsWith('publications/'))
  expect(new Set(others).size).toBe(others.length)
  await auditLake(lake)
})

test('a table that an interrupted publication has written is compared with a copy from before that', async () => {
  const store = temporaryStore()
  store.put('members', [{ id: 'm', name: 'earlier' }])
  const lake = await newLake()
  await publishTo(store.path, lake)
  const copy = `${store.folder}/copy.db`
  store.db.prepare('VACUUM INTO ?').run(copy)
  store.put('members', [{ id: 'm', name: 'later' }])
  const through = (storage: Storage): Storage => ({
    ...storage,
    beginFile(path) {
      if (path.startsWith('publications/')) throw new Error('interrupted')
      return storage.beginFile(path)
    },
  })
  await expect(publishTo(store.path, lake, { through })).rejects.toThrow('interrupted')
  expect(await rowsOf(lake, 'members')).toMatchObject([{ name: 'later' }])
  withShortcuts(openAt(copy), store.folder, copy).close()
  await publishTo(copy, lake)
  expect(await rowsOf(lake, 'members')).toMatchObject([{ name: 'earlier' }])
  await auditLake(lake)
})
