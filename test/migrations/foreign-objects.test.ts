import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { EXIT_STATUS } from '../../src/base/errors.ts'
import {
  blamedObjects,
  deadObjectErrors,
  foreignObjects,
} from '../../src/store/migrations/foreign-objects.ts'
import { newFolder, openAt, temporaryStore } from '../store/temporary-store.ts'

const TRIGGER = 'SQLITE_CONSTRAINT_TRIGGER'
const UNIQUE = 'SQLITE_CONSTRAINT_UNIQUE'

const trigger = (name: string, table: string, body: string) =>
  ({
    type: 'trigger',
    name,
    table,
    sql: `CREATE TRIGGER ${name} AFTER INSERT ON ${table} BEGIN ${body}; END`,
  }) as const
const index = (name: string, table: string, sql: string) => ({ type: 'index', name, table, sql }) as const

const LOG = trigger('to_log', 'messages', 'INSERT INTO my_log VALUES (NEW.id, my_score(NEW.id))')
const CHECK = trigger('check_title', 'meetings', "SELECT RAISE(ABORT, 'no title')")
const NAMES = index('one_name', 'teams', 'CREATE UNIQUE INDEX one_name ON teams (name)')
const LENGTHS = index('lengths', 'teams', 'CREATE UNIQUE INDEX lengths ON teams (length(name))')
const PATHS = index('paths', 'teams', "CREATE INDEX paths ON teams (json_extract(name, '$.path'))")
const PLAIN = index('plain', 'teams', 'CREATE INDEX plain ON teams (name)')
const ALL = [LOG, CHECK, NAMES, LENGTHS, PATHS, PLAIN]
const OWN = new Set(['messages', 'meetings', 'teams'])

describe('the objects that an error of SQLite is about', () => {
  test.each([
    ['SQLITE_ERROR', 'no such table: main.my_log', [LOG]],
    ['SQLITE_ERROR', 'no such function: my_score', [LOG]],
    ['SQLITE_ERROR', 'table my_log has 3 columns but 2 values were supplied', [LOG]],
    ['SQLITE_CONSTRAINT_NOTNULL', 'NOT NULL constraint failed: my_log.id', [LOG]],
    ['SQLITE_CONSTRAINT_PRIMARYKEY', 'UNIQUE constraint failed: my_log.id', [LOG]],
    [TRIGGER, 'no title', [CHECK]],
    [TRIGGER, 'composed of parts', [LOG, CHECK]],
    [UNIQUE, 'UNIQUE constraint failed: teams.name', [NAMES, LENGTHS]],
    [UNIQUE, "UNIQUE constraint failed: index 'lengths'", [LENGTHS]],
    ['SQLITE_CONSTRAINT_NOTNULL', 'NOT NULL constraint failed: messages.id', []],
    ['SQLITE_ERROR', 'no such table: main.teams', []],
    ['SQLITE_ERROR', 'no such column: nothing', []],
    ['SQLITE_ERROR', 'table teams has no column named gone', []],
    ['SQLITE_ERROR', 'cannot modify my_log because it is a view', [LOG]],
    ['SQLITE_CONSTRAINT_DATATYPE', 'cannot store TEXT value in INTEGER column my_log.id', [LOG]],
    ['SQLITE_CONSTRAINT_DATATYPE', 'cannot store TEXT value in INTEGER column teams.id', []],
    ['SQLITE_ERROR', 'no such table: main.nowhere', []],
    ['SQLITE_ERROR', 'malformed JSON', [LOG, CHECK, LENGTHS, PATHS]],
    ['SQLITE_MISMATCH', 'datatype mismatch', [LOG, CHECK, LENGTHS, PATHS]],
  ])('%s, %s', (code, message, blamed) => {
    expect(blamedObjects(Object.assign(new Error(message), { code }), ALL, OWN)).toEqual(blamed)
  })
})

const DEAD = `CREATE TABLE my_log (id);
  CREATE TRIGGER to_log AFTER INSERT ON messages BEGIN INSERT INTO my_log VALUES (NEW.id); END;
  DROP TABLE my_log`

test("parley's own triggers and indices are not foreign, an analyst's are", () => {
  const { db } = temporaryStore()
  expect(foreignObjects(db)).toEqual([])
  db.exec(
    `${DEAD}; CREATE INDEX by_size ON teams (name); CREATE TABLE mine (a); CREATE INDEX by_a ON mine (a)`,
  )
  expect(foreignObjects(db).map(({ name, table }) => [name, table])).toEqual([
    ['by_size', 'teams'],
    ['to_log', 'messages'],
  ])
})

