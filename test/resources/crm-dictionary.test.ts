import { describe, expect, test } from 'vitest'
import { isInternal } from '../../src/dictionary/sync-tables.ts'
import { type TemporaryStore, temporaryStore } from '../store/temporary-store.ts'

interface Entry {
  table_name: string
  column_name: string
  type: string
  description: string
  source_field: string | null
}

const NAME = { name: 'name', label: '商談名', type: 'text', is_active: true }
const AMOUNT = { name: 'amount', label: '金額', type: 'currency', is_active: true }
const STAGE = {
  name: 'stage_id',
  label: 'ステージ',
  type: 'relation',
  is_active: true,
  relation: { type: 'MANY_TO_ONE', target_object: 'stage', target_resource: null },
}
const OWNER = {
  name: 'owner_id',
  label: '担当者',
  type: 'relation',
  is_active: true,
  relation: { type: 'MANY_TO_ONE', target_object: null, target_resource: 'members' },
}
const CLOSED = { name: 'is_closed', label: 'Closed', type: 'boolean', is_active: true }
const SIGNED = { name: 'signed_at', label: 'Signed', type: 'datetime', is_active: true }

/** Stores an object's metadata from its detail, and waits for its table. */
async function tell(
  store: TemporaryStore,
  name: string,
  fields: readonly object[],
  label = name,
): Promise<void> {
  store.put('crm_objects', [{ name, label, fields }], { requested: name })
  store.atomically(() => undefined)
  await store.crmTables.finish()
}

const entries = (store: TemporaryStore, table: string) =>
  store.db
    .prepare('SELECT * FROM data_dictionary WHERE table_name = ? ORDER BY position')
    .all(table) as Entry[]

const TABLES = ['crm_deal', 'live_crm_deal', 'labelled_crm_deal']

describe('the dictionary of the typed tables', () => {
  test('the dictionary has every column of the table and its views, by each of its names', async () => {
    const store = temporaryStore()
    await tell(store, 'deal', [NAME, AMOUNT, STAGE, OWNER, CLOSED, SIGNED])
    for (const table of TABLES) {
      const columns = store.column(`SELECT name FROM pragma_table_info('${table}') ORDER BY cid`)
      expect(columns.length).toBeGreaterThan(8)
      expect(
        entries(store, table).map(entry => entry.column_name),
        table,
      ).toEqual(columns)
    }
  })

  test('the dictionary describes each field as the metadata does', async () => {
    const store = temporaryStore()
    await tell(store, 'stage', [NAME])
    await tell(store, 'deal', [NAME, AMOUNT, STAGE, OWNER, CLOSED, SIGNED])
    const told = new Map(
      entries(store, 'labelled_crm_deal').map(
        ({ column_name: name, type, description, source_field: source }) => [
          name,
          { type, description, source },
        ],
      ),
    )
    expect(told.get('商談名')).toEqual({
      type: 'text',
      description: '商談名. The CRM’s type: text.',
      source: 'fields.name',
    })
    expect(told.get('金額')).toMatchObject({
      type: 'any',
      description: expect.stringContaining('lose digits'),
    })
    expect(told.get('ステージ')?.description).toContain('Name of the related row')
    expect(told.get('担当者')?.description).toContain('Name of the related row')
    const plain = new Map(entries(store, 'crm_deal').map(row => [row.column_name, row.description]))
    expect(plain.get('stage_id')).toContain('Points at `crm_stage.id`.')
    expect(plain.get('owner_id')).toContain('Points at `members.id`.')
    expect([told.get('Closed')?.type, told.get('Signed')?.type]).toEqual(['boolean', 'timestamp'])
  })

  test('the dictionary follows the metadata: a new label, a new field, a changed name', async () => {
    const store = temporaryStore()
    await tell(store, 'deal', [NAME, AMOUNT])
    await tell(store, 'deal', [{ ...NAME, label: 'Title' }, CLOSED])
    expect(entries(store, 'crm_deal').map(entry => entry.column_name)).toEqual([
      'id',
      'name',
      'is_closed',
      'created_at',
      'updated_at',
      '_deleted_at',
    ])
    expect(entries(store, 'labelled_crm_deal')[1]).toMatchObject({ column_name: 'Title' })
    expect(store.column("SELECT count(*) FROM data_dictionary WHERE description LIKE '%商談名%'")).toEqual([
      0,
    ])
  })

  test('the dictionary has any name that the CRM’s administrators choose', async () => {
    const store = temporaryStore()
    const names = ['select', 'a"b', "it's", 'Name', 'naMe', '*/ --', 'id', 'é 日本 🎉', 'x'.repeat(300)]
    await tell(
      store,
      'deal',
      names.map(name => ({ name, label: name, type: 'text', is_active: true })),
    )
    for (const table of TABLES) {
      const columns = store.column(`SELECT name FROM pragma_table_info('${table}') ORDER BY cid`)
      expect(entries(store, table).map(entry => entry.column_name)).toEqual(columns)
    }
    const sources = entries(store, 'crm_deal').flatMap(({ source_field: source }) => source ?? [])
    expect(sources).toEqual(expect.arrayContaining(names.map(name => `fields.${name}`)))
  })

  test('the dictionary loses a deleted object, with the labels of its fields', async () => {
    const store = temporaryStore()
    await tell(store, 'deal', [NAME])
    await tell(store, 'offer', [AMOUNT])
    store.db.exec("DELETE FROM crm_objects WHERE name = 'deal'; DELETE FROM crm_fields WHERE object = 'deal'")
    store.atomically(() => undefined)
    await store.crmTables.finish()
    expect(entries(store, 'crm_deal')).toEqual([])
    expect(store.column("SELECT count(*) FROM data_dictionary WHERE description LIKE '%商談名%'")).toEqual([
      0,
    ])
    expect(entries(store, 'crm_offer').length).toBeGreaterThan(0)
    await tell(store, 'deal', [NAME])
    expect(entries(store, 'crm_deal').length).toBeGreaterThan(0)
  })

  test('the dictionary describes every table of the file', async () => {
    const store = temporaryStore()
    await tell(store, 'deal', [NAME, STAGE])
    await tell(store, 'stage', [NAME])
    const names = store.column("SELECT name FROM pragma_table_list WHERE schema = 'main'") as string[]
    const told = new Set(store.column('SELECT DISTINCT table_name FROM data_dictionary'))
    expect(names.filter(name => !isInternal(name) && !told.has(name))).toEqual([])
  })
})
