import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openWarehouse } from '../../src/store/open-warehouse.ts'
import { newFolder, openAt } from '../store/temporary-store.ts'
import { migrationsOf, migrationsWith } from './older-version.ts'

const DELETED = '2026-01-01T00:00:00.000Z'
const WITHHELD = '2026-01-02T00:00:00.000Z'

/** A database of the version that did not record deletions. */
function olderDatabase(): string {
  const folder = newFolder()
  const path = join(folder, 'parley.db')
  const db = openWarehouse({ path, migrations: migrationsOf(folder, 1) })
  db.exec(`
    INSERT INTO members (id, name, _first_seen_at, _synced_at, _deleted_at) VALUES
      ('gone', 'one', '${DELETED}', '${DELETED}', '${DELETED}'), ('here', 'two', '${DELETED}', '${DELETED}', NULL);
    INSERT INTO meetings (id, title, access, _first_seen_at, _synced_at, _deleted_at) VALUES
      ('withheld', 'three', 'withheld', '${DELETED}', '${WITHHELD}', NULL),
      ('open', 'four', 'open', '${DELETED}', '${WITHHELD}', NULL);
    INSERT INTO crm_records (object, id, fields, _first_seen_at, _synced_at, _deleted_at) VALUES
      ('deal', 'r', '{}', '${DELETED}', '${DELETED}', '${DELETED}');
    INSERT INTO bot_definition (id, name, _first_seen_at, _synced_at, _deleted_at) VALUES
      (1, 'five', '${DELETED}', '${DELETED}', '${DELETED}')`)
  db.close()
  return path
}

test('the upgrade records earlier deletions with their times, and they are purged like later ones', () => {
  const store = openAt(olderDatabase())
  expect(store.db.prepare('SELECT * FROM sync_purge_queue ORDER BY table_name').raw().all()).toEqual([
    ['bot_definition', '', '1', DELETED],
    ['crm_records', 'deal', 'r', DELETED],
    ['meetings', '', 'withheld', WITHHELD],
    ['members', '', 'gone', DELETED],
  ])
  const purge = store.db.transaction(() =>
    store.purger.purge({ before: '2026-02-01T00:00:00.000Z', limit: 100, now: '2026-02-01T00:00:00.000Z' }),
  )
  expect(purge()).toEqual({ purged: 4, more: false })
  const texts =
    'SELECT name FROM members UNION ALL SELECT title FROM meetings UNION ALL SELECT name FROM bot_definition'
  expect(store.db.prepare(texts).pluck().all().filter(Boolean).sort()).toEqual(['four', 'two'])
  store.close()
})

test('deletions that were purged since are not recorded again, at the next start or by the next upgrade', () => {
  const path = olderDatabase()
  const first = openAt(path)
  first.db.transaction(() =>
    first.purger.purge({ before: '2026-02-01T00:00:00.000Z', limit: 100, now: '2026-02-01T00:00:00.000Z' }),
  )()
  first.close()
  const second = openAt(path)
  expect(second.db.prepare('SELECT count(*) FROM sync_purge_queue').pluck().get()).toBe(0)
  second.close()
  const next = migrationsWith(newFolder(), '0099_next', 'CREATE TABLE next (id INTEGER) STRICT;')
  const third = openWarehouse({ path, migrations: next })
  expect(third.prepare('SELECT count(*) FROM next').pluck().get()).toBe(0)
  expect(third.prepare('SELECT count(*) FROM sync_purge_queue').pluck().get()).toBe(0)
  third.close()
})