test('a store does not open while a trigger names a table that is gone, and says which trigger and how to drop it', () => {
  const path = join(newFolder(), 'parley.db')
  const first = openAt(path)
  first.db.exec(DEAD)
  first.close()
  expect(errorOf(() => openAt(path))).toMatchObject({
    code: 'foreign-object',
    exitStatus: EXIT_STATUS.databaseUnavailable,
    message: `Cannot write ${path}: the trigger to_log on messages, which parley did not create, fails: no such table: main.my_log`,
    hint: expect.stringContaining('DROP TRIGGER "to_log";'),
  })
})

test.each([
  ['a view that the trigger reads', 'INSERT INTO my_log SELECT id FROM my_view'],
  ['a trigger that the trigger starts', 'INSERT INTO my_copies VALUES (NEW.id)'],
])('a table that is missing below %s is the fault of this trigger alone', (_, body) => {
  const path = join(newFolder(), 'parley.db')
  const first = openAt(path)
  first.db.exec(`CREATE TABLE my_log (id); CREATE TABLE my_copies (id); CREATE TABLE "my rows" (id);
    CREATE VIEW my_view AS SELECT id FROM "my rows";
    CREATE TRIGGER copied AFTER INSERT ON my_copies BEGIN INSERT INTO my_log SELECT id FROM "my rows"; END;
    CREATE TRIGGER one AFTER INSERT ON messages BEGIN ${body}; END;
    CREATE TRIGGER two AFTER INSERT ON teams BEGIN INSERT INTO my_log VALUES (upper(NEW.id)); END;
    DROP TABLE "my rows"`)
  first.close()
  expect(errorOf(() => openAt(path))).toMatchObject({
    message: expect.stringMatching(/the trigger one on messages, .* fails: no such table: main\.my rows$/),
  })
})

test('a table that a statement of parley misses is not the fault of a trigger or index', async () => {
  const store = temporaryStore()
  store.db.exec(`CREATE TABLE my_log (id);
    CREATE TRIGGER to_log AFTER INSERT ON messages BEGIN INSERT INTO my_log VALUES (NEW._id); END;
    CREATE INDEX my_idx ON messages (lower(subject))`)
  await expect(store.transaction(() => store.db.exec('DELETE FROM nowhere'))).rejects.toMatchObject({
    code: 'SQLITE_ERROR',
    message: 'no such table: nowhere',
  })
})

function errorOf(work: () => unknown): unknown {
  try {
    return work()
  } catch (error) {
    return error
  }
}

test('a write that a trigger refuses names the trigger, and no text of the row', async () => {
  const store = temporaryStore()
  store.db.exec(`CREATE TRIGGER picky BEFORE INSERT ON teams WHEN NEW.name = 'hush' BEGIN
    SELECT RAISE(ABORT, 'not this one'); END`)
  const refused = store.transaction(() =>
    store.db.exec("INSERT INTO teams (id, name, _first_seen_at, _synced_at) VALUES ('t', 'hush', '-', '-')"),
  )
  await expect(refused).rejects.toThrow(/the trigger picky on teams, .* fails: not this one$/)
  await expect(refused).rejects.not.toThrow('hush')
})

test.each([
  ["json_extract('{}', NEW.name)", /the trigger picky on teams, .* fails: bad JSON path: …$/],
  ['json(NEW.name)', /the trigger picky on teams, .* fails: malformed JSON$/],
])('a trigger that cannot compute %s is named, without text of the row', async (value, message) => {
  const store = temporaryStore()
  store.db.exec(`CREATE TRIGGER picky BEFORE INSERT ON teams BEGIN SELECT ${value}; END`)
  const failed = store.transaction(() =>
    store.db.exec("INSERT INTO teams (id, name, _first_seen_at, _synced_at) VALUES ('t', 'hush', '-', '-')"),
  )
  await expect(failed).rejects.toThrow(message)
})

test('the triggers that SQLite cannot compile are found without a write', () => {
  const { db, path } = temporaryStore()
  db.exec(`CREATE TRIGGER fine AFTER DELETE ON teams BEGIN DELETE FROM sync_meta WHERE key = OLD.id; END`)
  expect(deadObjectErrors(db, path)).toEqual([])
  db.exec(`${DEAD}; CREATE TRIGGER old_column AFTER UPDATE ON teams BEGIN SELECT NEW.gone; END`)
  expect(deadObjectErrors(db, path).map(({ message }) => message)).toEqual([
    expect.stringContaining('the trigger old_column on teams'),
    expect.stringContaining('the trigger to_log on messages'),
  ])
})
