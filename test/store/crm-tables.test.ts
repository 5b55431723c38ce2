import { readFileSync } from 'node:fs'
import { describe, expect, onTestFinished, test } from 'vitest'
import { systemClock } from '../../src/base/clock.ts'
import { openSqlite } from '../../src/store/database/sqlite.ts'
import { type OpenStore, openStore } from '../../src/store/store.ts'
import { compareTypedTables, typedTables } from '../support/typed-tables.ts'
import { newFolder, openAt, type TemporaryStore, temporaryStore, withShortcuts } from './temporary-store.ts'

const [FIRST, LATER, LATEST] = [
  '2026-01-01T00:00:00.000Z',
  '2026-01-11T00:00:00.000Z',
  '2026-01-31T00:00:00.000Z',
]

const relation = (name: string, target: string) => ({
  name,
  label: name,
  type: 'RELATION',
  relation: { type: 'MANY_TO_ONE', target_object: target },
})
const NAME = { name: 'name', label: 'Name', type: 'TEXT' }
const AMOUNT = { name: 'amount', label: 'Amount', type: 'NUMBER' }

function putObject(store: TemporaryStore, name: string, fields: readonly object[], more: object = {}): void {
  store.put('crm_objects', [{ name, label: name, fields, ...more }], { requested: name, now: FIRST })
}

function putRecords(
  store: TemporaryStore,
  object: string,
  records: readonly Record<string, unknown>[],
  now = FIRST,
): void {
  const payloads = records.map(({ id, ...fields }) => ({ id, object, fields, created_at: FIRST }))
  store.put('crm_records', payloads, { requested: object, now })
}

/** Deals with some records, in a typed table. Batches have no time limit: a small table is filled at once. */
async function deals(records: readonly Record<string, unknown>[] = []): Promise<TemporaryStore> {
  const store = storeWith(() => 0)
  putObject(store, 'deal', [NAME, AMOUNT, relation('stage_id', 'stage')])
  putRecords(store, 'deal', records)
  await store.crmTables.finish()
  return store
}

const many = (count: number) =>
  Array.from({ length: count }, (_, index) => ({ id: `r${index}`, name: `n${index}`, amount: index }))

const columnsIn = (store: TemporaryStore, table: string) =>
  store.column(`SELECT name FROM pragma_table_info('${table}') ORDER BY cid`)

const internal = (store: TemporaryStore) =>
  store.column("SELECT name FROM sqlite_master WHERE name GLOB 'sync_crm*'")

describe('the labelled view', () => {
  const OWNER = {
    ...relation('owner_id', 'user'),
    label: 'Owner',
    relation: { type: 'MANY_TO_ONE', target_object: 'user', target_resource: 'members' },
  }
  const COMPANY = { ...relation('company_id', "o'brien & co"), label: 'Company' }
  const STAGE = { ...relation('stage_id', 'stage'), label: 'Stage' }

  async function labelled(deal: Record<string, unknown>): Promise<unknown[]> {
    const store = storeWith(() => 0)
    store.put('members', [{ id: 'm', name: 'Aiko Tanaka' }])
    putObject(store, 'deal', [NAME, STAGE, COMPANY, OWNER])
    putRecords(store, 'stage', [{ id: 's', name: 'Proposal' }])
    putRecords(store, "o'brien & co", [{ id: 'c', name: '', title: 'Acme' }])
    putRecords(store, 'deal', [{ id: 'd', name: 'Big', ...deal }])
    await store.crmTables.finish()
    expect(compareTypedTables(store.db)).toEqual([])
    return store.all('SELECT "Name", "Stage", "Company", "Owner" FROM labelled_crm_deal')
  }

  test('the labelled view shows the names of the stage, the company and the owner in place of their ids', async () => {
    expect(await labelled({ stage_id: 's', company_id: 'c', owner_id: 'm' })).toEqual([
      { Name: 'Big', Stage: 'Proposal', Company: 'Acme', Owner: 'Aiko Tanaka' },
    ])
  })

  test('the labelled view shows the id of a target without a known name, and NULL for an empty relation', async () => {
    expect(await labelled({ stage_id: 'gone', company_id: 'x', owner_id: null })).toEqual([
      { Name: 'Big', Stage: 'gone', Company: 'x', Owner: null },
    ])
  })

  test('the labelled view follows a relation that changes its target', async () => {
    const store = storeWith(() => 0)
    putRecords(store, 'stage', [{ id: 's', name: 'Proposal' }])
    putRecords(store, 'phase', [{ id: 's', name: 'Second' }])
    putObject(store, 'deal', [NAME, STAGE])
    putRecords(store, 'deal', [{ id: 'd', stage_id: 's' }])
    await store.crmTables.finish()
    putObject(store, 'deal', [NAME, { ...relation('stage_id', 'phase'), label: 'Stage' }])
    expect(store.column('SELECT "Stage" FROM labelled_crm_deal')).toEqual(['Second'])
  })
})

