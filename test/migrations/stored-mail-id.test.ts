import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openWarehouse } from '../../src/store/open-warehouse.ts'
import { newFolder, openAt } from '../store/temporary-store.ts'
import { journalIn, migrationsOf, PRESENT } from './older-version.ts'

const AT = '2026-01-01T00:00:00.000Z'

/** A database of the version in which SQLite computed `mail_id`. */
function olderDatabase(): string {
  const folder = newFolder()
  const path = join(folder, 'parley.db')
  const before = journalIn(PRESENT).entries.findIndex(({ tag }) => tag === '0014_stored_mail_id')
  const db = openWarehouse({ path, migrations: migrationsOf(folder, before) })
  db.exec(`
    INSERT INTO message_copies (_id, id, header_message_id, _first_seen_at, _synced_at, _deleted_at) VALUES
      (7, 'a', '<1>', '${AT}', '${AT}', NULL), (8, 'b', '', '${AT}', '${AT}', NULL), (9, 'c', NULL, '${AT}', '${AT}', NULL),
      (12, 'gone', '<1>', '${AT}', '${AT}', '${AT}');
    INSERT INTO message_copy_participants (message_id, position, role, handle) VALUES ('a', 0, 'FROM', 'x@e'), ('b', 0, 'TO', 'y@e');
    CREATE VIEW my_copies AS SELECT id, mail_id FROM message_copies WHERE mail_id > '';
    CREATE INDEX my_index ON message_copies (mail_id, thread_id)`)
  db.close()
  return path
}

test('the upgrade stores the key of the e-mail in each copy, and keeps row numbers, participants, views and indices', () => {
  const store = openAt(olderDatabase())
  const { db } = store
  const rows = [
    [7, 'a', '<1>'],
    [8, 'b', 'id:b'],
    [9, 'c', 'id:c'],
    [12, 'gone', '<1>'],
  ]
  expect(db.prepare('SELECT _id, id, mail_id FROM message_copies').raw().all()).toEqual(rows)
  expect(db.prepare("SELECT hidden FROM pragma_table_xinfo('message_copies')").pluck().all()).not.toContain(2)
  expect(db.prepare('SELECT message_id FROM message_copy_participants').pluck().all()).toEqual(['a', 'b'])
  expect(db.prepare('SELECT id FROM my_copies ORDER BY id').pluck().all()).toEqual(['a', 'b', 'c', 'gone'])
  const indices = db.prepare("SELECT name FROM pragma_index_list('message_copies')").pluck().all()
  expect(indices).toEqual(expect.arrayContaining(['message_copies_by_mail', 'my_index']))
  store.close()
})
