import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openWarehouse } from '../../src/store/open-warehouse.ts'
import { newFolder, openAt } from '../store/temporary-store.ts'
import { migrationsOf } from './older-version.ts'

const AT = '2026-03-01T00:00:00.000Z'

test('what waits for its confirmation and its purge keeps its place, and triggers and views of other people read it by its earlier name', () => {
  const folder = newFolder()
  const path = join(folder, 'parley.db')
  const older = openWarehouse({ path, migrations: migrationsOf(folder, 19) })
  older.exec(`CREATE TABLE my_log (missing);
    CREATE VIEW my_view AS SELECT key, withdrawn_at FROM sync_erasures;
    CREATE TRIGGER my_trigger AFTER INSERT ON members BEGIN
      INSERT INTO my_log SELECT key FROM sync_absences WHERE means = 'withheld';
    END;
    INSERT INTO sync_absences VALUES ('members', '', 'a', '${AT}', 1, 'withheld');
    INSERT INTO sync_erasures VALUES ('members', '', 'b', '${AT}')`)
  older.close()
  const store = openAt(path)
  store.db.exec(`INSERT INTO members (id, _first_seen_at, _synced_at) VALUES ('c', '${AT}', '${AT}')`)
  const all = (sql: string) => store.db.prepare(sql).raw().all()
  expect(all('SELECT * FROM my_log')).toEqual([['a']])
  expect(all('SELECT * FROM my_view')).toEqual([['b', AT]])
  expect(all('SELECT * FROM sync_suspicions')).toEqual([['members', '', 'a', AT, 1, 'withheld']])
  expect(all('SELECT * FROM sync_purge_queue')).toEqual([['members', '', 'b', AT]])
  store.close()
})
