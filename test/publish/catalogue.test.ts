import { cpSync, existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { icebergRead } from 'icebird'
import { expect, test } from 'vitest'
import { createCatalogue } from '../../src/publish/catalogue/catalogue.ts'
import type { TableMetadata } from '../../src/publish/iceberg/metadata.ts'
import type { Storage } from '../../src/publish/storage/storage.ts'
import { folderReader } from '../../src/publish/storage/target-reader.ts'
import { virtualClock } from '../api/virtual-clock.ts'
import { start } from '../server/status-server.ts'
import { newFolder, type TemporaryStore, temporaryStore } from '../store/temporary-store.ts'
import { dyingAfter, KILLED } from './dying-storage.ts'
import { entriesOf, placeOf } from './lake-reader.ts'
import { type Lake, newLake, type Publishing, publishTo } from './publishing.ts'

const NOW = '2026-06-30T12:00:00.000Z'
const TOKEN = 'a-token-of-the-catalogue'

function write(store: TemporaryStore, name: string): void {
  store.put('members', [{ id: 'm', name, email: 'm@x.example' }], { now: NOW })
  store.put('teams', [{ id: 't', name, member_ids: ['m'] }], { now: NOW })
}

const publish = ({ path }: TemporaryStore, lake: Lake, options: Publishing = {}) =>
  publishTo(path, lake, { tables: ['members', 'teams'], ...options })

async function published(name = 'first') {
  const store = temporaryStore()
  const lake = await newLake()
  write(store, name)
  await publish(store, lake)
  return { store, lake }
}

type Catalogue = ReturnType<typeof createCatalogue>

const catalogueOf = ({ folder }: Lake, clock = virtualClock(0)): Catalogue =>
  createCatalogue(folderReader(folder), clock)

async function metadataIn(lake: Lake, catalogue: Catalogue, table: string): Promise<TableMetadata> {
  const found = await catalogue.table(table)
  if (!found) throw new Error(`The catalogue has no ${table}`)
  // A client may read either of them.
  expect(readFileSync(placeOf(lake, found.address), 'utf8')).toBe(found.metadata)
  return JSON.parse(found.metadata)
}

/** The number of the publication, once every table was checked: it is there with all its files. */
async function checkedPublication(lake: Lake): Promise<number> {
  const catalogue = catalogueOf(lake)
  const { tables, properties } = await catalogue.publication()
  const publication = Number(properties['publication'])
  const { metadata } = (await catalogue.table('publications')) ?? {}
  const rows = JSON.parse(JSON.parse(metadata ?? '').properties['parley.publications'])
  const row = rows.find((one: { publication: number }) => one.publication === publication)
  expect(rows.at(-1)).toEqual(row)
  for (const table of tables) {
    const shown = await metadataIn(lake, catalogue, table)
    const wanted = table === 'publications' ? publication : row.snapshots[table]
    expect([table, shown['current-snapshot-id']]).toEqual([table, wanted])
    for (const { data_file } of await entriesOf(shown))
      expect([data_file.file_path, existsSync(placeOf(lake, data_file.file_path))]).toEqual([
        data_file.file_path,
        true,
      ])
  }
  return publication
}

test('the catalogue shows every table of the last complete publication, wherever the next one is interrupted', async () => {
  const { store, lake } = await published()
  const first = newFolder()
  cpSync(lake.folder, first, { recursive: true })
  write(store, 'second')
  const shown: number[] = []
  for (let step = 0, isDone = false; !isDone; step += 1) {
    rmSync(lake.folder, { recursive: true })
    cpSync(first, lake.folder, { recursive: true })
    const dying = dyingAfter(step)
    await publish(store, lake, { keep: 1, through: dying.through }).catch(error =>
      expect(error).toMatchObject({ message: KILLED }),
    )
    shown.push(await checkedPublication(lake))
    isDone = !dying.isDead()
  }
  expect(shown.at(0)).toBe(1)
  expect(shown.at(-1)).toBe(2)
  expect(shown).toEqual(shown.toSorted())
  expect(shown.filter(number => number === 1).length).toBeGreaterThan(5)
})

const KILLED_BEFORE_THE_END = (storage: Storage): Storage => ({
  ...storage,
  writeIfAbsent: async (path, bytes) => {
    if (path.startsWith('publications/')) throw new Error(KILLED)
    return storage.writeIfAbsent(path, bytes)
  },
})

test('a table that many interrupted publications have changed is shown as the complete one has it', async () => {
  const { store, lake } = await published()
  for (let attempt = 0; attempt < 7; attempt += 1) {
    write(store, `attempt ${attempt}`)
    const publishing = publish(store, lake, { keep: 1, through: KILLED_BEFORE_THE_END })
    await expect(publishing).rejects.toThrow(KILLED)
  }
  expect(await checkedPublication(lake)).toBe(1)
  await publish(store, lake, { keep: 1 })
  expect(await checkedPublication(lake)).toBe(9)
})

test('the catalogue looks for a new publication at most every two seconds', async () => {
  const { store, lake } = await published()
  const clock = virtualClock(0)
  const catalogue = catalogueOf(lake, clock)
  const shown = async () => (await catalogue.publication()).properties['publication']
  expect(await shown()).toBe('1')
  write(store, 'second')
  await publish(store, lake)
  await clock.advance(1999)
  expect(await shown()).toBe('1')
  expect(JSON.parse((await catalogue.table('members'))?.metadata ?? '')['current-snapshot-id']).toBe(1)
  await clock.advance(1)
  expect(await shown()).toBe('2')
  expect(JSON.parse((await catalogue.table('members'))?.metadata ?? '')['current-snapshot-id']).toBe(2)
})

test('metadata that a later publication has removed since the look is looked for again', async () => {
  const { store, lake } = await published()
  const catalogue = catalogueOf(lake)
  await catalogue.publication()
  for (let round = 0; round < 8; round += 1) {
    write(store, `round ${round}`)
    await publish(store, lake, { keep: 1 })
  }
  expect((await metadataIn(lake, catalogue, 'members'))['current-snapshot-id']).toBe(9)
})

test('the metadata of a table is read once for each publication, however many ask at the same time', async () => {
  const { lake } = await published()
  const reader = folderReader(lake.folder)
  const reads: string[] = []
  const counted = {
    ...reader,
    read: (path: string) => {
      reads.push(path)
      return reader.read(path)
    },
  }
  const catalogue = createCatalogue(counted, virtualClock(0))
  await Promise.all(Array.from({ length: 9 }, () => catalogue.table('members')))
  await catalogue.table('members')
  expect(reads.filter(path => path.startsWith('members/'))).toEqual([
    'members/metadata/version-hint.text',
    'members/metadata/v1.metadata.json',
  ])
  expect(reads.filter(path => path === 'publications/metadata/v1.metadata.json')).toHaveLength(1)
})

test('a target without a complete publication is an error that says so, until there is one', async () => {
  const store = temporaryStore()
  const lake = await newLake()
  const clock = virtualClock(0)
  const catalogue = catalogueOf(lake, clock)
  await expect(catalogue.publication()).rejects.toMatchObject({ code: 'publish-none' })
  write(store, 'first')
  await expect(publish(store, lake, { through: KILLED_BEFORE_THE_END })).rejects.toThrow(KILLED)
  await clock.advance(2000)
  await expect(catalogue.table('members')).rejects.toMatchObject({ code: 'publish-none' })
  await publish(store, lake)
  await clock.advance(2000)
  expect((await catalogue.publication()).tables).toContain('members')
})

test('a target that does not answer is given up after ten seconds, and asked once', async () => {
  const clock = virtualClock(0)
  let asked = 0
  const silent = {
    read: () => {
      asked += 1
      return new Promise<never>(() => undefined)
    },
    close: () => undefined,
  }
  const catalogue = createCatalogue(silent, clock)
  for (let request = 0; request < 3; request += 1) {
    const answer = expect(catalogue.table('members')).rejects.toMatchObject({ code: 'publish-slow' })
    await clock.advance(10_000)
    await answer
  }
  expect(asked).toBe(1)
})

test('a hint of which storage sends only a half is read once more', async () => {
  const { store, lake } = await published()
  const hint = () => readFileSync(join(lake.folder, 'publications/metadata/version-hint.text'), 'utf8')
  while (Number(hint()) < 20) await publish(store, lake, { keep: 1 })
  const reader = folderReader(lake.folder)
  const read = new Set<string>()
  const catalogue = createCatalogue(
    {
      ...reader,
      async read(path) {
        const bytes = await reader.read(path)
        const isFirst = path.endsWith('version-hint.text') && !read.has(path)
        read.add(path)
        return isFirst ? bytes?.subarray(0, 1) : bytes
      },
    },
    virtualClock(0),
  )
  expect((await catalogue.publication()).tables).toEqual(['members', 'publications', 'teams'])
})

test('a damaged file is named, and none of its text', async () => {
  const { lake } = await published()
  const reader = folderReader(lake.folder)
  const damaged = {
    ...reader,
    read: async (path: string) => (path.endsWith('.json') ? Buffer.from('{"secret":') : reader.read(path)),
  }
  const message = 'publications/metadata/v1.metadata.json in the target of the publications is not valid JSON'
  const publication = createCatalogue(damaged, virtualClock(0)).publication()
  await expect(publication).rejects.toMatchObject({ code: 'publish-damaged', message })
})

test('a reader gets the rows of a table from the answer of the status server alone', async () => {
  const { lake } = await published('Grüße')
  const { ask } = await start({ catalogue: { catalogue: catalogueOf(lake), token: TOKEN } })
  const headers = { authorization: `Bearer ${TOKEN}` }
  const { status, text } = await ask('GET', '/iceberg/v1/namespaces/parley/tables/members', { headers })
  const { metadata } = JSON.parse(text)
  const rows = await icebergRead({ tableUrl: metadata.location, metadata })
  expect([status, rows]).toMatchObject([200, [{ id: 'm', name: 'Grüße' }]])
  const list = await ask('GET', '/iceberg/v1/namespaces/parley/tables', { headers })
  const names = JSON.parse(list.text).identifiers.map(({ name }: { name: string }) => name)
  expect(names).toEqual(['members', 'publications', 'teams'])
  expect(names.every((name: string) => existsSync(join(lake.folder, name)))).toBe(true)
})
