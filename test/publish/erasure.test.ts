import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { asyncBufferFromFile } from 'hyparquet'
import { expect, test } from 'vitest'
import { temporaryStore } from '../store/temporary-store.ts'
import { dyingAfter, KILLED } from './dying-storage.ts'
import { auditLake } from './lake-audit.ts'
import { objectsIn, rowsOf } from './lake-reader.ts'
import { filesIn, type Lake, newLake, publishTo } from './publishing.ts'
import { verify } from './verify/verifying.ts'

const NOW = '2026-06-30T12:00:00.000Z'
const WORD = 'Rumpelstilzchen'

/** The files that have a word in their bytes, or in a value. */
async function filesWith({ folder }: Lake, word: string): Promise<string[]> {
  const found: string[] = []
  for (const name of filesIn(folder)) {
    const place = join(folder, name)
    const values = name.endsWith('.parquet') ? await objectsIn(await asyncBufferFromFile(place)) : []
    const isInside = values.some(row => Object.values(row).some(value => String(value).includes(word)))
    if (isInside || readFileSync(place).includes(word)) found.push(name)
  }
  return found
}

/** A published member whose name was the word, then another text, and who was deleted and purged since. */
async function purged(keep: number) {
  const store = temporaryStore()
  const lake = await newLake()
  for (const name of [WORD, 'other']) {
    store.put('members', [{ id: 'm', name, email: `${name}@x.example` }], { now: NOW })
    store.put('teams', [{ id: 't', name, member_ids: [] }], { now: NOW })
    await publishTo(store.path, lake, { keep })
  }
  store.atomically(() => {
    store.tombstone('members', [['m']], NOW)
    store.purger.purge({ before: '9999', limit: 1000, now: NOW })
  })
  return { store, lake }
}

test('purged text is in no file after the next publication, whatever --keep says, also of tables that did not change', async () => {
  const { store, lake } = await purged(9)
  expect((await filesWith(lake, WORD)).length).toBeGreaterThanOrEqual(2)
  await publishTo(store.path, lake, { keep: 9 })
  expect(await filesWith(lake, WORD)).toEqual([])
  expect(await rowsOf(lake, 'members')).toMatchObject([{ id: 'm', name: null }])
  await auditLake(lake)
  store.put('teams', [{ id: 't', name: 'third', member_ids: [] }], { now: NOW })
  await publishTo(store.path, lake, { keep: 9 })
  expect(await rowsOf(lake, 'teams', 2)).toMatchObject([{ name: 'other' }])
})

test('purged text is in no file after the publication that follows an interrupted one', async () => {
  const { store, lake } = await purged(9)
  for (const step of [3, 9, 30, 90, 150]) {
    const { through } = dyingAfter(step)
    await publishTo(store.path, lake, { keep: 9, through }).catch(error =>
      expect(error).toMatchObject({ message: KILLED }),
    )
  }
  await publishTo(store.path, lake, { keep: 9 })
  expect(await filesWith(lake, WORD)).toEqual([])
  await auditLake(lake)
})

/** More persons than a file has, and the one whose address names the second file. */
async function publishedPersons() {
  const store = temporaryStore()
  const lake = await newLake()
  store.exec(`INSERT INTO people (person_id, party_id, side)
    WITH RECURSIVE n (i) AS (SELECT 10001 UNION ALL SELECT i + 1 FROM n WHERE i < 20010)
    SELECT printf('p%d@x.example', i), printf('p%d', i), 'theirs' FROM n`)
  await publishTo(store.path, lake, { tables: ['people'] })
  return { store, lake, address: 'p20001@x.example' }
}

test('a purged address that named a part is in no file after the next publication, nor in earlier metadata', async () => {
  const { store, lake, address } = await publishedPersons()
  expect(await filesWith(lake, address)).toContain('people/metadata/v1.metadata.json')
  for (const deleted of ['p10005@x.example', address]) {
    store.exec(`DELETE FROM people WHERE person_id = '${deleted}'`)
    await publishTo(store.path, lake, { tables: ['people'] })
  }
  expect(await filesWith(lake, address)).toContain('people/metadata/v2.metadata.json')
  store.atomically(() => store.purger.notePurged(NOW))
  const named = { table: 'people', kind: 'erased', part: null }
  expect((await verify(lake, store.path)).faults).toMatchObject([named])
  await publishTo(store.path, lake, { tables: ['people'] })
  expect(await filesWith(lake, address)).toEqual([])
  expect((await verify(lake, store.path)).faults).toEqual([])
  await auditLake(lake)
})

test('an address that an earlier version left in the name of a part goes with the next publication', async () => {
  const { store, lake, address } = await publishedPersons()
  store.exec(`DELETE FROM people WHERE person_id = '${address}'`)
  store.atomically(() => store.purger.notePurged(NOW))
  await publishTo(store.path, lake, { tables: ['people'] })
  for (const name of filesIn(lake.folder).filter(path => path.endsWith('.metadata.json'))) {
    const place = join(lake.folder, name)
    const text = readFileSync(place, 'utf8').replaceAll('p20002@x.example', address)
    writeFileSync(
      place,
      text.replace('parley.erased-at', 'parley.purged-at').replace('last-compared', 'compared'),
    )
  }
  expect((await verify(lake, store.path)).faults).toMatchObject([{ table: 'people', kind: 'erased' }])
  await publishTo(store.path, lake, { tables: ['people'] })
  expect(await filesWith(lake, address)).toEqual([])
  expect((await verify(lake, store.path)).faults).toEqual([])
})