describe('a typed table', () => {
  test('a typed table has a column for each field, with the record’s times, and indices for its relations', async () => {
    const store = await deals([{ id: 'a', name: 'x', amount: 1.5, stage_id: 's' }])
    expect(store.all('SELECT * FROM crm_deal')).toEqual([
      {
        id: 'a',
        name: 'x',
        amount: 1.5,
        stage_id: 's',
        created_at: FIRST,
        updated_at: null,
        _deleted_at: null,
      },
    ])
    expect(store.all("EXPLAIN QUERY PLAN SELECT * FROM crm_deal WHERE stage_id = 's'")).toEqual([
      expect.objectContaining({
        detail: 'SEARCH crm_deal USING INDEX crm_deal_by_stage_id (stage_id=?)',
      }),
    ])
    expect(compareTypedTables(store.db)).toEqual([])
  })

  test('a typed table follows records that are inserted, changed, deleted and restored, in the same transaction', async () => {
    const store = await deals(many(3))
    putRecords(store, 'deal', [{ id: 'r1', name: 'changed' }, { id: 'new' }], LATER)
    expect(compareTypedTables(store.db)).toEqual([])
    store.atomically(() => store.tombstone('crm_records', [['deal', 'r2']], LATER))
    expect(compareTypedTables(store.db)).toEqual([])
    expect(store.column('SELECT id FROM live_crm_deal ORDER BY id')).toEqual(['new', 'r0', 'r1'])
    putRecords(store, 'deal', many(3), LATEST)
    expect(store.column('SELECT count(*) FROM live_crm_deal')).toEqual([4])
    expect(compareTypedTables(store.db)).toEqual([])
  })

  test('a typed table follows records that are deleted in a transaction aside', async () => {
    const store = await deals(many(3))
    await store.transaction.aside(() => store.tombstone('crm_records', [['deal', 'r2']], LATER))
    expect(compareTypedTables(store.db)).toEqual([])
    expect(store.column('SELECT id FROM crm_deal WHERE _deleted_at IS NULL ORDER BY id')).toEqual([
      'r0',
      'r1',
    ])
  })

  test('a typed table is written with the record or not at all', async () => {
    const store = await deals(many(2))
    const fails = () =>
      store.atomically(() => {
        store.db.exec("UPDATE crm_records SET fields = '{}'")
        throw new Error('no')
      })
    expect(fails).toThrow('no')
    await store.transaction(() => store.db.exec("DELETE FROM crm_records WHERE id = 'r0'"))
    expect(store.column('SELECT name FROM crm_deal')).toEqual(['n1'])
    expect(compareTypedTables(store.db)).toEqual([])
  })

  test('a typed table is not written for changes that it does not show', async () => {
    const store = await deals(many(2))
    const before = store.column('SELECT total_changes()')[0] as number
    store.atomically(() => store.db.exec("UPDATE crm_records SET updated_by_name = 'x'"))
    // Two records, and the note that a part of them has changed.
    expect(store.column('SELECT total_changes()')).toEqual([before + 3])
  })

  test('the typed table of a new object is filled after the list of its records was read to its end', async () => {
    const store = temporaryStore()
    store.atomically(() =>
      store.segments.add({ feed: 'crm_records.list', scope: 'deal', from: null, to: null }),
    )
    putObject(store, 'deal', [NAME])
    putRecords(store, 'deal', many(3))
    expect(store.column('SELECT table_name FROM crm_objects')).toEqual([null])
    await store.transaction(() => store.db.exec(`UPDATE sync_segments SET listed_at = '${LATER}'`))
    await store.crmTables.finish()
    expect(store.column('SELECT name FROM crm_deal ORDER BY id')).toEqual(['n0', 'n1', 'n2'])
  })

  test('a typed table stays with its rows when its object is deleted', async () => {
    const store = await deals(many(3))
    store.atomically(() => store.tombstone('crm_objects', [['deal']], LATER))
    expect(store.column('SELECT count(*) FROM crm_deal')).toEqual([3])
    expect(store.column('SELECT count(*) FROM live_crm_deal')).toEqual([0])
    expect(compareTypedTables(store.db)).toEqual([])
  })
})

