import { expect, test } from 'vitest'
import { type TemporaryStore, temporaryStore } from '../store/temporary-store.ts'
import { auditLake } from './lake-audit.ts'
import { fieldsOf, metadataOf, publicationsIn, rowsOf } from './lake-reader.ts'
import { type Lake, newLake, publishTo } from './publishing.ts'

const NOW = '2026-06-30T12:00:00.000Z'

interface Field {
  name: string
  type: string
}

/** Sets the fields of the CRM object `deal`, and the values of its only record. */
async function setDeal(store: TemporaryStore, fields: readonly Field[], values: object): Promise<void> {
  store.put('crm_objects', [{ name: 'deal', label: 'Deal', fields }], { requested: 'deal', now: NOW })
  store.put('crm_records', [{ id: 'r', object: 'deal', fields: values }], { requested: 'deal', now: NOW })
  await store.crmTables.finish()
}

const idsIn = async (lake: Lake) =>
  new Map(fieldsOf(await metadataOf(lake, 'crm_deal')).map(({ name, id }) => [name, id]))

test('a new column gets a new field id, and the other columns keep theirs', async () => {
  const store = temporaryStore()
  const lake = await newLake()
  await setDeal(store, [{ name: 'title', type: 'text' }], { title: 'T' })
  await publishTo(store.path, lake)
  const before = await idsIn(lake)
  await setDeal(
    store,
    [
      { name: 'Größe "neu"', type: 'text' },
      { name: 'title', type: 'text' },
    ],
    {
      title: 'T',
      'Größe "neu"': 'g',
    },
  )
  await publishTo(store.path, lake)
  const after = await idsIn(lake)
  expect(after).toEqual(new Map([...before, ['Größe "neu"', Math.max(...before.values()) + 1]]))
  expect(await rowsOf(lake, 'crm_deal')).toMatchObject([{ title: 'T', 'Größe "neu"': 'g' }])
  const [first] = await publicationsIn(lake)
  const earlier = await rowsOf(lake, 'crm_deal', first?.snapshots['crm_deal'])
  expect(earlier).toMatchObject([{ title: 'T' }])
  expect(earlier[0]).not.toHaveProperty('Größe "neu"')
  await auditLake(lake)
})

test('a column whose type changes gets a new field id, and gets its earlier one with its earlier type', async () => {
  const store = temporaryStore()
  const lake = await newLake()
  const ids: (number | undefined)[] = []
  for (const [type, value] of [
    ['text', 'large'],
    ['number', 12],
    ['text', 'small'],
  ] as const) {
    await setDeal(store, [{ name: 'size', type }], { size: value })
    await publishTo(store.path, lake)
    ids.push((await idsIn(lake)).get('size'))
    expect(await rowsOf(lake, 'crm_deal')).toMatchObject([{ size: value }])
  }
  expect(ids[1]).not.toBe(ids[0])
  expect(ids[2]).toBe(ids[0])
  await auditLake(lake)
})

test('a field with a name that an engine reserves is published with a number, and every value is there', async () => {
  const store = temporaryStore()
  const lake = await newLake()
  const fields = ['_file', '_DELETED', '_deleted_2', '$path', '$partition', 'title', '_pos_2']
  const values = Object.fromEntries(fields.map(name => [name, `of ${name}`]))
  await setDeal(
    store,
    fields.map(name => ({ name, type: 'text' })),
    values,
  )
  await publishTo(store.path, lake)
  const [row] = await rowsOf(lake, 'crm_deal')
  expect(row).toMatchObject({
    _file_2: 'of _file',
    _DELETED_3: 'of _DELETED',
    _deleted_2: 'of _deleted_2',
    $path_2: 'of $path',
    $partition_2: 'of $partition',
    title: 'of title',
    _pos_2: 'of _pos_2',
  })
  expect(Object.keys(row ?? {}).filter(name => fields.includes(name))).toEqual([
    '_deleted_2',
    'title',
    '_pos_2',
  ])
  await auditLake(lake)
})

test('a column that is removed is gone from the schema', async () => {
  const store = temporaryStore()
  const lake = await newLake()
  await setDeal(store, [{ name: 'title', type: 'text' }], { title: 'T' })
  await publishTo(store.path, lake)
  await setDeal(store, [], {})
  await publishTo(store.path, lake)
  expect((await idsIn(lake)).has('title')).toBe(false)
  expect(await rowsOf(lake, 'crm_deal')).toMatchObject([{ id: 'r' }])
  await auditLake(lake)
})

test('the table of a deleted CRM object has no rows, and its files go with the publications that show them', async () => {
  const store = temporaryStore()
  const lake = await newLake()
  await setDeal(store, [{ name: 'title', type: 'text' }], { title: 'T' })
  await publishTo(store.path, lake, { keep: 2 })
  const ids = await idsIn(lake)
  store.exec(
    "DROP TABLE crm_deal; UPDATE crm_objects SET table_name = NULL, _deleted_at = '2026-07-01T00:00:00.000Z'",
  )
  await publishTo(store.path, lake, { keep: 2 })
  expect(await rowsOf(lake, 'crm_deal')).toEqual([])
  const [first, second] = await publicationsIn(lake)
  expect(second?.snapshots['crm_deal']).toBe(2)
  expect(await rowsOf(lake, 'crm_deal', first?.snapshots['crm_deal'])).toMatchObject([{ title: 'T' }])
  await auditLake(lake)
  await publishTo(store.path, lake, { keep: 2 })
  const { snapshots } = await metadataOf(lake, 'crm_deal')
  expect(snapshots.map(snapshot => snapshot['snapshot-id'])).toEqual([2])
  await auditLake(lake)
  expect(await idsIn(lake)).toEqual(ids)
})

test('the table of a CRM object that comes back continues with its field ids', async () => {
  const store = temporaryStore()
  const lake = await newLake()
  const fields = [{ name: 'title', type: 'text' }]
  await setDeal(store, fields, { title: 'T' })
  await publishTo(store.path, lake)
  const { 'table-uuid': uuid } = await metadataOf(lake, 'crm_deal')
  const ids = await idsIn(lake)
  store.exec('ALTER TABLE crm_deal RENAME TO hidden; UPDATE crm_objects SET table_name = NULL')
  await publishTo(store.path, lake)
  expect(await rowsOf(lake, 'crm_deal')).toEqual([])
  store.exec("ALTER TABLE hidden RENAME TO crm_deal; UPDATE crm_objects SET table_name = 'crm_deal'")
  await publishTo(store.path, lake)
  expect(await rowsOf(lake, 'crm_deal')).toMatchObject([{ title: 'T' }])
  expect(await idsIn(lake)).toEqual(ids)
  expect((await metadataOf(lake, 'crm_deal'))['table-uuid']).toBe(uuid)
  await auditLake(lake)
})
