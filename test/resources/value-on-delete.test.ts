import { describe, expect, test } from 'vitest'
import { loadSettings } from '../../src/config/load-settings.ts'
import { CONVERSATION_VIEWS, PEOPLE_TABLES } from '../../src/dictionary/conversation-tables.ts'
import type { DescribedColumn, DescribedTable } from '../../src/dictionary/described-table.ts'
import { DICTIONARY } from '../../src/dictionary/dictionary.ts'
import { readCrmTables } from '../../src/store/crm/dictionary.ts'
import { type TemporaryStore, temporaryStore } from '../store/temporary-store.ts'
import { createMarker, markedWorld } from '../store/unique-texts.ts'
import { reportsOf } from '../support/reports-of.ts'

/** What `data_dictionary.value_on_delete` says is what a deletion and a purge do. */

const FIRST_READ = '2025-12-01T00:00:00.000Z'
const WRITTEN = '2026-01-01T00:00:00.000Z'
const DELETED_AT = '2026-01-10T00:00:00.000Z'
const LATER = '2026-02-10T00:00:00.000Z'

type Row = Readonly<Record<string, unknown>>
/** The rows of each table by their keys. */
type Contents = ReadonlyMap<string, ReadonlyMap<string, Row>>

const keyOf = ({ columns }: DescribedTable) => columns.filter(({ isKey }) => isKey).map(({ name }) => name)

function contents(store: TemporaryStore, tables: readonly DescribedTable[]): Contents {
  return new Map(
    tables.map(table => {
      const key = keyOf(table)
      const rows = store.all(`SELECT * FROM "${table.name}"`)
      return [table.name, new Map(rows.map(row => [JSON.stringify(key.map(name => row[name])), row]))]
    }),
  )
}

function purge(store: TemporaryStore): void {
  store.atomically(() => store.purger.purge({ before: LATER, limit: 10_000, now: LATER }))
}

/** Tables whose rows can be deleted at the source, and can be told apart. */
const deletable = (tables: readonly DescribedTable[]) =>
  tables.filter(table => keyOf(table).length > 0 && table.columns.some(({ onDelete }) => onDelete !== null))

interface Moments {
  before: Contents
  deleted: Contents
  purged: Contents
}

/** What a column holds at a moment: a value, or `gone` with its row. */
type Held = { value: unknown } | 'gone'

const isMet = (
  rule: DescribedColumn['onDelete'],
  [before, deleted, purged]: readonly [Held, Held, Held],
): boolean => {
  const same = (one: Held, other: Held) => JSON.stringify(one) === JSON.stringify(other)
  const isNull = (held: Held) => held !== 'gone' && held.value === null
  switch (rule) {
    case 'row removed':
      return deleted === 'gone' && purged === 'gone'
    case 'row purged':
      return same(before, deleted) && purged === 'gone'
    case 'kept':
      return same(before, deleted) && same(before, purged)
    case 'purged':
      return same(before, deleted) && isNull(purged)
    case 'reset':
      return same(before, deleted) && purged !== 'gone' && !isNull(purged) && !same(before, purged)
    case 'set':
      // A version of a deal that had ended before keeps its end.
      return (
        (isNull(before) ? deleted !== 'gone' && !isNull(deleted) : same(before, deleted)) &&
        same(deleted, purged)
      )
    case 'recomputed':
      return purged !== 'gone'
    case null:
      return true
  }
}

/** The columns of the rows that were deleted which do not hold what is said. */
function wrong(tables: readonly DescribedTable[], { before, deleted, purged }: Moments): string[] {
  return tables.flatMap(({ name, columns }) =>
    [...(before.get(name) ?? [])].flatMap(([key]) =>
      columns.flatMap(({ name: column, onDelete }) => {
        const at = (moment: Contents): Held => {
          const row = moment.get(name)?.get(key)
          return row === undefined ? 'gone' : { value: row[column] }
        }
        const held = [at(before), at(deleted), at(purged)] as const
        return isMet(onDelete, held)
          ? []
          : [`${name}.${column} is not "${onDelete}": ${JSON.stringify(held)}`]
      }),
    ),
  )
}

/** Columns that a purge empties, and which are empty before it in every row. */
function neverFilled(tables: readonly DescribedTable[], before: Contents): string[] {
  return tables.flatMap(({ name, columns }) => {
    const rows = [...(before.get(name)?.values() ?? [])]
    const isEmpty = (column: string) => rows.every(row => row[column] === null)
    return columns.flatMap(({ name: column, onDelete }) =>
      rows.length > 0 && (onDelete === 'purged' || onDelete === 'reset') && isEmpty(column)
        ? `${name}.${column}`
        : [],
    )
  })
}