describe('a typed table when the metadata changes', () => {
  test('fields are added, renamed, retired, retyped and removed, and no value is lost', async () => {
    const store = await deals([{ id: 'a', name: 'x', amount: '12', later: 'there before' }])
    const shapes: object[][] = [
      [NAME, AMOUNT, { name: 'later', label: 'Later', type: 'TEXT' }],
      [{ ...NAME, name: 'title' }, AMOUNT],
      [NAME, { ...AMOUNT, type: 'TEXT' }],
      [AMOUNT, NAME],
      [NAME, { ...AMOUNT, is_active: false }],
      [],
      [relation('name', 'stage')],
    ]
    for (const fields of shapes) {
      putObject(store, 'deal', fields)
      expect(compareTypedTables(store.db)).toEqual([])
    }
    putObject(store, 'deal', shapes[0] ?? [])
    expect(store.all('SELECT name, amount, later FROM live_crm_deal')).toEqual([
      { name: 'x', amount: 12, later: 'there before' },
    ])
    await store.crmTables.finish()
    expect(internal(store)).toEqual([])
  })

  test('a change without new columns leaves the table, and the metadata still has it', async () => {
    const store = await deals(many(2))
    const before = store.column("SELECT rootpage FROM sqlite_master WHERE name = 'crm_deal'")
    putObject(store, 'deal', [{ ...NAME, label: 'Title' }, AMOUNT, relation('stage_id', 'stage')])
    expect(store.column("SELECT rootpage FROM sqlite_master WHERE name = 'crm_deal'")).toEqual(before)
    expect(store.column('SELECT column_name FROM crm_fields ORDER BY position')).toEqual([
      'name',
      'amount',
      'stage_id',
    ])
    expect(columnsIn(store, 'labelled_crm_deal')).toContain('Title')
  })

  test('only differing rows of metadata and dictionary are written', async () => {
    const store = await deals(many(2))
    store.db.exec(`CREATE TEMP TABLE written (column_name TEXT);
      CREATE TEMP TRIGGER says AFTER INSERT ON main.data_dictionary BEGIN
        INSERT INTO written VALUES (NEW.table_name || '.' || NEW.column_name); END;
      CREATE TEMP TRIGGER tells AFTER UPDATE OF column_name ON main.crm_fields BEGIN
        INSERT INTO written VALUES (NEW.object || '.' || NEW.name); END`)
    store.atomically(() => store.db.exec("UPDATE crm_fields SET label = 'Title' WHERE name = 'name'"))
    expect(store.column('SELECT column_name FROM written ORDER BY 1')).toEqual([
      'crm_deal.name',
      'labelled_crm_deal.Title',
      'live_crm_deal.name',
    ])
    expect(store.column("SELECT 1 FROM data_dictionary WHERE column_name = 'Name'")).toEqual([])
  })

  test('a payload with the same fields is no change, although parley adds the column name to each', async () => {
    const store = await deals()
    const [stored] = store.put(
      'crm_objects',
      [{ name: 'deal', label: 'deal', fields: [NAME, AMOUNT, relation('stage_id', 'stage')] }],
      { requested: 'deal' },
    )
    expect(stored?.written.status).toBe('unchanged')
  })

  test('readers see the table as it was until the new one has every record', async () => {
    const store = slowStore()
    putObject(store, 'deal', [NAME])
    putRecords(store, 'deal', many(100))
    await store.crmTables.finish()
    putObject(store, 'deal', [NAME, AMOUNT])
    await store.transaction(() => undefined)
    expect(columnsIn(store, 'crm_deal')).not.toContain('amount')
    expect(store.column('SELECT id FROM sync_crm_next')).toEqual(['r0'])
    const changed = [{ id: 'a', name: 'early' }, { id: 'r0' }, { id: 'r3' }, { id: 'r99x' }]
    putRecords(store, 'deal', changed, LATER)
    store.atomically(() => store.tombstone('crm_records', [['deal', 'r1']], LATER))
    expect(store.all('SELECT id, name FROM sync_crm_next')).toEqual([
      { id: 'r0', name: null },
      { id: 'a', name: 'early' },
    ])
    expect(store.column('SELECT count(*) FROM crm_deal')).toEqual([102])
    expect(store.column('SELECT count(*) FROM labelled_crm_deal')).toEqual([101])
    store.close()

    const again = opened(store.path)
    await again.crmTables.finish()
    expect(columnsIn(again, 'crm_deal')).toContain('amount')
    expect(compareTypedTables(again.db)).toEqual([])
    expect(internal(again)).toEqual([])
  })

  test('new labels show at once, also while the next table is being filled', async () => {
    const store = slowStore()
    putObject(store, 'deal', [NAME])
    putRecords(store, 'deal', many(3))
    await store.crmTables.finish()
    putObject(store, 'deal', [NAME, AMOUNT])
    putObject(store, 'deal', [{ ...NAME, label: 'Title' }, AMOUNT])
    expect(columnsIn(store, 'labelled_crm_deal')).toEqual(['id', 'Title', 'created_at', 'updated_at'])
    expect(
      store.column(
        "SELECT column_name FROM data_dictionary WHERE table_name = 'labelled_crm_deal' ORDER BY position",
      ),
    ).toEqual(['id', 'Title', 'created_at', 'updated_at'])
  })

  test('the last of several changes counts while a table is being filled', async () => {
    const store = slowStore()
    putObject(store, 'deal', [NAME])
    putRecords(store, 'deal', many(100))
    await store.crmTables.finish()
    putObject(store, 'deal', [NAME, AMOUNT])
    putObject(store, 'deal', [AMOUNT])
    await store.crmTables.finish()
    expect(columnsIn(store, 'crm_deal')).toEqual(['id', 'amount', 'created_at', 'updated_at', '_deleted_at'])
    expect(compareTypedTables(store.db)).toEqual([])
    expect(internal(store)).toEqual([])
  })
})

