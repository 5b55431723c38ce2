import { describe, expect, test } from 'vitest'
import { TABLES } from '../../src/catalog/catalog.ts'
import { quote } from '../../src/store/database/sql.ts'
import { type TemporaryStore, temporaryStore } from './temporary-store.ts'

/** Tables that an analyst added to the file, with foreign keys to parley's rows. */

const meeting = (title: string, people: readonly string[]) => ({
  meeting_id: 'm',
  title,
  attendees: people.map(name => ({ attendee_user_name: name, teams: [{ team_id: 't', name: 'East' }] })),
  summaries: [{ chapter_title: title, chapter_items: people.map(item => ({ item })) }],
  action_items: people.map(name => ({ id: name, text: name })),
})

const team = (...members: readonly string[]) => ({ id: 't', name: 'East', member_ids: members })

/** For each table of parley, a table that refers to each of its rows. */
function referToEverything({ db }: TemporaryStore, onDelete: string): string[] {
  return [...TABLES.values()].flatMap(({ table: { name, key } }) => {
    const columns = key.map(quote).join(', ')
    db.exec(
      `CREATE TABLE ${quote(`my_${name}`)} (${columns},
         FOREIGN KEY (${columns}) REFERENCES ${quote(name)} (${columns}) ${onDelete});
       INSERT INTO ${quote(`my_${name}`)} SELECT ${columns} FROM ${quote(name)}`,
    )
    const rows = db
      .prepare(`SELECT count(*) FROM ${quote(`my_${name}`)}`)
      .pluck()
      .get()
    return rows === 0 ? [] : [`my_${name}`]
  })
}

const rowsOf = ({ db }: TemporaryStore, tables: readonly string[]) =>
  tables.map(table => db.prepare(`SELECT * FROM ${quote(table)}`).all())

describe.each(['', 'ON DELETE RESTRICT', 'ON DELETE CASCADE', 'ON DELETE SET NULL'])(
  "an analyst's tables with foreign keys (%s)",
  onDelete => {
    test('the foreign keys do not block the replacement of rows, and no row of the analyst is lost', () => {
      const store = temporaryStore()
      store.put('teams', [team('a', 'b')])
      store.put('meetings', [meeting('first', ['a', 'b'])])
      const tables = referToEverything(store, onDelete)
      expect(tables).toEqual(expect.arrayContaining(['my_meeting_attendee_teams', 'my_team_members']))
      const before = rowsOf(store, tables)
      store.put('teams', [team('c')])
      store.put('meetings', [meeting('second', ['c'])])
      expect(store.column('SELECT name FROM meeting_attendees')).toEqual(['c'])
      expect(store.column('SELECT item FROM meeting_chapter_items')).toEqual(['c'])
      expect(store.column('SELECT member_id FROM team_members')).toEqual(['c'])
      expect(rowsOf(store, tables)).toEqual(before)
      for (const { table } of TABLES.values())
        expect(store.db.pragma(`foreign_key_check(${table.name})`)).toEqual([])
    })
  },
)
