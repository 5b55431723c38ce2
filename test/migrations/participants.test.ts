import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openWarehouse } from '../../src/store/open-warehouse.ts'
import { newFolder, openAt } from '../store/temporary-store.ts'
import { journalIn, migrationsOf, PRESENT } from './older-version.ts'

const AT = '2026-01-01T00:00:00.000Z'
const LATER = '2026-01-02T00:00:00.000Z'

/** A database of the version in which participants of e-mails were a view. */
function olderDatabase(sql: string): string {
  const folder = newFolder()
  const path = join(folder, 'parley.db')
  const before = journalIn(PRESENT).entries.findIndex(({ tag }) => tag === '0004_analysts_answers')
  const db = openWarehouse({ path, migrations: migrationsOf(folder, before) })
  db.exec(`CREATE VIEW message_participants AS SELECT 1 AS handle; ${sql}`)
  db.close()
  return path
}

const PARTICIPANTS = `
  INSERT INTO message_copies (id, header_message_id, received_at, _first_seen_at, _synced_at, _deleted_at) VALUES
    ('b', '<1>', '2026-01-01T00:00:00.000Z', '${AT}', '${AT}', NULL),
    ('a', '<1>', '2026-01-02T00:00:00.000Z', '${AT}', '${AT}', NULL),
    ('gone', '<1>', NULL, '${AT}', '${AT}', '${AT}'),
    ('alone', '', NULL, '${AT}', '${AT}', NULL);
  INSERT INTO message_copy_participants (message_id, position, role, handle, display_name, contact_id) VALUES
    ('a', 0, 'FROM', 'x@e', 'From a', 'c1'), ('b', 0, 'FROM', 'x@e', NULL, 'c2'), ('b', 1, 'TO', 'y@e', NULL, NULL),
    ('b', 2, 'TO', NULL, 'nobody', NULL), ('gone', 0, 'CC', 'z@e', NULL, NULL), ('alone', 0, 'FROM', 'x@e', 'X', NULL);
  CREATE VIEW senders AS SELECT handle FROM message_participants`

test('the participants of e-mails that an older version stored are in their table after the upgrade', () => {
  const store = openAt(olderDatabase(PARTICIPANTS))
  expect(store.db.prepare('SELECT * FROM message_participants').raw().all()).toEqual([
    ['<1>', 'FROM', 'x@e', 'From a', 'c2'],
    ['<1>', 'TO', 'y@e', null, null],
    ['id:alone', 'FROM', 'x@e', 'X', null],
  ])
  expect(store.db.prepare('SELECT handle FROM senders').pluck().all()).toEqual(['x@e', 'y@e', 'x@e'])
  store.close()
})

test('a meeting that was withheld before the upgrade has the time of its detection as its last change', () => {
  const store = openAt(
    olderDatabase(`INSERT INTO meetings (id, access, _first_seen_at, _synced_at) VALUES
      ('opened before', 'withheld', '${AT}', '${LATER}'), ('never open', 'withheld', '${AT}', '${AT}'),
      ('open', 'open', '${AT}', '${LATER}')`),
  )
  expect(
    store.db.prepare('SELECT id, _changed_at FROM meetings WHERE _changed_at IS NOT NULL').raw().all(),
  ).toEqual([['opened before', LATER]])
  store.close()
})