describe('the names in typed tables', () => {
  test('a name that is taken, or differs from another in case only, gets a number', async () => {
    const store = temporaryStore()
    store.db.exec('CREATE VIEW live_crm_visit AS SELECT 1')
    const objects = ['records', 'Fields', 'order', 'ORDER', 'visit', 'x"; drop table members; --', '契約書']
    for (const object of objects) {
      putObject(store, object, [NAME])
      putRecords(store, object, [{ id: 'a', name: object }])
    }
    await store.crmTables.finish()
    const tables = new Map(
      store.all('SELECT name, table_name FROM crm_objects').map(row => [row['name'], row['table_name']]),
    )
    expect(objects.map(object => tables.get(object))).toEqual([
      'crm_records_2',
      'crm_Fields_2',
      expect.stringMatching(/^crm_order(_2)?$/),
      expect.stringMatching(/^crm_ORDER(_2)?$/),
      'crm_visit_2',
      'crm_x"; drop table members; --',
      'crm_契約書',
    ])
    expect(compareTypedTables(store.db)).toEqual([])
  })

  test('an index and a table that is still to be filled may have the same name', async () => {
    const store = temporaryStore()
    putObject(store, 'deal_by_stage_id', [NAME])
    putObject(store, 'deal', [relation('stage_id', 'stage')])
    await store.crmTables.finish()
    expect(store.column('SELECT count(*) FROM crm_objects WHERE table_name IS NULL')).toEqual([0])
    expect(compareTypedTables(store.db)).toEqual([])
  })

  test('names of fields that SQL text cannot hold are replaced', async () => {
    const store = temporaryStore()
    putObject(store, 'deal', [{ ...NAME, name: 'half \ud800' }])
    putRecords(store, 'deal', [{ id: 'a', 'half \ud800': 'whole' }])
    await store.crmTables.finish()
    expect(store.column('SELECT "half \ufffd" FROM crm_deal')).toEqual(['whole'])
    expect(compareTypedTables(store.db)).toEqual([])
  })

  test('an object with 3,000 fields has 1,900 columns, and the others stay in the JSON', async () => {
    const store = temporaryStore()
    const fields = Array.from({ length: 3000 }, (_, index) => ({
      name: `${'n'.repeat(295)}${index}`,
      label: 'the same',
      type: 'TEXT',
    }))
    putObject(store, 'deal', fields)
    putRecords(store, 'deal', [{ id: 'a', ...Object.fromEntries(fields.map(({ name }) => [name, name])) }])
    await store.crmTables.finish()
    expect(store.column('SELECT count(*) FROM crm_fields WHERE column_name IS NULL')).toEqual([1100])
    expect(compareTypedTables(store.db)).toEqual([])
  })
})

