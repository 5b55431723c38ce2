import { expect, test } from 'vitest'
import { dialectOf } from '../../../src/publish/clickhouse/dialect.ts'
import { layoutOf } from '../../../src/publish/clickhouse/layout.ts'
import type { DatabasePlace, ViewToCreate } from '../../../src/publish/clickhouse/statements.ts'
import { allViews } from '../../../src/publish/clickhouse/views.ts'
import { publishedTables } from '../../../src/publish/tables.ts'
import { readCrmObjects } from '../../../src/store/views/fill-dictionary.ts'
import { type TemporaryStore, temporaryStore } from '../../store/temporary-store.ts'

const ALONE: DatabasePlace = { database: 'lake', cluster: undefined, isReplicated: false }
const MODERN = dialectOf('26.7')

/** With a deal that points at a stage and at a member. */
async function withDeals(): Promise<TemporaryStore> {
  const store = temporaryStore()
  const relation = (target: object) => ({ relation: { type: 'MANY_TO_ONE', ...target } })
  const fields = {
    stage: [{ name: 'name', label: 'Name', type: 'TEXT' }],
    deal: [
      { name: 'amount', label: 'Amount in $', type: 'NUMBER' },
      { name: 'stage', label: 'Stage', type: 'TEXT', ...relation({ target_object: 'stage' }) },
      { name: 'owner', label: 'Owner', type: 'TEXT', ...relation({ target_resource: 'members' }) },
    ],
  }
  for (const [name, of] of Object.entries(fields)) {
    store.put('crm_objects', [{ name, label: name, fields: of }], { requested: name })
    store.put('crm_records', [{ id: name, object: name, fields: {} }], { requested: name })
  }
  await store.crmTables.finish()
  return store
}

function viewsOf({ db }: TemporaryStore, names?: readonly string[]): ReadonlyMap<string, ViewToCreate> {
  const objects = new Map(readCrmObjects(sql => db.prepare(sql)).map(object => [object.table, object]))
  const tables = publishedTables(db, names).map(table => ({
    table,
    layout: layoutOf(table, MODERN, ALONE),
    earlier: [],
    object: objects.get(table.read.name),
  }))
  return new Map(allViews(ALONE, MODERN, tables).map(view => [view.name, view]))
}

test('a typed table has a live view and a labelled one, whose columns have the types of the table and comments', async () => {
  const views = viewsOf(await withDeals())
  const columns = (name: string) => views.get(name)?.columns.map(column => [column.name, column.type])
  expect(columns('live_crm_deal')).toContainEqual(['amount', 'Nullable(Float64)'])
  expect(columns('labelled_crm_deal')).toEqual([
    ['id', 'Nullable(String)'],
    ['Amount in $', 'Nullable(Float64)'],
    ['Stage', 'Nullable(String)'],
    ['Owner', 'Nullable(String)'],
    ['created_at', "Nullable(DateTime64(6, 'UTC'))"],
    ['updated_at', "Nullable(DateTime64(6, 'UTC'))"],
  ])
  for (const name of ['live_crm_deal', 'labelled_crm_deal'])
    for (const { doc } of views.get(name)?.columns ?? []) expect(doc).not.toBe('')
  expect([...views.keys()].indexOf('labelled_crm_deal')).toBeGreaterThan([...views.keys()].indexOf('members'))
})

test('names of related rows are looked up in the tables that are published', async () => {
  const store = await withDeals()
  const labelled = (names?: readonly string[]) => viewsOf(store, names).get('labelled_crm_deal')?.select ?? ''
  const all = labelled()
  expect(all).toContain(
    'if(isNull(t.`owner`), NULL, transform(assumeNotNull(t.`owner`), (SELECT arrayConcat(',
  )
  expect(all).toContain('FROM `lake`.`members`')
  expect(all).toContain('FROM `lake`.`crm_stage`')
  const few = labelled(['crm_deal', 'crm_stage'])
  expect(few).toContain('t.`owner` AS `Owner`')
  expect(few).toContain('FROM `lake`.`crm_stage`')
  expect(few).not.toContain('members')
  expect(labelled(['crm_deal'])).toContain('t.`stage` AS `Stage`')
})

test('a live view of rows whose owner is not published does not exist', () => {
  const names = (...tables: string[]) => [...viewsOf(temporaryStore(), tables).keys()]
  expect(names('transcript_entries')).toEqual(['transcript_entries', 'publications'])
  expect(names('transcript_entries', 'meetings')).toEqual([
    'transcript_entries',
    'meetings',
    'publications',
    'live_transcript_entries',
    'live_meetings',
  ])
})
