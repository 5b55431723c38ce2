import { readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { DuckDBInstance } from '@duckdb/node-api'
import { expect, onTestFinished, test } from 'vitest'
import { quote } from '../../src/store/database/sql.ts'
import { type TemporaryStore, temporaryStore } from '../store/temporary-store.ts'
import { emptyTarget, exportTo, makeExportedViews } from './exporting.ts'

/** `views.sql`, which creates views of an export in DuckDB. test/questions compares the answers of the questions. */

const NOW = '2026-06-30T12:00:00.000Z'

async function duckdb() {
  const instance = await DuckDBInstance.create(':memory:')
  const connection = await instance.connect()
  onTestFinished(() => {
    connection.closeSync()
    instance.closeSync()
  })
  return connection
}

/** The views, and the rows of one of them. */
async function inViews(folder: string, view: string) {
  const connection = await duckdb()
  await makeExportedViews(connection, folder)
  const names = await connection.runAndReadAll('SELECT view_name FROM duckdb_views() WHERE NOT internal')
  const rows = await connection.runAndReadAll(`SELECT * FROM ${quote(view)}`)
  return { names: names.getRows().flat().map(String).toSorted(), rows: rows.getRowObjectsJson() }
}

const HOSTILE = `';"; DROP VIEW "members"; --\n.shell 商談`

async function storeWithObject(name: string): Promise<TemporaryStore> {
  const store = temporaryStore()
  store.put('members', [{ id: 'm', name: 'M' }])
  const fields = [{ name: `a"b'c;`, label: 'x', type: 'CURRENCY' }]
  store.put('crm_objects', [{ name, label: name, fields }], { requested: name, now: NOW })
  const records = ['kept', 'deleted'].map(id => ({
    id,
    object: name,
    fields: { [`a"b'c;`]: 7 },
    created_at: NOW,
  }))
  store.put('crm_records', records, { requested: name })
  await store.crmTables.finish()
  return store
}

test('the script creates the views of a CRM object whose name has quotes, semicolons and line breaks', async () => {
  const store = await storeWithObject(HOSTILE)
  const named = store.db.prepare('SELECT table_name FROM crm_objects WHERE table_name IS NOT NULL')
  const table = String(named.pluck().get())
  store.exec(`UPDATE ${quote(table)} SET _deleted_at = '${NOW}' WHERE id = 'deleted'`)
  const target = emptyTarget()
  await exportTo(store.path, target)
  const { names, rows } = await inViews(target, `live_${table}`)
  expect(names).toEqual(expect.arrayContaining(['members', 'live_members', 'deal_timeline', table]))
  expect(rows).toMatchObject([{ id: 'kept', [`a"b'c;`]: 7 }])
})

test('the script of an export of some tables creates the views that read no other table', async () => {
  const store = await storeWithObject('deal')
  const target = emptyTarget()
  await exportTo(store.path, target, { tables: ['members', 'team_members', 'crm_deal'] })
  const { names } = await inViews(target, 'members')
  expect(names).toEqual(['crm_deal', 'live_crm_deal', 'live_members', 'members', 'team_members'])
})

test('the script is written only if it changed, and again after it was removed', async () => {
  const store = await storeWithObject('deal')
  const target = emptyTarget()
  const script = join(target, 'views.sql')
  const exported = async () => {
    await exportTo(store.path, target)
    return { inode: statSync(script, { bigint: true }).ino, text: readFileSync(script, 'utf8') }
  }
  const first = await exported()
  store.exec("UPDATE members SET name = 'changed'")
  expect(await exported()).toEqual(first)
  rmSync(script)
  expect((await exported()).text).toBe(first.text)
})