describe('a typed table that cannot be kept', () => {
  test('a failing table fails no sync: it is dropped, and created again at the next start', async () => {
    const store = await deals(many(2))
    store.db.exec("CREATE TRIGGER theirs BEFORE UPDATE ON crm_deal BEGIN SELECT RAISE(ABORT, 'no'); END")
    putRecords(store, 'deal', [{ id: 'r0', name: 'changed' }], LATER)
    expect(store.column('SELECT fields FROM crm_records ORDER BY id')[0]).toBe('{"name":"changed"}')
    expect(store.column('SELECT table_name FROM crm_objects')).toEqual([null])
    expect(store.column('SELECT DISTINCT column_name FROM crm_fields')).toEqual([null])
    store.close()
    const again = opened(store.path)
    await again.crmTables.finish()
    expect(again.column('SELECT name FROM crm_deal ORDER BY id')).toEqual(['changed', 'n1'])
  })

  test.each([
    ['view', 'CREATE VIEW theirs AS SELECT name FROM crm_deal'],
    ['index', 'CREATE UNIQUE INDEX theirs ON crm_deal (name)'],
    ['trigger', "CREATE TRIGGER theirs BEFORE DELETE ON crm_deal BEGIN SELECT RAISE(ABORT, 'no'); END"],
    [
      'table that points at it',
      "CREATE TABLE theirs (deal TEXT REFERENCES crm_deal (id)); INSERT INTO theirs VALUES ('r1')",
    ],
    ['column', 'ALTER TABLE crm_deal ADD COLUMN theirs TEXT'],
    ['name', 'ALTER TABLE crm_deal RENAME TO theirs'],
    ['table that is called as ours', 'CREATE TABLE sync_crm_next (x)'],
  ])(
    'an analyst’s %s with the name of the table fails no sync, and the table is right after the next start',
    async (_, sql) => {
      const store = await deals(many(3))
      store.db.exec(sql)
      putRecords(store, 'deal', [{ id: 'r0', name: 'n1' }], LATER)
      putObject(store, 'deal', [NAME])
      await store.crmTables.finish()
      putRecords(store, 'deal', [{ id: 'r2', name: 'later' }], LATEST)
      expect(store.column("SELECT fields ->> 'name' FROM crm_records ORDER BY id")).toEqual([
        'n1',
        'n1',
        'later',
      ])
      store.close()
      const again = opened(store.path)
      await again.crmTables.finish()
      expect(compareTypedTables(again.db)).toEqual([])
      expect(typedTables(again.db)).toHaveLength(1)
    },
  )

  test('an analyst’s table in place of the view stays, and fails no sync', async () => {
    const store = await deals(many(3))
    store.db.exec(
      'DROP VIEW live_crm_deal; CREATE TABLE live_crm_deal (x); INSERT INTO live_crm_deal VALUES (1)',
    )
    putRecords(store, 'deal', [{ id: 'r0', name: 'later' }], LATER)
    store.close()
    const again = opened(store.path)
    await again.crmTables.finish()
    expect(again.column('SELECT x FROM live_crm_deal')).toEqual([1])
    expect(again.column('SELECT name FROM crm_deal ORDER BY id')).toEqual(['later', 'n1', 'n2'])
  })

  test('a dropped table is created again under its name', async () => {
    const store = await deals(many(2))
    putObject(store, 'company', [NAME])
    putRecords(store, 'company', many(3))
    await store.crmTables.finish()
    store.close()
    meddle(store.path, 'DROP TABLE crm_deal; DROP TABLE crm_company; DROP VIEW live_crm_deal')
    const again = opened(store.path)
    await again.crmTables.finish()
    expect(compareTypedTables(again.db)).toEqual([])
    expect(again.column('SELECT count(*) FROM live_crm_deal')).toEqual([2])
    expect(again.column('SELECT count(*) FROM labelled_crm_company')).toEqual([3])
  })

  test('a table that is dropped while another is filled in its place is replaced by that one', async () => {
    const store = slowStore()
    putObject(store, 'deal', [NAME])
    putRecords(store, 'deal', many(5))
    await store.crmTables.finish()
    putObject(store, 'deal', [NAME, AMOUNT])
    await store.transaction(() => undefined)
    store.close()
    meddle(store.path, 'DROP TABLE crm_deal')
    const again = opened(store.path)
    await again.crmTables.finish()
    expect(compareTypedTables(again.db)).toEqual([])
    expect(again.column('SELECT count(*) FROM live_crm_deal')).toEqual([5])
    expect(internal(again)).toEqual([])
  })

  test('several tables that are dropped while parley runs fail no sync', async () => {
    const store = await deals(many(2))
    putObject(store, 'company', [NAME])
    putRecords(store, 'company', many(3))
    await store.crmTables.finish()
    meddle(store.path, 'DROP TABLE crm_deal; DROP TABLE crm_company')
    putRecords(store, 'deal', [{ id: 'r0', name: 'changed' }], LATER)
    putRecords(store, 'company', [{ id: 'r0', name: 'changed' }], LATER)
    expect(
      store.column('SELECT object FROM crm_records WHERE fields = \'{"name":"changed"}\'').sort(),
    ).toEqual(['company', 'deal'])
    putObject(store, 'deal', [NAME])
    putObject(store, 'company', [NAME, AMOUNT])
    await store.crmTables.finish()
    expect(compareTypedTables(store.db)).toEqual([])
    expect(store.column('SELECT table_name FROM crm_objects ORDER BY name')).toEqual([
      'crm_company',
      'crm_deal',
    ])
  })
})