describe('the value on delete', () => {
  test('of every table of a resource and its view of live rows is what a deletion and a purge leave', () => {
    const store = temporaryStore()
    const world = markedWorld(store, createMarker())
    world.write(WRITTEN)
    const keyIn = (table: string) => world.rows.find(row => row.table === table)?.key ?? []
    const [object, record] = keyIn('crm_records')
    store.db
      .prepare('INSERT INTO collection_meetings (collection_id, meeting_id) VALUES (?, ?)')
      .run(...keyIn('collections'), world.meeting)
    store.db
      .prepare(
        'INSERT INTO crm_record_links (object, record_id, related_object, related_id) VALUES (?, ?, ?, ?)',
      )
      .run(object, record, 'company', 'c')
    const tables = deletable(DICTIONARY).filter(({ area }) => area !== 'reports')
    const before = contents(store, tables)
    // Otherwise the test would not cover these tables.
    expect(tables.flatMap(({ name }) => (before.get(name)?.size === 0 ? name : []))).toEqual(EMPTY)
    store.atomically(() => {
      // All copies of an e-mail at once: it would show the others otherwise.
      for (const table of new Set(world.rows.map(row => row.table))) {
        const keys = world.rows.flatMap(row => (row.table === table ? [row.key] : []))
        store.tombstone(table, keys, DELETED_AT)
      }
    })
    const deleted = contents(store, tables)
    purge(store)
    expect(wrong(tables, { before, deleted, purged: contents(store, tables) })).toEqual([])
    expect(neverFilled(tables, before)).toEqual(UNFILLED)
  })

  const isAboutConversations = (name: string) =>
    [...PEOPLE_TABLES, ...CONVERSATION_VIEWS].some(table => table.name === name)

  test('of the tables of CRM objects, and of those for reports, is what a deletion and a purge leave', async () => {
    const store = temporaryStore()
    const text = (name: string) => ({ name, label: name, type: 'TEXT', is_active: true })
    const relation = (name: string, target: string) => ({
      ...text(name),
      ...{
        type: 'RELATION',
        relation: { type: 'MANY_TO_ONE', target_object: target, target_resource: null },
      },
    })
    const put = (name: string, fields: readonly object[], id: string, values: Row, now = WRITTEN) => {
      store.put('crm_objects', [{ name, label: name, fields, is_custom: false }], {
        requested: name,
        now,
      })
      const record = { id, object: name, fields: values, created_at: now, updated_at: now }
      store.put('crm_records', [record], { requested: name, now })
    }
    const stage = relation('stage_id', 'stage')
    const pipeline = relation('pipeline_id', 'pipeline')
    put('pipeline', [text('name')], 'p', { name: 'Renewals' })
    put('stage', [text('name'), pipeline], 's', { name: 'Won', pipeline_id: 'p' })
    put('company', [text('name')], 'c', { name: 'Acme' })
    put('contact', [text('name')], 'k', { name: 'Jordan' })
    put('deal', [text('name'), stage, pipeline], 'd', { name: 'Big', pipeline_id: 'p' }, FIRST_READ)
    put('deal', [text('name'), stage, pipeline], 'd', { name: 'Big', stage_id: 's', pipeline_id: 'p' })
    store.put('members', [{ id: 'mem', name: 'Aiko Tanaka', email: 'aiko@example.com' }], { now: WRITTEN })
    store.put('teams', [{ id: 'team', name: 'Sales', member_ids: ['mem'] }], { now: WRITTEN })
    const { settings } = loadSettings({ flags: {}, env: {}, cwd: '/', requireApi: false })
    const reports = reportsOf({ ...store, now: LATER })
    const update = async () => {
      await store.crmTables.finish()
      await reports.update(settings)
    }
    await update()
    const described = [
      ...DICTIONARY.filter(({ area, name }) => area === 'reports' && !isAboutConversations(name)),
      ...readCrmTables(store.prepare),
    ]
    const tables = deletable(described)
    const before = contents(store, tables)
    expect(tables.flatMap(({ name }) => (before.get(name)?.size === 0 ? name : []))).toEqual([])
    store.atomically(() => {
      const all = ['pipeline.p', 'stage.s', 'company.c', 'contact.k', 'deal.d'].map(each => each.split('.'))
      store.tombstone('crm_records', all, DELETED_AT)
      store.tombstone('members', [['mem']], DELETED_AT)
      store.tombstone('teams', [['team']], DELETED_AT)
    })
    await update()
    const deleted = contents(store, tables)
    purge(store)
    await update()
    expect(wrong(tables, { before, deleted, purged: contents(store, tables) })).toEqual([])
  })

  test('is said of every column of a table whose rows can be deleted', () => {
    const store = temporaryStore()
    const silent = store.column(
      `SELECT table_name || '.' || column_name FROM data_dictionary d WHERE value_on_delete IS NULL
       AND EXISTS (SELECT 1 FROM data_dictionary o WHERE o.table_name = d.table_name AND o.value_on_delete IS NOT NULL)`,
    )
    expect(silent).toEqual([])
    expect(
      store.column("SELECT count(*) FROM data_dictionary WHERE value_on_delete = 'purged'")[0],
    ).toBeGreaterThan(20)
  })
})

/** The API has no other fields here. */
const UNFILLED = ['team_members._extra', 'messages._extra', 'integrations._extra']

/** Nothing deletes entries of the access log, and the records here are no deals. */
const EMPTY = ['access_logs', 'deal_stage_history', 'live_access_logs']
