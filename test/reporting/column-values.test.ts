import { expect, test } from 'vitest'
import { TABLES } from '../../src/catalog/catalog.ts'
import { loadSettings } from '../../src/config/load-settings.ts'
import { ENUMERATED } from '../../src/dictionary/column-values.ts'
import { temporaryStore } from '../store/temporary-store.ts'
import { reportsOf } from '../support/reports-of.ts'

const HOUR = 3_600_000
const DELETED_AT = '2026-01-10T00:00:00.000Z'

/** A warehouse whose reports are brought up to date at an hour of a clock. */
function warehouse() {
  const store = temporaryStore()
  let now = Date.parse('2026-01-01T00:00:00.000Z')
  const reports = reportsOf({ ...store, now: () => now, elapsed: () => now })
  const { settings } = loadSettings({ flags: {}, env: {}, cwd: '/', requireApi: false })
  return {
    store,
    activities: (rows: Readonly<Record<string, string | null>>) =>
      store.put(
        'activities',
        Object.entries(rows).map(([id, type]) => ({ id, type, source_type: 'MEETING', source_id: id })),
      ),
    update: async (hours = 0) => {
      now += hours * HOUR
      await reports.update(settings)
    },
    values: (table = 'activities', column = 'type') =>
      store
        .all(
          `SELECT value, "rows" FROM column_values WHERE table_name = '${table}' AND column_name = '${column}' ORDER BY value`,
        )
        .map(({ value, rows }) => [value, rows]),
  }
}

test('each value is there with the number of its live rows, and goes with the last of them', async () => {
  const { store, activities, update, values } = warehouse()
  activities({ a: 'call', b: 'mail', c: 'mail', d: null })
  await update()
  expect(values()).toEqual([
    ['call', 1],
    ['mail', 2],
  ])
  store.atomically(() => store.tombstone('activities', [['a'], ['b']], DELETED_AT))
  await update(1)
  expect(values()).toEqual([['mail', 1]])
  expect(store.column("SELECT 1 FROM column_values WHERE value = 'call'")).toEqual([])
})

test('rows that belong to a deleted row do not count', async () => {
  const { store, update, values } = warehouse()
  const meeting = (meeting_id: string, object_type: string) => ({
    meeting_id,
    related_objects: [{ object_id: 'x', object_type }],
  })
  store.put('meetings', [meeting('m', 'company'), meeting('n', 'deal')])
  store.exec("UPDATE meetings SET access = 'open'")
  await update()
  expect(values('meeting_related_objects', 'object_type')).toEqual([
    ['company', 1],
    ['deal', 1],
  ])
  store.atomically(() => store.tombstone('meetings', [['m']], DELETED_AT))
  await update(1)
  expect(values('meeting_related_objects', 'object_type')).toEqual([['deal', 1]])
})

test('a table is counted again at most once an hour, and only when it has changed', async () => {
  const { store, activities, update, values } = warehouse()
  activities({ a: 'call' })
  await update()
  activities({ b: 'mail' })
  await update(0.9)
  expect(values()).toEqual([['call', 1]])
  await update(0.1)
  expect(values()).toEqual([
    ['call', 1],
    ['mail', 1],
  ])
  store.exec('UPDATE column_values SET "rows" = 9 WHERE value = \'call\'')
  await update(5)
  expect(values()).toContainEqual(['call', 9])
})

test('a column with many values, or with long ones, is left out, and the others of its table are not', async () => {
  const { store, activities, update, values } = warehouse()
  activities(Object.fromEntries(Array.from({ length: 200 }, (_, index) => [`a${index}`, `type ${index}`])))
  store.put('members', [{ id: 'm', name: 'Aiko', role: 'x'.repeat(101) }])
  await update()
  expect(values()).toHaveLength(200)
  expect(values('members', 'role')).toEqual([])
  activities({ b: 'one more' })
  store.exec("UPDATE activities SET created_via = 'SYNC'")
  await update(1)
  expect(values()).toEqual([])
  expect(values('activities', 'created_via')).toEqual([['SYNC', 201]])
})

test('a table of that name by somebody else stays as it is', async () => {
  const { store, activities, update } = warehouse()
  store.exec('DROP TABLE column_values; CREATE TABLE column_values (mine TEXT)')
  activities({ a: 'call' })
  await update()
  expect(store.all('SELECT * FROM column_values')).toEqual([])
})

test('values of people and of what they wrote are not counted', () => {
  const counted = ENUMERATED.flatMap(({ table, columns }) => columns.map(column => `${table}.${column}`))
  expect(counted.length).toBeGreaterThan(15)
  const declared = [...TABLES.values()].flatMap(({ table }) =>
    Object.entries(table.columns).flatMap(([name, { isEnumerated }]) =>
      isEnumerated ? [[table, name] as const] : [],
    ),
  )
  expect(counted).toEqual(declared.map(([table, name]) => `${table.name}.${name}`))
  expect(
    declared.filter(
      ([table, name]) => table.content || table.columns[name]?.content || table.columns[name]?.hasIds,
    ),
  ).toEqual([])
})
