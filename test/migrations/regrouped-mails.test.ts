import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openWarehouse } from '../../src/store/open-warehouse.ts'
import { newFolder } from '../store/temporary-store.ts'
import { journalIn, migrationsOf, PRESENT } from './older-version.ts'

const AT = '2026-01-01T00:00:00.000Z'
const LATER = '2026-01-02T00:00:00.000Z'

interface Copy {
  id: string
  header: string | null
  sender?: string
  state?: string
  deletedAt?: string
}

/** A merged row as the version before has made it, with the text of one of its copies. */
interface Mail {
  key: string
  of: string
  textOf?: string
  deletedAt?: string
}

/** What the upgrade makes of the copies and e-mails that a version before has stored. */
function upgraded(copies: readonly Copy[], mails: readonly Mail[], sql = '') {
  const folder = newFolder()
  const path = join(folder, 'parley.db')
  const before = journalIn(PRESENT).entries.findIndex(({ tag }) => tag === '0017_copy_texts')
  const older = openWarehouse({ path, migrations: migrationsOf(folder, before) })
  const addCopy = older.prepare(
    `INSERT INTO message_copies (_id, id, header_message_id, mail_id, subject, received_at, text_state, _text_due,
       _first_seen_at, _synced_at, _deleted_at) VALUES (?, ?, ?, ?, ?, '${AT}', ?, NULL, '${AT}', '${AT}', ?)`,
  )
  const addSender = older.prepare(
    "INSERT INTO message_copy_participants (message_id, position, role, handle) VALUES (?, 0, 'FROM', ?)",
  )
  const addParticipant = older.prepare(
    `INSERT OR IGNORE INTO message_participants (header_message_id, role, handle) VALUES (?, 'FROM', ?)`,
  )
  const placeOf = (id: string | undefined) => copies.findIndex(copy => copy.id === id) + 1
  for (const { id, header, sender, state = 'pending', deletedAt = null } of copies) {
    const mail = header || `id:${id}`
    addCopy.run(placeOf(id), id, header, mail, `of ${id}`, state, deletedAt)
    if (sender !== undefined) addSender.run(id, sender)
    if (sender !== undefined && deletedAt === null) addParticipant.run(mail, sender)
  }
  const addMail = older.prepare(
    `INSERT INTO messages (_id, header_message_id, id, subject, copy_count, text, text_state, _text_from, _first_seen_at,
       _synced_at, _deleted_at) VALUES (?, ?, ?, 'of all', 2, ?, ?, ?, '${AT}', '${AT}', ?)`,
  )
  mails.forEach(({ key, of, textOf, deletedAt = null }, number) => {
    const text = textOf === undefined ? null : `text of ${textOf}`
    const from = textOf === undefined ? null : placeOf(textOf)
    addMail.run(number + 1, key, of, text, textOf === undefined ? 'pending' : 'present', from, deletedAt)
  })
  older.exec(sql)
  older.close()
  const db = openWarehouse({ path })
  const all = (asked: string) => db.prepare(asked).raw().all()
  const found = {
    mails: all(
      'SELECT header_message_id, id, subject, copy_count, text, text_state, _deleted_at FROM messages ORDER BY 1',
    ),
    copies: all('SELECT id, mail_id, text, text_state, _text_due FROM message_copies ORDER BY 1'),
    senders: all('SELECT header_message_id, handle FROM message_participants ORDER BY 1, 2'),
    purges: all('SELECT table_name, key FROM sync_purge_queue ORDER BY 1, 2'),
  }
  db.close()
  return found
}

test('the copies that have a blank Message-ID become an e-mail each, and the text stays with its own', () => {
  const copies: Copy[] = [
    { id: 'a', header: ' ', sender: 'x@e', state: 'empty' },
    { id: 'b', header: ' ', sender: 'y@e', state: 'present' },
    { id: 'c', header: ' \t', sender: 'z@e' },
    { id: 'd', header: null, state: 'present' },
  ]
  const mails: Mail[] = [
    { key: ' ', of: 'a', textOf: 'b' },
    { key: ' \t', of: 'c' },
    { key: 'id:d', of: 'd', textOf: 'd' },
  ]
  const found = upgraded(copies, mails)
  expect(found.mails).toEqual([
    ['id:a', 'a', 'of a', 1, null, 'empty', null],
    ['id:b', 'b', 'of b', 1, 'text of b', 'present', null],
    ['id:c', 'c', 'of c', 1, null, 'pending', null],
    ['id:d', 'd', 'of all', 2, 'text of d', 'present', null],
  ])
  expect(found.copies).toEqual([
    ['a', 'id:a', null, 'empty', null],
    ['b', 'id:b', null, 'present', null],
    ['c', 'id:c', null, 'pending', 1],
    ['d', 'id:d', null, 'present', null],
  ])
  expect(found.senders).toEqual([
    ['id:a', 'x@e'],
    ['id:b', 'y@e'],
    ['id:c', 'z@e'],
  ])
})

