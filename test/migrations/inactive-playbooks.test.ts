import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openWarehouse } from '../../src/store/open-warehouse.ts'
import { newFolder, openAt } from '../store/temporary-store.ts'
import { journalIn, migrationsOf, PRESENT } from './older-version.ts'

const AT = '2026-01-01T00:00:00.000Z'

test('the upgrade makes each playbook due that is not stored and that a live result names', () => {
  const folder = newFolder()
  const path = join(folder, 'parley.db')
  const before = journalIn(PRESENT).entries.findIndex(({ tag }) => tag === '0027_inactive_playbooks')
  const older = openWarehouse({ path, migrations: migrationsOf(folder, before) })
  older.exec(`
    INSERT INTO playbooks (id, _first_seen_at, _synced_at) VALUES ('stored', '${AT}', '${AT}');
    INSERT INTO playbook_results (meeting_id, id, playbook_id, _first_seen_at, _synced_at, _deleted_at) VALUES
      ('m', '1', 'stored', '${AT}', '${AT}', NULL), ('m', '2', 'inactive', '${AT}', '${AT}', NULL),
      ('n', '3', 'inactive', '${AT}', '${AT}', NULL), ('n', '4', NULL, '${AT}', '${AT}', NULL),
      ('n', '5', '', '${AT}', '${AT}', NULL), ('n', '6', 'of a deleted result', '${AT}', '${AT}', '${AT}')`)
  older.close()
  const store = openAt(path)
  const due = store.db.prepare("SELECT key FROM sync_tasks WHERE feed = 'playbooks.detail' AND due_at <= ?")
  expect(due.pluck().all(store.dueClock.after(0))).toEqual(['inactive'])
  store.close()
})
