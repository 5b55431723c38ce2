import { readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { EXIT_STATUS } from '../../src/base/errors.ts'
import { loadSettings } from '../../src/config/load-settings.ts'
import { checkMachine } from '../../src/doctor/machine.ts'
import type { LeftOut } from '../../src/store/database/existing-tables.ts'
import { openSqlite } from '../../src/store/database/sqlite.ts'
import type { Sqlite } from '../../src/store/database/sqlite-types.ts'
import { ownObjectsIn } from '../../src/store/migrations/foreign-objects.ts'
import { migrate, takenNameErrors } from '../../src/store/migrations/migrate.ts'
import { openWarehouse, type WarehouseOptions } from '../../src/store/open-warehouse.ts'
import { newFolder, openAt } from '../store/temporary-store.ts'
import { migrationsOf, migrationsWith } from './older-version.ts'

/** Objects that analysts may have created in a warehouse. */
const THEIRS = `
  CREATE TABLE my_log (what TEXT);
  CREATE TABLE my_notes (team TEXT REFERENCES teams (id), note TEXT);
  INSERT INTO my_notes VALUES ('nowhere', 'kept');
  CREATE TABLE my_names (name TEXT REFERENCES teams (name));
  INSERT INTO my_names VALUES ('kept');
  CREATE VIEW my_teams AS SELECT id, name FROM teams;
  CREATE TRIGGER my_insert INSTEAD OF INSERT ON my_teams BEGIN INSERT INTO my_log VALUES (NEW.id); END;
  CREATE TRIGGER live_insert INSTEAD OF INSERT ON live_teams BEGIN INSERT INTO my_log VALUES (NEW.id); END;
  CREATE TRIGGER my_watch AFTER INSERT ON team_members BEGIN INSERT INTO my_log VALUES (NEW.team_id); END;
  CREATE TRIGGER my_check AFTER INSERT ON my_notes BEGIN INSERT INTO my_log SELECT member_id FROM team_members; END;
  CREATE INDEX my_members ON team_members (member_id, team_id);
  CREATE INDEX my_log_by_what ON my_log (what);`

/** The statements with which drizzle rebuilds a table. */
const REBUILD = `
  CREATE TABLE \`__new_team_members\` (
    \`team_id\` text NOT NULL, \`member_id\` text NOT NULL, \`_extra\` text,
    PRIMARY KEY(\`team_id\`, \`member_id\`),
    FOREIGN KEY (\`team_id\`) REFERENCES \`teams\`(\`id\`) ON DELETE cascade
  ) STRICT, WITHOUT ROWID;
  INSERT INTO \`__new_team_members\` SELECT team_id, member_id, _extra FROM \`team_members\`;
  DROP TABLE \`team_members\`;
  ALTER TABLE \`__new_team_members\` RENAME TO \`team_members\`;
  CREATE INDEX \`team_members_by_member\` ON \`team_members\` (\`member_id\`);`

/** A warehouse with a team and with the objects of analysts. */
function used(theirs = THEIRS): string {
  const path = `${newFolder()}/parley.db`
  const store = openAt(path)
  store.db.exec(`
    INSERT INTO teams (id, name, _first_seen_at, _synced_at) VALUES ('t', 'Sales', '-', '-');
    INSERT INTO team_members (team_id, member_id) VALUES ('t', 'm')`)
  store.close()
  // Foreign keys are off, as in the sqlite3 shell.
  const analyst = openSqlite(path)
  analyst.pragma('foreign_keys = OFF')
  analyst.exec(theirs)
  analyst.close()
  return path
}

function upgraded(path: string, sql: string, more: Partial<WarehouseOptions> = {}): Sqlite {
  const db = openWarehouse({ path, migrations: migrationsWith(dirname(path), '0900_next', sql), ...more })
  onTestFinished(() => {
    db.close()
  })
  return db
}

const objectsIn = (db: Sqlite): unknown[] =>
  db.prepare("SELECT type, name, sql FROM sqlite_master WHERE name NOT LIKE '%900%' ORDER BY 1, 2").all()

test('tables, views, triggers and indices that parley did not create survive the rebuild of a table', () => {
  const path = used()
  const before = openSqlite(path, { readonly: true })
  const theirs = objectsIn(before).filter(object => /my_|live_insert/.test(JSON.stringify(object)))
  before.close()
  expect(theirs).toHaveLength(10)
  const leftOut: LeftOut[] = []
  const db = upgraded(path, REBUILD, { onLeftOut: object => leftOut.push(object) })
  expect(leftOut).toEqual([])
  expect(objectsIn(db)).toEqual(expect.arrayContaining(theirs))
  expect(db.prepare('SELECT note FROM my_notes').pluck().all()).toEqual(['kept'])
  db.exec("INSERT INTO live_teams (id) VALUES ('seen'); INSERT INTO my_teams (id) VALUES ('seen too')")
  db.exec("INSERT INTO team_members (team_id, member_id) VALUES ('t', 'm2')")
  expect(db.prepare('SELECT what FROM my_log').pluck().all()).toEqual(['seen', 'seen too', 't'])
})

test('an index of another program over a dropped column is left out and reported, and the upgrade continues', () => {
  const path = used('CREATE INDEX my_extra ON team_members (_extra)')
  const leftOut: LeftOut[] = []
  const db = upgraded(path, 'ALTER TABLE team_members DROP COLUMN _extra;', {
    onLeftOut: object => leftOut.push(object),
  })
  expect(leftOut).toMatchObject([{ type: 'index', name: 'my_extra', table: 'team_members' }])
  expect(db.prepare('SELECT count(*) FROM team_members').pluck().get()).toBe(1)
})

test('a trigger on a view of parley survives the replacement of the view without a migration', () => {
  const path = used()
  const older = openSqlite(path)
  older.exec('DROP VIEW live_teams; CREATE VIEW live_teams AS SELECT id FROM teams')
  older.exec(
    'CREATE TRIGGER again INSTEAD OF INSERT ON live_teams BEGIN INSERT INTO my_log VALUES (NEW.id); END',
  )
  older.close()
  const db = openWarehouse({ path })
  onTestFinished(() => {
    db.close()
  })
  db.exec("INSERT INTO live_teams (id, name) VALUES ('seen', 'x')")
  expect(db.prepare('SELECT what FROM my_log').pluck().all()).toEqual(['seen'])
})

test('a foreign table with the name of a view of parley stays', () => {
  const path = used()
  const analyst = openSqlite(path)
  analyst.exec("DROP VIEW live_teams; CREATE TABLE live_teams (x); INSERT INTO live_teams VALUES ('theirs')")
  analyst.close()
  const db = upgraded(path, REBUILD)
  expect(db.prepare('SELECT x FROM live_teams').pluck().all()).toEqual(['theirs'])
})

test.each([
  ['a foreign table', 'a table more', 'CREATE TABLE more (x)', 'ALTER TABLE more RENAME TO my_more'],
  ['a foreign view', 'a view more', 'CREATE VIEW more AS SELECT 1 AS x', 'DROP VIEW more'],
  ['a foreign index', 'an index more_by_a', 'CREATE INDEX more_by_a ON teams (name)', 'DROP INDEX more_by_a'],
])('%s with a name that an upgrade needs is reported with a hint, and stays', (_, said, theirs, hint) => {
  const path = used(theirs)
  const before = readFileSync(path)
  const sql = 'CREATE TABLE `more` (a TEXT) STRICT;\nCREATE INDEX `more_by_a` ON `more` (`a`);'
  expect(() => upgraded(path, sql)).toThrow(
    expect.objectContaining({
      code: 'table-name-taken',
      exitStatus: EXIT_STATUS.databaseUnavailable,
      message: expect.stringContaining(`has ${said} that parley did not create`),
      hint: expect.stringContaining(hint),
    }),
  )
  expect(readFileSync(path).equals(before)).toBe(true)
})

test('doctor foretells each name that an upgrade needs and something else has', () => {
  const folder = newFolder()
  const path = `${folder}/parley.db`
  const older = openSqlite(path)
  onTestFinished(() => void older.close())
  migrate(older, path, { migrations: migrationsOf(folder, 22) })
  expect(takenNameErrors(older, path)).toEqual([])
  older.exec('CREATE TABLE my_log (x); CREATE TABLE Metrics (x); CREATE VIEW team_versions AS SELECT 1')
  older.exec('CREATE TABLE search_meetings (x); CREATE VIEW search_indices AS SELECT 1')
  const errors = takenNameErrors(older, path)
  expect(errors.map(({ message }) => /has a (?:table|view) (\w+)/.exec(message)?.[1]).sort()).toEqual([
    'Metrics',
    'search_indices',
    'search_meetings',
    'team_versions',
  ])
  const context = {
    ...{ database: path, workspace: undefined, mode: 0o600, db: older, openError: undefined },
    reports: loadSettings({ flags: {}, env: {}, cwd: '/', requireApi: false }).settings,
    ...{ version: '0', engines: '>=20', node: process.versions.node },
  }
  const found = [...checkMachine(context)].filter(({ check, mark }) => check === 'schema' && mark === 'wrong')
  expect(found.map(({ found: text, status }) => [text, status])).toEqual(
    errors.map(({ message }) => [message, EXIT_STATUS.databaseUnavailable]),
  )
  expect(() => migrate(older, path)).toThrow(expect.objectContaining({ code: 'table-name-taken' }))
})

test('only an upgrade sorts in files instead of memory', () => {
  const path = used('SELECT 1')
  const db = upgraded(path, 'CREATE TABLE seen900 AS SELECT temp_store FROM pragma_temp_store;')
  const [FILE, MEMORY] = [1, 2]
  expect(db.prepare('SELECT temp_store FROM seen900').pluck().get()).toBe(FILE)
  expect(db.pragma('temp_store', { simple: true })).toBe(MEMORY)
})

test('the tables and indices of parley are read from its migrations', () => {
  const sql = 'CREATE TABLE `a` (\n\t`x` text\n);\nCREATE UNIQUE INDEX `b` ON `a` (`x`);'
  expect(ownObjectsIn([sql, 'CREATE INDEX `c` ON `a` (`x`);'])).toEqual({
    tables: new Set(['a']),
    indices: new Set(['b', 'c']),
  })
})
