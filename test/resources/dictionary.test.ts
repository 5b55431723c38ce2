import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { fullMeaning, MISSING, NEVER_NULL } from '../../src/dictionary/described-table.ts'
import { DICTIONARY, describedTable } from '../../src/dictionary/dictionary.ts'
import { isDerived } from '../../src/dictionary/report-tables.ts'
import { INTERNAL_TABLES, isInternal, SEARCH_TABLES } from '../../src/dictionary/sync-tables.ts'
import { MARKS, SEARCH_INDICES } from '../../src/store/search/index-schema.ts'
import { META } from '../../src/store/sync/meta.ts'
import { openAt, type TemporaryStore, withShortcuts } from '../store/temporary-store.ts'
import { isOfType } from '../support/dictionary-types.ts'

interface SchemaColumn {
  name: string
  type: string
  notnull: number
  pk: number
}

interface Entry {
  table_name: string
  column_name: string
  position: number
  type: string
  null_meaning: string
  description: string
  source_field: string | null
  unit: string | null
  example: string | null
}

let folder: string
let store: TemporaryStore

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'parley-dictionary-'))
  const path = join(folder, 'parley.db')
  store = withShortcuts(openAt(path), folder, path)
})

afterAll(() => {
  store.close()
  rmSync(folder, { recursive: true })
})

/** Tables and views of the warehouse that are not parley's alone. */
const publicNames = (): string[] =>
  (store.column("SELECT name FROM pragma_table_list WHERE schema = 'main'") as string[]).filter(
    name => !isInternal(name),
  )

const columnsOf = (table: string) =>
  store.db
    .prepare('SELECT name, type, "notnull", pk FROM pragma_table_xinfo(?) ORDER BY cid')
    .all(table) as SchemaColumn[]

const entriesOf = (table: string) =>
  store.db
    .prepare('SELECT * FROM data_dictionary WHERE table_name = ? ORDER BY position')
    .all(table) as Entry[]

/** The dictionary entry of one column. */
const entryOf = (table: string, column: string): Partial<Entry> =>
  entriesOf(table).find(entry => entry.column_name === column) ?? {}

const told = () => store.all('SELECT * FROM data_dictionary') as unknown as Entry[]

const STORED: Readonly<Record<string, string>> = {
  text: 'TEXT',
  timestamp: 'TEXT',
  date: 'TEXT',
  json: 'TEXT',
  integer: 'INTEGER',
  boolean: 'INTEGER',
  real: 'REAL',
  any: 'ANY',
}

/** Derived tables declare what clients show. */
const DECLARED: Readonly<Record<string, string>> = {
  timestamp: 'TIMESTAMP',
  date: 'DATE',
  boolean: 'BOOLEAN',
}

