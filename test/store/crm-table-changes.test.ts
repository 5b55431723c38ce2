import { describe, expect, onTestFinished, test } from 'vitest'
import { systemClock } from '../../src/base/clock.ts'
import { EXIT_STATUS } from '../../src/base/errors.ts'
import type { TypedTableChange } from '../../src/store/crm/typed-tables.ts'
import type { LeftOut } from '../../src/store/database/existing-tables.ts'
import { openSqlite } from '../../src/store/database/sqlite.ts'
import { openStore } from '../../src/store/store.ts'
import { parley } from '../cli/parley.ts'
import { backfilled } from '../cli/workspace.ts'
import { newFolder, withShortcuts } from './temporary-store.ts'

const NAME = { name: 'name', label: 'Name', type: 'TEXT' }
const AMOUNT = { name: 'amount', label: 'Amount', type: 'NUMBER' }
const STAGE = { name: 'stage', label: 'Stage', type: 'TEXT' }

/** A store with a typed table of deals, and what it reported about typed tables. */
async function deals() {
  const folder = newFolder()
  const path = `${folder}/parley.db`
  const changes: TypedTableChange[] = []
  const leftOut: LeftOut[] = []
  // Batches have no time limit, so that a small table is filled at once.
  const clock = { ...systemClock(), elapsed: () => 0 }
  const open = openStore({
    path,
    mode: 0o600,
    command: 'test',
    pid: process.pid,
    clock,
    onTypedTable: change => changes.push(change),
    onLeftOut: object => leftOut.push(object),
  })
  onTestFinished(() => open.close())
  const store = withShortcuts(open, folder, path)
  const putFields = (fields: readonly object[]) =>
    store.put('crm_objects', [{ name: 'deal', label: 'deal', fields }], { requested: 'deal' })
  const putRecord = (name: string) =>
    store.put('crm_records', [{ id: 'r', object: 'deal', fields: { name } }], { requested: 'deal' })
  putFields([NAME, AMOUNT])
  putRecord('first')
  await store.crmTables.finish()
  return { store, changes, leftOut, putFields, putRecord }
}

describe('a typed table whose object changes', () => {
  test('a new table and new values are not reported', async () => {
    const { store, changes, putRecord, putFields } = await deals()
    putRecord('second')
    putFields([{ ...NAME, label: 'Title' }, AMOUNT])
    expect(store.column('SELECT name FROM crm_deal')).toEqual(['second'])
    expect(changes).toEqual([])
  })

  test('a replaced table is reported once with the number of columns that differ', async () => {
    const { store, changes, putFields } = await deals()
    const fields = [{ ...NAME, type: 'BOOLEAN' }, STAGE]
    putFields(fields)
    putFields(fields)
    await store.crmTables.finish()
    const reason = 'its columns have changed (columns added: 1, removed: 1, changed: 1)'
    expect(changes).toEqual([{ kind: 'replaced', table: 'crm_deal', reason }])
  })

  test('a table whose object no longer exists is reported as dropped', async () => {
    const { store, changes } = await deals()
    await store.transaction(() => store.db.exec("DELETE FROM crm_objects WHERE name = 'deal'"))
    expect(store.column("SELECT name FROM sqlite_master WHERE name = 'crm_deal'")).toEqual([])
    expect(changes).toEqual([{ kind: 'dropped', table: 'crm_deal', reason: 'its object no longer exists' }])
  })

  test('a table that another program dropped is reported', async () => {
    const { store, changes, putFields } = await deals()
    store.db.exec('DROP TABLE crm_deal')
    putFields([{ ...NAME, label: 'Title' }, AMOUNT])
    await store.crmTables.finish()
    expect(store.column('SELECT name FROM crm_deal')).toEqual(['first'])
    const reason = 'another program dropped it; parley creates it again'
    expect(changes).toEqual([{ kind: 'dropped', table: 'crm_deal', reason }])
  })

  test('a table that cannot be written is reported once, with the code of the error and without its text', async () => {
    const { store, changes, putRecord } = await deals()
    store.db.exec("CREATE TRIGGER theirs BEFORE UPDATE ON crm_deal BEGIN SELECT RAISE(ABORT, 'secret'); END")
    for (const name of ['second', 'third']) putRecord(name)
    expect(changes).toEqual([
      { kind: 'failed', table: 'crm_deal', reason: 'writing it failed (SQLITE_CONSTRAINT_TRIGGER)' },
    ])
  })
})