test('a warehouse from before typed tables gets them, filled, when it is opened', async () => {
  const store = await deals(many(50))
  store.db.exec(`DROP VIEW live_crm_deal; DROP VIEW labelled_crm_deal; DROP TABLE crm_deal;
    UPDATE crm_fields SET column_name = NULL; UPDATE crm_objects SET table_name = NULL;
    DELETE FROM sync_meta WHERE key GLOB 'crm_table*';
    UPDATE sync_resources SET first_complete_at = '${FIRST}'`)
  store.close()
  const again = opened(store.path)
  await again.crmTables.finish()
  expect(again.column('SELECT count(*) FROM live_crm_deal')).toEqual([50])
  expect(compareTypedTables(again.db)).toEqual([])
})

test('purged content leaves the typed tables, their views and the dictionary too', async () => {
  const store = temporaryStore()
  putObject(store, 'deal', [{ ...NAME, label: 'mark-label' }, relation('owner_id', 'x')])
  putRecords(store, 'deal', [{ id: 'a', name: 'mark-value', owner_id: 'mark-relation' }])
  await store.crmTables.finish()
  putObject(store, 'deal', [{ ...NAME, label: 'mark-label' }, AMOUNT, relation('owner_id', 'x')])
  await store.crmTables.finish()
  store.atomically(() => store.tombstone('crm_objects', [['deal']], LATER))
  expect(store.column('SELECT name FROM crm_deal')).toEqual(['mark-value'])
  store.atomically(() => store.purger.purge({ before: LATEST, limit: 100, now: LATEST }))
  expect(store.all('SELECT id, name, owner_id FROM crm_deal')).toEqual([
    { id: 'a', name: null, owner_id: null },
  ])
  expect(compareTypedTables(store.db)).toEqual([])
  await store.purger.clean({ rebuild: true, signal: new AbortController().signal })
  store.close()
  const bytes = ['', '-wal', '-shm'].map(end => readFileSync(`${store.path}${end}`, 'latin1')).join('')
  expect(bytes.match(/mark-\w+/g)).toBe(null)
})

/** A change of the file by another program. */
function meddle(path: string, sql: string): void {
  const theirs = openSqlite(path)
  theirs.exec(sql)
  theirs.close()
}

function opened(path: string, store: OpenStore = openAt(path)): TemporaryStore {
  onTestFinished(() => store.close())
  return withShortcuts(store, path, path)
}

/** A clock by which every batch has used up its time. */
function slowStore(): TemporaryStore {
  let elapsed = 0
  return storeWith(() => {
    elapsed += 1000
    return elapsed
  })
}

function storeWith(elapsed: () => number): TemporaryStore {
  const path = `${newFolder()}/parley.db`
  const clock = { ...systemClock(), elapsed }
  return opened(path, openStore({ path, mode: 0o600, command: 'test', pid: process.pid, clock }))
}
