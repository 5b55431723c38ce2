import { describe, expect, test } from 'vitest'
import { namesWithoutTable, publishedTables } from '../../src/publish/published-tables.ts'
import { type TemporaryStore, temporaryStore } from '../store/temporary-store.ts'
import { metadataOf } from './lake-reader.ts'
import { newLake, publishTo } from './publishing.ts'

/** A warehouse that has read the list of CRM objects to its end, and the records of one of two. */
async function withDeals(): Promise<TemporaryStore> {
  const store = temporaryStore()
  for (const name of ['deal', 'Site visit!'])
    store.put('crm_objects', [{ name, fields: [] }], { requested: name })
  store.put('crm_records', [{ id: 'd', object: 'deal', fields: {} }], { requested: 'deal' })
  await store.crmTables.finish()
  store.exec('DROP TABLE "crm_Site visit!"')
  return store
}

const isRead = (store: TemporaryStore) =>
  store.exec(
    `INSERT INTO sync_resources (resource, first_complete_at) VALUES ('crm_objects', '2026-01-01T00:00:00.000Z')
     ON CONFLICT DO UPDATE SET first_complete_at = excluded.first_complete_at`,
  )

const chosen = (store: TemporaryStore, ...names: string[]) =>
  publishedTables(store.db, names).map(({ read }) => read.name)

describe('a name that no table has', () => {
  test('is refused with the nearest name', async () => {
    const store = await withDeals()
    isRead(store)
    for (const [name, meant] of [
      ['membrs', 'members'],
      ['crm_deel', 'crm_deal'],
      ['crm_recrds', 'crm_records'],
    ] as const)
      expect(() => chosen(store, 'members', name)).toThrow(
        expect.objectContaining({
          code: 'unknown-table',
          message: `Unknown table "${name}"`,
          hint: expect.stringContaining(`Did you mean ${meant}?`),
        }),
      )
  })

  test('is accepted when a CRM object will have that table', async () => {
    const store = await withDeals()
    isRead(store)
    expect(chosen(store, 'CRM_Deal', 'crm_Site visit!')).toEqual(['crm_deal'])
    expect(namesWithoutTable(store.db, ['crm_deal', 'crm_Site visit!'])).toEqual(['crm_Site visit!'])
  })

  test('is accepted with crm_ while the CRM objects have not been read', async () => {
    const store = await withDeals()
    expect(chosen(store, 'crm_lead', 'members')).toEqual(['members'])
    expect(() => chosen(store, 'lead')).toThrow(expect.objectContaining({ code: 'unknown-table' }))
  })
})

test('the table of an object with odd characters is published with its name, also once it is dropped', async () => {
  const store = temporaryStore()
  const lake = await newLake()
  store.put('crm_objects', [{ name: '契約書', fields: [] }], { requested: '契約書' })
  store.put('crm_records', [{ id: 'r', object: '契約書', fields: {} }], { requested: '契約書' })
  await store.crmTables.finish()
  for (const [tables, files] of [
    [undefined, 1],
    [['members'], 0],
  ] as const) {
    const summary = await publishTo(store.path, lake, { tables })
    const found = summary.tables.find(({ table }) => table === 'crm_契約書')
    expect(found).toMatchObject({
      folder: expect.stringMatching(/^crm__-[0-9a-f]{8}$/),
      filesWritten: files,
    })
    const { properties } = await metadataOf(lake, found?.folder ?? '')
    expect(properties['parley.table']).toBe('crm_契約書')
  }
})
