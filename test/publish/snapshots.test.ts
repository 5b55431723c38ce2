import { expect, test } from 'vitest'
import { type TemporaryStore, temporaryStore } from '../store/temporary-store.ts'
import { auditLake } from './lake-audit.ts'
import { metadataOf, publicationsIn, rowsByIcebird, rowsOf } from './lake-reader.ts'
import { newLake, publishTo } from './publishing.ts'

const setMember = (store: TemporaryStore, name: string) => store.put('members', [{ id: 'm', name }])

const idsOf = async (...place: Parameters<typeof metadataOf>) =>
  (await metadataOf(...place)).snapshots.map(snapshot => snapshot['snapshot-id'])

test('the newest publications stay readable by their snapshots, and the files of earlier ones are gone', async () => {
  const store = temporaryStore()
  const lake = await newLake()
  for (const name of ['one', 'two', 'three', 'four']) {
    setMember(store, name)
    await publishTo(store.path, lake, { keep: 2 })
    await auditLake(lake)
  }
  expect(await idsOf(lake, 'members')).toEqual([3, 4])
  const publications = await publicationsIn(lake)
  expect(publications.map(({ publication }) => publication)).toEqual([1, 2, 3, 4])
  for (const [place, name] of [
    [2, 'three'],
    [3, 'four'],
  ] as const) {
    const snapshots = publications[place]?.snapshots
    expect(await rowsOf(lake, 'members', snapshots?.['members'])).toMatchObject([{ name }])
    expect(await rowsOf(lake, 'teams', snapshots?.['teams'])).toEqual([])
  }
})

test('with --keep 1 only the newest publication stays', async () => {
  const store = temporaryStore()
  const lake = await newLake()
  for (const name of ['one', 'two']) {
    setMember(store, name)
    await publishTo(store.path, lake, { keep: 1 })
    expect(await rowsByIcebird(lake, 'members')).toMatchObject([{ name }])
    await auditLake(lake)
  }
  expect(await idsOf(lake, 'members')).toEqual([2])
})

test('a snapshot of a table that did not change since counts as part of every publication that shows it', async () => {
  const store = temporaryStore()
  const lake = await newLake()
  setMember(store, 'one')
  await publishTo(store.path, lake, { keep: 2 })
  setMember(store, 'two')
  for (let time = 0; time < 2; time += 1) await publishTo(store.path, lake, { keep: 2 })
  expect(await idsOf(lake, 'members')).toEqual([2])
  expect(await idsOf(lake, 'teams')).toEqual([1])
  await auditLake(lake)
})

test('a kept snapshot of the publications does not repeat the rows of that table in its metadata', async () => {
  const store = temporaryStore()
  const lake = await newLake()
  for (let time = 0; time < 2; time += 1) await publishTo(store.path, lake, { tables: ['members'] })
  const { properties, snapshots } = await metadataOf(lake, 'publications')
  expect(JSON.parse(properties['parley.publications'] ?? '')).toHaveLength(2)
  for (const { summary } of snapshots)
    expect(Object.keys(summary)).toEqual([
      'operation',
      'total-records',
      'total-data-files',
      'parley.warehouse',
    ])
})