describe('an index that people have added to a typed table', () => {
  const THEIRS = `CREATE INDEX theirs ON crm_deal(name) WHERE _deleted_at IS NULL`
  const indices = `SELECT name || ' on ' || tbl_name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL
    AND (tbl_name GLOB 'crm_deal*' OR tbl_name GLOB 'sync_crm*') ORDER BY name`
  const company = {
    name: 'company',
    label: 'Company',
    type: 'RELATION',
    relation: { type: 'MANY_TO_ONE', target_object: 'company' },
  }

  test('is kept each time the table is replaced, and those of parley do not double', async () => {
    const { store, leftOut, putFields } = await deals()
    store.db.exec(THEIRS)
    for (const fields of [
      [NAME, company],
      [NAME, company, STAGE],
      [company, NAME],
    ]) {
      putFields(fields)
      await store.crmTables.finish()
      expect(store.column(indices)).toEqual([
        expect.stringMatching(/^crm_deal_by_company(_2)? on crm_deal$/),
        'theirs on crm_deal',
      ])
    }
    expect(store.column("SELECT sql FROM sqlite_master WHERE name = 'theirs'")).toEqual([THEIRS])
    expect(leftOut).toEqual([])
  })

  test('is kept when an upgrade gives the columns another form', async () => {
    const { store, putFields } = await deals()
    putFields([NAME, company])
    await store.crmTables.finish()
    store.db.exec(`${THEIRS};
      UPDATE sync_meta SET value = replace(replace(value, '"}', '","indexed":false}'), '"relation"', '"text"')
        WHERE key = 'crm_table deal'`)
    store.close()
    const reasons: string[] = []
    const again = openStore({
      path: store.path,
      mode: 0o600,
      command: 'test',
      pid: process.pid,
      clock: systemClock(),
      onTypedTable: ({ reason }) => reasons.push(reason),
    })
    onTestFinished(() => again.close())
    await again.crmTables.finish()
    expect(reasons).toEqual(['its columns have changed (columns added: 0, removed: 0, changed: 1)'])
    expect(again.db.prepare(indices).pluck().all()).toEqual([
      'crm_deal_by_company_2 on crm_deal',
      'theirs on crm_deal',
    ])
  })

  test('is dropped and reported when its column is gone', async () => {
    const { store, changes, leftOut, putFields } = await deals()
    store.db.exec(THEIRS)
    putFields([AMOUNT])
    await store.crmTables.finish()
    expect(store.column(indices)).toEqual([])
    expect(changes).toMatchObject([{ kind: 'replaced' }])
    expect(leftOut).toEqual([
      { type: 'index', name: 'theirs', table: 'crm_deal', sql: THEIRS, reason: 'no such column: name' },
    ])
  })
})

test('the log of a backfill names each typed table that it replaces or drops, with the reason', async context => {
  const place = await backfilled(context)
  const db = openSqlite(place.file)
  db.exec(`DELETE FROM crm_fields WHERE object = 'deal' AND position = 0;
    DROP TABLE crm_company`)
  db.close()
  const { status, stderr } = await parley(['backfill', '--only', 'teams'], place)
  expect(status).toBe(EXIT_STATUS.done)
  const lines = stderr.split('\n').filter(line => line.includes('typed CRM table'))
  expect(lines.map(line => JSON.parse(line))).toEqual(
    expect.arrayContaining([
      expect.objectContaining({
        level: 'info',
        msg: 'A typed CRM table was replaced',
        table: 'crm_deal',
        reason: 'its columns have changed (columns added: 0, removed: 1, changed: 0)',
      }),
      expect.objectContaining({ level: 'info', msg: 'A typed CRM table was dropped', table: 'crm_company' }),
    ]),
  )
  expect(lines).toHaveLength(2)
})