describe('the data dictionary of a new warehouse', () => {
  test('the dictionary has every column of every table and view, in the order of the table', () => {
    const missing = publicNames().filter(
      table =>
        entriesOf(table)
          .map(entry => entry.column_name)
          .join() !==
        columnsOf(table)
          .map(({ name }) => name)
          .join(),
    )
    expect(
      missing.map(table => [
        table,
        entriesOf(table).map(entry => entry.column_name),
        columnsOf(table).map(({ name }) => name),
      ]),
    ).toEqual([])
  })

  test('the dictionary has no table that does not exist', () => {
    const names = publicNames()
    const strangers = new Set(
      told()
        .map(({ table_name }) => table_name)
        .filter(name => !names.includes(name)),
    )
    expect([...strangers]).toEqual([])
  })

  test('the dictionary leaves out internal tables, and every internal name is an existing table or view', () => {
    const names = store.column("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")
    expect(names).toEqual(expect.arrayContaining(Object.keys(INTERNAL_TABLES)))
    expect(told().filter(({ table_name }) => isInternal(table_name))).toEqual([])
  })

  test('the dictionary has a sentence for each full-text index and for the table of indices', () => {
    expect(Object.keys(SEARCH_TABLES).sort()).toEqual(
      [...SEARCH_INDICES.map(({ name }) => name), MARKS].sort(),
    )
  })

  test('the dictionary has the types of SQLite', () => {
    const tables = store.column("SELECT name FROM sqlite_master WHERE type = 'table'") as string[]
    const wrong = tables.flatMap(table =>
      entriesOf(table).filter(({ type, position }) => {
        const stored = isDerived(table) ? { ...STORED, ...DECLARED } : STORED
        return stored[type] !== columnsOf(table)[position]?.type
      }),
    )
    expect(wrong).toEqual([])
  })

  test('the dictionary says that a column is never NULL when the schema forbids it', () => {
    const tables = store.column("SELECT name FROM sqlite_master WHERE type = 'table'") as string[]
    const wrong = tables.flatMap(table =>
      entriesOf(table).filter(({ null_meaning, position }) => {
        const column = columnsOf(table)[position]
        return column?.notnull === 1 && null_meaning !== NEVER_NULL
      }),
    )
    expect(wrong).toEqual([])
  })

  test('the dictionary marks the keys of the schema', () => {
    for (const { name, form, columns } of DICTIONARY) {
      if (form === 'view') continue
      const unique = store.column(
        `SELECT name FROM pragma_index_list('${name}') WHERE "unique" AND NOT partial`,
      )
      const keys = [
        columnsOf(name)
          .filter(({ pk }) => pk > 0)
          .map(column => column.name),
        ...unique.map(index => store.column(`SELECT name FROM pragma_index_info('${index}')`)),
      ].map(key => [...key].sort())
      expect(keys, name).toContainEqual(
        columns
          .filter(({ isKey }) => isKey)
          .map(column => column.name)
          .sort(),
      )
    }
  })

  test('the dictionary explains every value and NULL, and shows an example', () => {
    const incomplete = told().filter(
      ({ description, null_meaning, example }) =>
        !/^\S.*[.!?…]$/s.test(description) || !/^\S.*\.$/s.test(null_meaning) || !example,
    )
    expect(incomplete).toEqual([])
  })

  test('the examples have the type of their column', () => {
    const wrong = told().filter(({ type, example }) => !isOfType(type, example))
    expect(wrong).toEqual([])
  })

  test('the dictionary has a unit for every quantity, or says that the API does not state it', () => {
    const unitless = told().filter(
      ({ type, unit, column_name: name, description }) =>
        ['integer', 'real'].includes(type) &&
        unit === null &&
        !NUMBERS.test(name) &&
        !description.startsWith('Internal'),
    )
    expect(unitless.map(({ table_name, column_name }) => `${table_name}.${column_name}`)).toEqual([])
  })

  test.each([
    ['meetings', 'recording_duration', 'not stated'],
    ['live_meeting_speakers', 'speaker_ratio', 'not stated'],
    ['transcript_words', 'start_time', 'not stated'],
    ['transcript_entries', 'elapsed_seconds', 'seconds'],
    ['access_logs', 'duration_ms', 'milliseconds'],
    ['members', 'name', null],
  ])('the unit of %s.%s is %s', (table, column, unit) => {
    expect(entryOf(table, column).unit).toBe(unit)
  })

  test.each([
    ['meetings', 'url', 'service_meeting_url'],
    ['activities', 'actor_id', 'actor.id'],
    ['team_members', 'member_id', 'member_ids[]'],
    ['meeting_attendee_teams', 'team_id', 'attendees[].teams[].team_id'],
    ['meeting_attendee_teams', 'meeting_id', 'meeting_id'],
    ['transcript_entries', 'text', '[].text'],
    ['messages', '_text_from', null],
  ])('%s.%s comes from the field %s of the API', (table, column, source) => {
    expect(entryOf(table, column).source_field).toBe(source)
  })

  test.each([
    ['meetings', 'platform', 'The API sent null or nothing, or no detail of the meeting (`access`).'],
    [
      'live_meetings',
      'title',
      'The API sent null or nothing, or no detail of the meeting (`access`), or the value was purged.',
    ],
    ['messages', 'text', '`text_state` says why, or the value was purged.'],
    ['live_messages', 'text', '`text_state` says why.'],
    ['collections', 'name', 'The API sent null or nothing, or the value was purged.'],
    ['live_collections', 'name', MISSING],
    ['live_collections', 'updated_at', MISSING],
    ['live_collections', 'id', NEVER_NULL],
    ['meeting_owner_teams', 'name', 'The API sent null or nothing, or the value was purged.'],
    ['meeting_attendee_teams', 'name', MISSING],
  ])('NULL in %s.%s means: %s', (table, column, meaning) => {
    expect(entryOf(table, column).null_meaning).toBe(meaning)
  })

  test('row names refer to existing tables and columns', () => {
    const targets = DICTIONARY.flatMap(({ columns }) => columns.flatMap(({ refersTo }) => refersTo))
    const missing = targets.filter(target => {
      const [table = '', column] = target.split('.')
      return !describedTable(table)?.columns.some(({ name }) => name === column)
    })
    expect(targets.length).toBeGreaterThan(50)
    expect(missing).toEqual([])
  })

  test('the owner of the rows is named once for a value', () => {
    const silent = DICTIONARY.flatMap(({ name, columns }) =>
      columns.filter(column =>
        column.refersTo.some(
          target => entryOf(name, column.name).description?.split(`\`${target}\``).length !== 2,
        ),
      ),
    )
    expect(silent).toEqual([])
    expect(entryOf('meeting_speakers', 'meeting_id').description).toBe('Meeting. Joins `meetings.id`.')
  })

  test('the text fits in a comment of SQL', () => {
    const broken = DICTIONARY.flatMap(({ about, columns }) => [about, ...columns.map(fullMeaning)]).filter(
      text => /\*\/|\/\*|\n/.test(text),
    )
    expect(broken).toEqual([])
  })
})

/** Columns that are numbers but count or measure nothing. */
const NUMBERS = /^(_?id|position|.*_position|order|publication|status_code|year|fiscal_year|weekday)$/

describe('the data dictionary of a warehouse that is opened again', () => {
  const reopened = (change: (path: string) => void): TemporaryStore => {
    const path = join(mkdtempSync(join(folder, 'again-')), 'parley.db')
    openAt(path).close()
    change(path)
    return withShortcuts(openAt(path), folder, path)
  }

  test('the dictionary does not change while the declarations are the same', () => {
    const again = reopened(path => {
      const before = openAt(path)
      before.db.exec("UPDATE data_dictionary SET description = 'mine' WHERE table_name = 'members'")
      before.close()
    })
    expect(
      again.column("SELECT DISTINCT description FROM data_dictionary WHERE table_name = 'members'"),
    ).toEqual(['mine'])
    again.close()
  })

  test('the dictionary is written again when the declarations differ, whatever it had', () => {
    const again = reopened(path => {
      const before = openAt(path)
      before.db.exec("UPDATE data_dictionary SET description = 'old', table_name = 'gone_' || table_name")
      before.state.setMeta(META.dictionary, 'of another version')
      before.close()
    })
    expect(again.column("SELECT count(*) FROM data_dictionary WHERE description = 'old'")).toEqual([0])
    expect(again.column('SELECT count(*) FROM data_dictionary')).toEqual(
      store.column('SELECT count(*) FROM data_dictionary'),
    )
    again.close()
  })
})
