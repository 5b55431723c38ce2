import { expect, test } from 'vitest'
import { systemClock } from '../../src/base/clock.ts'
import { openStore } from '../../src/store/store.ts'
import { newFolder, openAt, withShortcuts } from './temporary-store.ts'

const open = (path: string, crmTables: boolean) =>
  openStore({ path, mode: 0o600, command: 'test', pid: process.pid, clock: systemClock(), crmTables })

const FIELDS = [{ name: 'name', label: 'Name', type: 'TEXT' }]

/** Everything that mentions a typed table. */
const TRACES = `SELECT name FROM sqlite_master WHERE name LIKE '%crm_deal%' OR name GLOB 'sync_crm*'
  UNION ALL SELECT table_name FROM crm_objects WHERE table_name IS NOT NULL
  UNION ALL SELECT column_name FROM crm_fields WHERE column_name IS NOT NULL
  UNION ALL SELECT table_name FROM data_dictionary WHERE table_name LIKE '%crm_deal%'
  UNION ALL SELECT key FROM sync_meta WHERE key GLOB 'crm_table *'`

test('typed tables that are turned off are dropped, and come back with every record when they are turned on', async () => {
  const folder = newFolder()
  const path = `${folder}/parley.db`
  const first = withShortcuts(openAt(path), folder, path)
  first.put('crm_objects', [{ name: 'deal', label: 'Deal', fields: FIELDS }], { requested: 'deal' })
  first.put('crm_records', [{ id: 'a', object: 'deal', fields: { name: 'x' } }], { requested: 'deal' })
  await first.crmTables.finish()
  expect(first.column(TRACES)).toContain('crm_deal')
  first.close()

  const without = withShortcuts(open(path, false), folder, path)
  expect(without.column(TRACES)).toEqual([])
  without.put('crm_records', [{ id: 'b', object: 'deal', fields: { name: 'y' } }], { requested: 'deal' })
  await without.crmTables.finish()
  expect(without.column(TRACES)).toEqual([])
  without.close()

  const again = withShortcuts(open(path, true), folder, path)
  await again.crmTables.finish()
  expect(again.all('SELECT id, name FROM live_crm_deal ORDER BY id')).toEqual([
    { id: 'a', name: 'x' },
    { id: 'b', name: 'y' },
  ])
  again.close()
})
