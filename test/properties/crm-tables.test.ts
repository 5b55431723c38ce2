import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { systemClock } from '../../src/base/clock.ts'
import { decodeJson } from '../../src/base/json.ts'
import { quote } from '../../src/store/database/sql.ts'
import { openStore } from '../../src/store/store.ts'
import { type TemporaryStore, withShortcuts } from '../store/temporary-store.ts'
import { runs } from '../support/effort.ts'
import { compareTypedTables, typedTables } from '../support/typed-tables.ts'

/** The typed tables agree with any metadata and any records, in whatever order these arrive. */

const OBJECTS = [
  'deal',
  'Deal',
  'deal_2',
  'deal_by_name',
  'records',
  'Fields',
  'a"b',
  'a\u0000b',
  'a\ufffdb',
  ' ',
  '契約',
  `o${'y'.repeat(300)}`,
]
const IDS = ['a', 'b', 'c', 'd']

const name = fc.oneof(
  {
    weight: 9,
    arbitrary: fc.constantFrom(
      'id',
      'ID',
      'name',
      'stage_id',
      'created_at',
      '_deleted_at',
      'rowid',
      'oid',
      '_rowid_',
      'select',
      'Group By',
      'amount',
      'Amount',
      'amount_2',
      'it\'s "quoted"',
      '"',
      'a.b[0]->$',
      '; DROP TABLE crm_records; --',
      '?1',
      '契約 種別',
      'ﬀ',
      'Straße',
      '\ud800',
      '\ufffd',
      'a\u0000b',
      '__proto__',
      ' ',
      `x${'y'.repeat(300)}`,
    ),
  },
  { weight: 1, arbitrary: fc.string({ minLength: 1, maxLength: 4 }) },
)
const type = fc.constantFrom(
  'TEXT',
  'NUMBER',
  'CURRENCY',
  'BOOLEAN',
  'DATETIME',
  'DATE',
  'MULTI_SELECT',
  'odd',
)
const field = fc.record({
  name,
  type,
  label: fc.constantFrom('Amount', 'amount', 'id', '"', '', null),
  is_active: fc.boolean(),
  relation: fc.constantFrom(null, { type: 'MANY_TO_ONE', target_object: 'stage' }),
})
/** As JSON text: a JavaScript number could not say all of them. */
const value = fc.oneof(
  fc.constantFrom(
    'null',
    'true',
    'false',
    '0',
    '1',
    '-0',
    '1.0',
    '2',
    '1e400',
    '1.25e+21',
    '9007199254740993',
    '12345678901234567890',
    '0.1234567890123456789',
    '"12345678901234567890.5"',
    '"1e5"',
    '"0x10"',
    '" 1"',
    '""',
    '"yes"',
    '"true"',
    '"2026-03-04T05:06:07.1239+09:00"',
    '"next week"',
    '["a",12345678901234567890]',
    '{"a":{"b":[1.50]}}',
    '"\\ud800"',
    '"a\\u0000b"',
    '"日本語"',
  ),
  fc.integer().map(String),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map(number => JSON.stringify(number)),
  fc.string().map(text => JSON.stringify(text)),
)

const object = fc.oneof(fc.constant('deal'), fc.constant('Deal'), fc.constantFrom(...OBJECTS))
const id = fc.constantFrom(...IDS)
const unique = <T>(one: fc.Arbitrary<T>, selector: (item: T) => string, maxLength = 16) =>
  fc.uniqueArray(one, { maxLength, selector, size: 'max' })

const step = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('metadata' as const),
      object,
      fields: unique(field, each => each.name.toWellFormed()),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('record' as const),
      object,
      id,
      values: unique(fc.tuple(name, value), ([key]) => key.toWellFormed()),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('delete' as const), object, id }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('retire' as const), object }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('purge' as const) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('one more batch' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('finish' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('start again' as const) }) },
)
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never

function at(second: number): string {
  return new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString()
}

async function take(store: TemporaryStore, each: Step, now: string): Promise<void> {
  if (each.kind === 'metadata') {
    store.put('crm_objects', [{ name: each.object, label: 'Label', fields: each.fields }], {
      requested: each.object,
      now,
    })
  } else if (each.kind === 'record') {
    const members = each.values.map(([key, json]) => `${JSON.stringify(key)}:${json}`)
    const fields = decodeJson(`{${members.join(',')}}`).value
    store.put('crm_records', [{ id: each.id, object: each.object, fields }], { requested: each.object, now })
  } else if (each.kind === 'delete') {
    store.atomically(() => store.tombstone('crm_records', [[each.object, each.id]], now))
  } else if (each.kind === 'retire') {
    store.atomically(() => store.tombstone('crm_objects', [[each.object]], now))
  } else if (each.kind === 'purge') {
    store.atomically(() => store.purger.purge({ before: now, limit: 2, now: now }))
  } else if (each.kind === 'one more batch') await store.transaction(() => undefined)
  else if (each.kind === 'finish') await store.crmTables.finish()
}

/** By the clock of a slow one each record makes a batch; otherwise all do, and are stored when their metadata is. */
function openWith(isSlow: boolean, folder: string): TemporaryStore {
  const path = join(folder, 'parley.db')
  let elapsed = 0
  const clock = {
    ...systemClock(),
    elapsed: () => {
      elapsed += isSlow ? 1000 : 0
      return elapsed
    },
  }
  const store = openStore({ path, mode: 0o600, command: 'test', pid: process.pid, clock })
  return withShortcuts(store, folder, path)
}

const internal = (store: TemporaryStore) =>
  store.column("SELECT name FROM sqlite_master WHERE name GLOB 'sync_crm*'")
const isFilling = (store: TemporaryStore) =>
  internal(store).some(table => String(table).startsWith('sync_crm_next'))

test('the typed tables are what the metadata and the records say', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.boolean(),
      fc.boolean(),
      fc.array(step, { maxLength: 40, size: 'max' }),
      async (isLater, isSlow, steps) => {
        const folder = mkdtempSync(join(tmpdir(), 'parley-typed-'))
        let store = openWith(isSlow, folder)
        // Tables of objects that come later need not wait for the first list.
        if (isLater) store.db.exec(`UPDATE sync_resources SET first_complete_at = '${at(0)}'`)
        try {
          for (const [index, each] of steps.entries()) {
            if (each.kind === 'start again') {
              store.close()
              store = openWith(isSlow, folder)
            } else await take(store, each, at(index))
            // While a table is being filled, the present one has the columns of before.
            if (!isSlow || !isFilling(store)) expect(compareTypedTables(store.db)).toEqual([])
          }
          await store.crmTables.finish()
          expect(compareTypedTables(store.db)).toEqual([])
          const tables = typedTables(store.db)
          expect(tables.map(({ object: told }) => told).sort()).toEqual(
            store.column('SELECT name FROM crm_objects').sort(),
          )
          expect(internal(store)).toEqual([])
          for (const { table } of tables) store.all(`SELECT * FROM ${quote(`labelled_${table}`)}`)
          store.all('SELECT * FROM deal_stage_history')
        } finally {
          store.close()
          rmSync(folder, { recursive: true, force: true })
        }
      },
    ),
    { numRuns: runs(30) },
  )
})
