import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { asyncBufferFromFile, parquetMetadataAsync } from 'hyparquet'
import { expect, test } from 'vitest'
import { type TemporaryStore, temporaryStore } from '../store/temporary-store.ts'
import { createMarker, markedWorld, markersIn } from '../store/unique-texts.ts'
import { objectsIn } from './lake-reader.ts'
import { filesIn, type Lake, publishTo } from './publishing.ts'
import { emptyLake, verify } from './verify/verifying.ts'

const NOW = '2026-03-04T05:06:07.123Z'

/** Every marker in the warehouse, in whatever table. */
function markersOf(store: TemporaryStore): Set<string> {
  const tables = store.column(
    "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'",
  )
  const rows = tables.map(table =>
    store.all(`SELECT * FROM "${table}"`).map(row => Object.values(row).map(String)),
  )
  return markersIn(JSON.stringify(rows))
}

/** Every marker in the files of a target: in their bytes, and in the values and statistics of data files. */
async function markersInFiles({ folder }: Lake): Promise<[marker: string, file: string][]> {
  const found: [string, string][] = []
  for (const name of filesIn(folder)) {
    const path = join(folder, name)
    const texts = [readFileSync(path, 'latin1')]
    if (name.endsWith('.parquet')) {
      const file = await asyncBufferFromFile(path)
      const shown = [await parquetMetadataAsync(file), await objectsIn(file)]
      texts.push(JSON.stringify(shown, (_, value) => (typeof value === 'bigint' ? String(value) : value)))
    }
    for (const marker of markersIn(texts.join(' '))) found.push([marker, name])
  }
  return found
}

/** Rows of every table, typed tables of CRM objects, and rejected items. No two texts are equal. */
async function filledStore() {
  const store = temporaryStore()
  const mark = createMarker()
  const world = markedWorld(store, mark)
  world.write(NOW)
  world.reject(NOW)
  const fields = ['name', 'title'].map(name => ({ name, label: name, type: 'TEXT' }))
  store.put('crm_objects', [{ name: 'deal', label: 'deal', fields }], { requested: 'deal', now: NOW })
  const records = ['d1', 'd2'].map(id => ({
    id,
    object: 'deal',
    fields: { name: mark('x'), title: mark('x') },
  }))
  store.put('crm_records', records, { requested: 'deal', now: NOW })
  await store.crmTables.finish()
  return { store, rows: [...world.rows, { table: 'crm_records', key: ['deal', 'd1'] }] }
}

test('no text that was purged is anywhere in a target after the next publication, and verify agrees before and after', async () => {
  const { store, rows } = await filledStore()
  const lake = emptyLake()
  await publishTo(store.path, lake, { keep: 9 })
  const before = markersOf(store)
  const labels = markersIn(JSON.stringify(store.column('SELECT label FROM crm_fields')))
  store.atomically(() => {
    for (const { table, key } of rows) store.tombstone(table, [key], NOW)
    store.purger.purge({ before: '9999', limit: 10_000, now: new Date().toISOString() })
  })
  const left = markersOf(store)
  // Descriptions of columns have labels of CRM fields, which are not of people, as long as earlier metadata has them.
  const isDescription = (marker: string, file: string) =>
    labels.has(marker) && /^crm_[^/]+\/metadata\//.test(file)
  const purgedTexts = async () =>
    (await markersInFiles(lake)).filter(
      ([marker, file]) => before.has(marker) && !left.has(marker) && !isDescription(marker, file),
    )

  const published = await purgedTexts()
  const tables = new Set(published.map(([, file]) => file.split('/')[0]))
  expect(tables).toContain('crm_deal')
  expect(tables).toContain('sync_rejects')
  expect(published.length).toBeGreaterThan(100)
  const { faults } = await verify(lake, store.path)
  expect(faults.map(({ kind }) => kind)).not.toContain('values')
  // The texts of CRM fields in the dictionary are not of people.
  tables.delete('data_dictionary')
  expect(new Set(faults.map(({ table }) => table))).toEqual(tables)

  await publishTo(store.path, lake, { keep: 9 })
  expect(await purgedTexts()).toEqual([])
  expect(await verify(lake, store.path)).toMatchObject({ faults: [] })
})
