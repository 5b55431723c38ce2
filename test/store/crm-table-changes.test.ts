import { describe, expect, onTestFinished, test } from 'vitest'
import { systemClock } from '../../src/base/clock.ts'
import { EXIT_STATUS } from '../../src/base/errors.ts'
import type { TypedTableChange } from '../../src/store/crm/typed-tables.ts'
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
  const onTypedTable = (change: TypedTableChange) => changes.push(change)
  // Batches have no time limit, so that a small table is filled at once.
  const clock = { ...systemClock(), elapsed: () => 0 }
  const open = openStore({ path, mode: 0o600, command: 'test', pid: process.pid, clock, onTypedTable })
  onTestFinished(() => open.close())
  const store = withShortcuts(open, folder, path)
  const putFields = (fields: readonly object[]) =>
    store.put('crm_objects', [{ name: 'deal', label: 'deal', fields }], { requested: 'deal' })
  const putRecord = (name: string) =>
    store.put('crm_records', [{ id: 'r', object: 'deal', fields: { name } }], { requested: 'deal' })
  putFields([NAME, AMOUNT])
  putRecord('first')
  await store.crmTables.finish()
  return { store, changes, putFields, putRecord }
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
    const reason = 'the fields of its object have changed (columns added: 1, removed: 1, changed: 1)'
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
        reason: 'the fields of its object have changed (columns added: 0, removed: 1, changed: 0)',
      }),
      expect.objectContaining({ level: 'info', msg: 'A typed CRM table was dropped', table: 'crm_company' }),
    ]),
  )
  expect(lines).toHaveLength(2)
})
