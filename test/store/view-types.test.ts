import { expect, test } from 'vitest'
import { DICTIONARY } from '../../src/dictionary/dictionary.ts'
import { isInternal } from '../../src/dictionary/sync-tables.ts'
import { readCrmTables } from '../../src/store/crm/dictionary.ts'
import { type TemporaryStore, temporaryStore } from './temporary-store.ts'

/** What a view of SQLite declares for a column, by the kind that the dictionary says. */
const DECLARED = {
  text: 'TEXT',
  timestamp: 'TEXT',
  date: 'TEXT',
  json: 'TEXT',
  integer: 'INT',
  boolean: 'INT',
  real: 'REAL',
  any: 'BLOB',
} as const

/** Tables for reports declare these, and views over them have the same. */
const OF_REPORTS: Partial<Record<keyof typeof DECLARED, string>> = {
  date: 'DATE',
  timestamp: 'TIMESTAMP',
  boolean: 'BOOLEAN',
}

interface ViewColumn {
  view: string
  column: string
  type: string
}

const columnsOfViews = ({ db }: TemporaryStore) =>
  db
    .prepare<unknown[], ViewColumn>(
      `SELECT v.name AS view, c.name AS column, c.type FROM sqlite_master v JOIN pragma_table_info(v.name) c
       WHERE v.type = 'view'`,
    )
    .all()
    .filter(({ view }) => !isInternal(view))

/** Columns of views whose declared type is not that of their kind. */
function undeclared(store: TemporaryStore): string[] {
  const described = [...DICTIONARY, ...readCrmTables(sql => store.db.prepare(sql))]
  const kinds = new Map(
    described.flatMap(({ name, columns }) => columns.map(column => [`${name}.${column.name}`, column.kind])),
  )
  return columnsOfViews(store).flatMap(({ view, column, type }) => {
    const kind = kinds.get(`${view}.${column}`)
    return kind !== undefined && (type.startsWith(DECLARED[kind]) || type === OF_REPORTS[kind])
      ? []
      : [`${view}.${column}: ${kind}, ${type}`]
  })
}

test('every column of every view has a declared type, before and after the fields of CRM objects are known', async () => {
  const store = temporaryStore()
  expect(undeclared(store)).toEqual([])
  const relation = (name: string, relation: object) => ({ name, label: name, type: 'RELATION', relation })
  const field = (name: string, type: string) => ({ name, label: name, type })
  const fields = [
    relation('stage_id', { target_object: 'stage' }),
    relation('owner_id', { target_resource: 'members' }),
    ...['TEXT', 'NUMBER', 'BOOLEAN', 'DATE', 'DATETIME'].map(type => field(type.toLowerCase(), type)),
  ]
  store.put('crm_objects', [{ name: 'deal', label: 'Deal', fields }], { requested: 'deal' })
  store.put('crm_objects', [{ name: 'stage', label: 'Stage', fields: [field('name', 'TEXT')] }], {
    requested: 'stage',
  })
  await store.crmTables.finish()
  const names = new Set(columnsOfViews(store).map(({ view }) => view))
  expect([...names]).toEqual(expect.arrayContaining(['labelled_crm_deal', 'live_crm_deal']))
  expect(undeclared(store)).toEqual([])
})

test('a time of a word that is no number is NULL, and the word stays', () => {
  const store = temporaryStore()
  store.db.exec(`
    INSERT INTO meetings (id, _first_seen_at, _synced_at) VALUES ('m', '2026-01-01T00:00:00.000Z', '2026-01-01T00:00:00.000Z');
    INSERT INTO transcript_entries (meeting_id, position, text, words)
      VALUES ('m', 0, 'a b', '[["a", 1.5, 2], ["b", "later", null], [3, 4, 5]]')`)
  expect(store.all('SELECT text, start_time, end_time FROM transcript_words ORDER BY position')).toEqual([
    { text: 'a', start_time: 1.5, end_time: 2 },
    { text: 'b', start_time: null, end_time: null },
    { text: '3', start_time: 4, end_time: 5 },
  ])
})