test('a copy with blanks around its Message-ID joins the e-mail without them, which keeps either text', () => {
  const copies: Copy[] = [
    { id: 'a', header: '<1>', state: 'present' },
    { id: 'b', header: ' <1>\n', state: 'present' },
    { id: 'c', header: '<2>', state: 'empty' },
    { id: 'd', header: '\u00a0<2>', state: 'present' },
    { id: 'e', header: '<3> ', state: 'present' },
  ]
  const mails: Mail[] = [
    { key: '<1>', of: 'a', textOf: 'a' },
    { key: ' <1>\n', of: 'b', textOf: 'b' },
    { key: '<2>', of: 'c' },
    { key: '\u00a0<2>', of: 'd', textOf: 'd' },
    { key: '<3> ', of: 'e', textOf: 'e' },
  ]
  const found = upgraded(copies, mails)
  expect(found.mails).toEqual([
    ['<1>', 'a', 'of a', 2, 'text of a', 'present', null],
    ['<2>', 'c', 'of c', 2, 'text of d', 'present', null],
    ['<3>', 'e', 'of e', 1, 'text of e', 'present', null],
  ])
  expect(found.copies.filter(row => (row as unknown[])[4] === 1)).toEqual([])
})

test('a deleted e-mail with a blank Message-ID stays deleted, and its content is still purged', () => {
  const copies: Copy[] = [{ id: 'a', header: ' ', state: 'present', deletedAt: LATER }]
  const mails: Mail[] = [{ key: ' ', of: 'a', textOf: 'a', deletedAt: LATER }]
  const queued = `INSERT INTO sync_erasures (table_name, key, withdrawn_at) VALUES
    ('messages', ' ', '${LATER}'), ('message_copies', 'a', '${LATER}')`
  const found = upgraded(copies, mails, queued)
  expect(found.mails).toEqual([['id:a', 'a', 'of all', 2, 'text of a', 'present', LATER]])
  expect(found.copies).toEqual([['a', 'id:a', null, 'present', null]])
  expect(found.purges).toEqual([
    ['message_copies', 'a'],
    ['messages', 'id:a'],
  ])
})

test('the texts of copies of another sender become due, and one that the e-mail had goes back to its copy', () => {
  const copies: Copy[] = [
    { id: 'a', header: '<1>', sender: 'x@e', state: 'present' },
    { id: 'b', header: '<1>', sender: 'y@e' },
    { id: 'c', header: '<1>', sender: 'X@e' },
    { id: 'd', header: '<2>', sender: 'x@e', state: 'empty' },
    { id: 'e', header: '<2>', sender: 'y@e', state: 'present' },
    { id: 'f', header: '<2>', sender: 'z@e', state: 'present' },
    { id: 'g', header: '<3>', sender: 'x@e', state: 'present' },
    { id: 'h', header: '<3>', sender: 'x@e' },
  ]
  const mails: Mail[] = [
    { key: '<1>', of: 'a', textOf: 'a' },
    { key: '<2>', of: 'd', textOf: 'e' },
    { key: '<3>', of: 'g', textOf: 'g' },
  ]
  const found = upgraded(copies, mails)
  expect(found.copies).toEqual([
    ['a', '<1>', null, 'present', null],
    ['b', '<1>', null, 'pending', 1],
    ['c', '<1>', null, 'pending', null],
    ['d', '<2>', null, 'empty', null],
    ['e', '<2>', 'text of e', 'present', null],
    ['f', '<2>', null, 'pending', 1],
    ['g', '<3>', null, 'present', null],
    ['h', '<3>', null, 'pending', null],
  ])
  expect(found.mails.map(row => (row as unknown[]).slice(4, 6))).toEqual([
    ['text of a', 'present'],
    [null, 'empty'],
    ['text of g', 'present'],
  ])
})
