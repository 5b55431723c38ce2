import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openWarehouse } from '../../src/store/open-warehouse.ts'
import { newFolder, openAt } from '../store/temporary-store.ts'
import { migrationsOf } from './older-version.ts'

const AT = '2026-03-01T00:00:00.000Z'
const LATER = '2026-03-01T01:00:00.000Z'
const NOTE = { kind: 'refused', reason: 'why', since: AT, next_try_at: LATER, resources: ['members'] }

test.each<[what: string, value: string, gates: readonly unknown[]]>([
  [
    'has the gate of an API that refuses access',
    JSON.stringify(NOTE),
    [
      {
        what: 'api',
        kind: 'refused',
        reason: 'why',
        since: AT,
        until: LATER,
        resources: ['members'],
        tries: 0,
      },
    ],
  ],
  ['has no gate of an API that could be read', 'null', []],
  ['has no gate of a note that is incomplete', JSON.stringify({ ...NOTE, since: undefined }), []],
  ['has no gate of a note that is damaged', 'a private word', []],
])('an upgraded warehouse %s, and no note in sync_meta', (_, value, gates) => {
  const folder = newFolder()
  const path = join(folder, 'parley.db')
  const older = openWarehouse({ path, migrations: migrationsOf(folder, 18) })
  older.prepare("INSERT INTO sync_meta VALUES ('unreachable', ?)").run(value)
  older.close()
  const store = openAt(path)
  expect(store.gates.closed()).toEqual(gates)
  expect(store.state.meta('unreachable')).toBeUndefined()
  store.close()
})
