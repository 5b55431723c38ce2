import { cpSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { EXIT_STATUS } from '../../src/base/errors.ts'
import { type DescribedTable, tableFromLines } from '../../src/dictionary/described-table.ts'
import { DICTIONARY } from '../../src/dictionary/dictionary.ts'
import { dataFindings } from '../../src/doctor/data.ts'
import { dataTests } from '../../src/store/data-tests/plan.ts'
import { runDataTests } from '../../src/store/data-tests/run.ts'
import { openSqlite } from '../../src/store/database/sqlite.ts'
import type { Sqlite } from '../../src/store/database/sqlite-types.ts'
import { META } from '../../src/store/sync/meta.ts'
import { emptyFolder, parley } from '../cli/parley.ts'
import { temporaryStore } from '../store/temporary-store.ts'
import { placeFor, startWorkspace } from './api-server.ts'

/** Filled once: each test has a copy. */
let filled: string

beforeAll(async () => {
  const simulator = await startWorkspace({ now: 'real' })
  const { cwd, env, file } = placeFor(simulator)
  const ended = await parley(['backfill', '--database', file, '--log-level', 'silent'], { cwd, env })
  expect(ended.status).toBe(0)
  await simulator.close()
  filled = file
})

/** A copy of the filled warehouse, after these statements. */
function changed(sql = ''): { file: string; db: Sqlite } {
  const folder = emptyFolder()
  const file = join(folder, basename(filled))
  cpSync(filled, file)
  const db = openSqlite(file, {})
  onTestFinished(() => void db.close())
  // As parley writes: the rows below a removed row stay.
  db.pragma('foreign_keys = OFF')
  db.exec(sql)
  return { file, db }
}

const findingsIn = (db: Sqlite, isWritten = false) => [...dataFindings({ db, isWritten })]

/** The findings that are no fault of a filled warehouse are the same before and after a change. */
const wrongAfter = (sql: string) => findingsIn(changed(sql).db).filter(({ mark }) => mark === 'wrong')

describe('a filled warehouse', () => {
  test('no test fails, and the command writes and sends nothing', async () => {
    const { file } = changed()
    const { status, stdout, stderr } = await parley(['doctor', '--data', '--json', '--database', file])
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    const { findings, wrong, warnings } = JSON.parse(stdout)
    expect({ wrong, warnings }).toEqual({ wrong: 0, warnings: 0 })
    const checks = findings.flatMap(({ mark, check }: { mark: string; check: string }) =>
      mark === 'ok' ? check : [],
    )
    expect(checks).toEqual(['keys', 'values', 'references', 'sums'])
    expect(findings).toContainEqual({
      mark: 'note',
      check: 'speakers',
      found: expect.stringMatching(
        /^[\d,]+ of [\d,]+ \(\d+ %\) speakers of meetings are matched to a person/,
      ),
    })
  })

  test('no finding names a row by a value that says who people are', () => {
    const { db } = changed()
    const people = db
      .prepare<unknown[], string>(
        `SELECT handle FROM message_participants UNION SELECT email FROM members UNION SELECT email FROM meeting_attendees
         UNION SELECT name FROM members UNION SELECT display_name FROM message_participants
         UNION SELECT speaker_name FROM meeting_speakers UNION SELECT subject FROM messages`,
      )
      .pluck()
      .all()
      .filter(text => text !== null && text !== '')
    expect(people.length).toBeGreaterThan(20)
    const enforced = { unique: new Set<string>(), notNull: new Set<string>() }
    const shown = new Map(dataTests(DICTIONARY, () => enforced).map(each => [each.table, each.named]))
    const values = [...shown].flatMap(([table, named]) => {
      const columns = named.filter(name => name !== 'null_column')
      if (
        columns.length === 0 ||
        db.prepare('SELECT 1 FROM sqlite_master WHERE name = ?').get(table) === undefined
      )
        return []
      return db
        .prepare<unknown[], unknown[]>(
          `SELECT ${columns.map(name => `"${name}"`).join(', ')} FROM "${table}"`,
        )
        .raw()
        .all()
        .flat()
    })
    expect(values.length).toBeGreaterThan(1000)
    const known = new Set<unknown>(people.map(text => text.toLowerCase()))
    expect(values.filter(value => known.has(String(value).toLowerCase()))).toEqual([])
  })
})

describe('a warehouse that is not as its descriptions promise', () => {
  test('a row without the row that it belongs to fails with the keys of the first rows', async () => {
    const { file, db } = changed(
      'DELETE FROM meetings WHERE id = (SELECT min(meeting_id) FROM meeting_speakers)',
    )
    const [gone] = db.prepare('SELECT min(meeting_id) FROM meeting_speakers').pluck().all() as string[]
    const count = db.prepare('SELECT count(*) FROM meeting_speakers WHERE meeting_id = ?').pluck().get(gone)
    const { status, stdout } = await parley(['doctor', '--data', '--database', file])
    expect(status).toBe(EXIT_STATUS.databaseUnavailable)
    expect(stdout).toContain(
      `WRONG    references: meeting_speakers.meeting_id: ${count} rows without a row in meetings.id`,
    )
    expect(stdout).toContain(`${gone} / 0`)
    expect(stdout).toContain('Next: Do as suggested, then run parley doctor --data again.')
  })

  test('a value that parley does not set fails, and one that the API has not stated is worth knowing', () => {
    const { db } = changed(
      "UPDATE messages SET text_state = 'odd' WHERE _id = 1; UPDATE activities SET source_type = 'CALL' WHERE _id = 1",
    )
    expect(findingsIn(db).filter(({ check, mark }) => check === 'values' && mark !== 'ok')).toEqual([
      expect.objectContaining({
        mark: 'note',
        found: expect.stringMatching(/^activities\.source_type: 1 row /),
      }),
      expect.objectContaining({
        mark: 'wrong',
        found: expect.stringMatching(/^messages\.text_state: 1 row /),
      }),
    ])
  })

  test('a sum that differs from the base tables fails', () => {
    expect(wrongAfter('UPDATE messages SET copy_count = copy_count + 1 WHERE _id = 1')).toEqual([
      expect.objectContaining({
        check: 'sums',
        data: expect.objectContaining({ table: 'messages', rows: 1 }),
      }),
    ])
    const one =
      '(header_message_id, role, handle) = (SELECT header_message_id, role, handle FROM message_participants)'
    expect(wrongAfter(`DELETE FROM message_participants WHERE ${one}`)).toEqual([
      expect.objectContaining({
        check: 'sums',
        data: expect.objectContaining({ table: 'message_participants', rows: 1 }),
      }),
    ])
  })

  test('each row that differs from the base tables counts once, and is named by its whole key', () => {
    const three =
      "CREATE TABLE moved AS SELECT kind, conversation_id FROM conversations WHERE kind = 'mail' LIMIT 3"
    const isMoved = '(kind, conversation_id) IN (SELECT kind, conversation_id FROM moved)'
    const { db } = changed(`${three}; UPDATE conversations SET day = date(day, '+1 day') WHERE ${isMoved}`)
    const keys = db.prepare("SELECT kind || ' / ' || conversation_id FROM moved").pluck().all()
    expect(findingsIn(db)).toContainEqual(
      expect.objectContaining({
        found: expect.stringMatching(/days are those of the calendar\. 3 rows differ: mail \/ /),
        data: expect.objectContaining({ rows: 3, keys: expect.arrayContaining(keys) }),
      }),
    )
  })

  test.each([
    ['mail_questions', 'DELETE FROM _mail_questions WHERE answered IS NOT NULL'],
    ['conversations', "UPDATE people SET side = 'ours'"],
    ['people', "UPDATE people SET side = 'theirs'"],
    ['conversations', 'UPDATE conversations SET is_external = 0'],
    ['conversations', "UPDATE people SET side = 'unknown'"],
    ['conversations', "UPDATE conversations SET day = date(day, '+1 day') WHERE _id = 1"],
    ['deal_versions', 'UPDATE deal_versions SET amount = amount + 1 WHERE to_at IS NULL'],
    ['deal_versions', "UPDATE stage_outcomes SET outcome = 'won'"],
    ['calendar', 'UPDATE calendar SET is_workday = 1 - is_workday'],
    ['calendar', "UPDATE calendar SET work_hours_before = work_hours_before + 1 WHERE day > '2026-01-01'"],
    ['column_values', 'UPDATE column_values SET rows = rows + 1'],
    [
      'meetings',
      'DELETE FROM transcript_entries WHERE meeting_id = (SELECT meeting_id FROM transcript_entries)',
    ],
    [
      'messages',
      "UPDATE messages SET text = NULL WHERE _id = (SELECT _id FROM messages WHERE text_state = 'present')",
    ],
  ])('rows of %s that are not what they are made of fail: %s', (table, sql) => {
    const tables = wrongAfter(sql).flatMap(({ check, data }) => (check === 'sums' ? data?.table : []))
    expect(tables).toContain(table)
  })

  test('values that are counted at most once an hour are not compared with rows that changed since', () => {
    const later = 'UPDATE sync_changed_parts SET change = change + 1'
    expect(wrongAfter(`UPDATE column_values SET rows = rows + 1; ${later}`)).toEqual([])
  })

  test('a deal that the view has twice, and one without its owner state, fail', () => {
    const twice = `CREATE TABLE d AS SELECT * FROM deals; DROP VIEW deal_facts; DROP VIEW deals;
      UPDATE d SET owner_state = NULL WHERE deal_id = (SELECT max(deal_id) FROM d);
      CREATE VIEW "deals" /* One deal. */ AS SELECT * FROM d UNION ALL SELECT * FROM (SELECT * FROM d ORDER BY deal_id LIMIT 1)`
    const wrong = wrongAfter(twice)
    expect(wrong.map(({ check, data }) => [check, data?.table, data?.rows])).toEqual([
      ['keys', 'deals', 1],
      ['keys', 'deals', 1],
    ])
    expect(wrong[1]?.data?.keys[0]).toMatch(/ \/ owner_state$/)
  })

  test('a deal that a view leaves out fails', () => {
    const fewer = `CREATE TABLE d AS SELECT * FROM deals; DROP VIEW deals;
      CREATE VIEW "deals" /* One deal. */ AS SELECT * FROM d WHERE deal_id <> (SELECT min(deal_id) FROM d)`
    expect(wrongAfter(fewer)).toEqual(
      ['deals', 'deal_versions'].map(table =>
        expect.objectContaining({ check: 'sums', data: expect.objectContaining({ table, rows: 1 }) }),
      ),
    )
  })

  test.each([
    ['without a running process', '', false, 'wrong'],
    ['that a running process may write in a moment', '', true, 'warning'],
    ['behind what was read', 'INSERT INTO _waiting_keys (kind, key) VALUES (1, 1)', false, 'warning'],
    [
      'that a stopped backfill has not computed',
      `DELETE FROM sync_meta WHERE key = '${META.reportRules}'`,
      false,
      'warning',
    ],
  ])('the finding about a table for reports, %s, is marked by its cause', (_, sql, isWritten, mark) => {
    const { db } = changed(
      `DELETE FROM calendar WHERE day = (SELECT day FROM calendar ORDER BY day LIMIT 1 OFFSET 9); ${sql}`,
    )
    const found = findingsIn(db, isWritten).filter(({ data }) => data?.table === 'calendar')
    expect(new Set(found.map(finding => finding.mark))).toEqual(new Set([mark]))
  })
})

test('a file of an older version is tested as far as it goes', () => {
  const { db } = changed(
    'DROP VIEW deal_facts; DROP VIEW company_facts; DROP VIEW deals; DROP TABLE pipelines; ALTER TABLE stage_outcomes DROP COLUMN outcome',
  )
  const findings = findingsIn(db)
  expect(findings.filter(({ mark }) => mark === 'wrong')).toEqual([])
  expect(findings.at(-1)).toMatchObject({ check: 'not tested', mark: 'note' })
  expect(findings.at(-1)?.found).toContain('stage_outcomes.outcome')
  expect(findings.at(-1)?.found).toContain('pipelines')
})

test('a table of other people is not tested as one of parley', () => {
  const store = temporaryStore()
  store.exec('DROP TABLE calendar; CREATE TABLE calendar (mine TEXT)')
  expect(findingsIn(store.db)).toContainEqual(
    expect.objectContaining({
      check: 'not tested',
      found: expect.stringMatching(/calendar.*: parley did not create them$/),
    }),
  )
})

test('a file that is missing or empty is wrong, since nothing is tested', async () => {
  const file = join(emptyFolder(), 'none.db')
  const found = async () => {
    const { status, stdout } = await parley(['doctor', '--data', '--database', file])
    return [status, stdout.split('\n', 1)[0]]
  }
  expect(await found()).toEqual([73, `WRONG    database: ${file} does not exist, so nothing was tested`])
  writeFileSync(file, '')
  expect(await found()).toEqual([73, `WRONG    database: ${file} is empty, so nothing was tested`])
})

test('a table that is added to the descriptions is tested without other code', () => {
  const rooms: DescribedTable = tableFromLines(
    { name: 'rooms', form: 'table', area: 'reports', about: 'One room.' },
    {
      building: { kind: 'text', about: 'Building.', isKey: true },
      room: { kind: 'integer', about: 'Number.', isKey: true },
      state: { kind: 'text', about: 'State.', values: ['free', 'taken'] },
    },
  )
  const seats = tableFromLines(
    {
      ...{ name: 'seats', form: 'table', area: 'reports', about: 'One seat.' },
      recounts: [
        {
          about: 'every room has seats.',
          key: ['building', 'room'],
          ours: 'SELECT DISTINCT building, room FROM seats',
          base: 'SELECT building, room FROM rooms',
        },
      ],
    },
    {
      seat: { kind: 'integer', about: 'Number.', isKey: true },
      building: { kind: 'text', about: 'Building.', refersTo: ['rooms.building'], resolves: true },
      room: { kind: 'integer', about: 'Room.', refersTo: ['rooms.room'], resolves: true },
    },
  )
  const { db } = temporaryStore()
  db.exec(`CREATE TABLE rooms (building TEXT, room INTEGER, state TEXT);
    CREATE TABLE seats (seat INTEGER PRIMARY KEY, building TEXT NOT NULL, room INTEGER NOT NULL);
    INSERT INTO rooms VALUES ('A', 1, 'free'), ('A', 1, 'free'), ('B', 2, 'odd'), ('B', NULL, 'free');
    INSERT INTO seats VALUES (1, 'A', 1), (2, 'A', 2), (3, 'B', 2)`)
  const unmet = [...runDataTests(db, [rooms, seats])].flatMap(result =>
    'missing' in result || result.rows === 0 ? [] : [[result.test.kind, result.test.table, result.keys]],
  )
  expect(unmet).toEqual([
    ['keys', 'rooms', ['A / 1']],
    ['keys', 'rooms', ['B /  / room']],
    ['values', 'rooms', ['B / 2']],
    // Both columns name one room: room 2 is in another building.
    ['references', 'seats', ['2']],
    ['sums', 'seats', ['A / 2', 'B / ']],
  ])
})

test('keys of people are not among the named columns, whatever the table', () => {
  const people = tableFromLines(
    { name: 'people', form: 'table', area: 'reports', about: 'One address.' },
    { person_id: { kind: 'text', about: 'Address.', isKey: true, isContent: true } },
  )
  const enforced = { unique: new Set<string>(), notNull: new Set<string>() }
  expect(dataTests([people], () => enforced).map(({ named }) => named)).toEqual([[], ['null_column']])
})
