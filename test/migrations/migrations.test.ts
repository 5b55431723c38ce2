import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { generateSQLiteDrizzleJson, generateSQLiteMigration } from 'drizzle-kit/api'
import { describe, expect, onTestFinished, test } from 'vitest'
import { CLUSTERED, SCHEMA } from '../../drizzle/schema.ts'
import { TABLES } from '../../src/catalog/catalog.ts'
import { DERIVED_TABLES } from '../../src/dictionary/report-tables.ts'
import { quote } from '../../src/store/database/sql.ts'
import { openSqlite } from '../../src/store/database/sqlite.ts'
import type { Sqlite } from '../../src/store/database/sqlite-types.ts'
import { newestMigration } from '../../src/store/migrations/journal.ts'
import { openWarehouse } from '../../src/store/open-warehouse.ts'
import { newFolder } from '../store/temporary-store.ts'

const FOLDER = fileURLToPath(new URL('../../drizzle/', import.meta.url))

interface Migration {
  idx: number
  when: number
  tag: string
}

const MIGRATIONS: readonly Migration[] = JSON.parse(
  readFileSync(`${FOLDER}meta/_journal.json`, 'utf8'),
).entries

type Snapshot = Awaited<ReturnType<typeof generateSQLiteDrizzleJson>>

function opened(path = join(newFolder(), 'parley.db')): Sqlite {
  const db = openWarehouse({ path })
  onTestFinished(() => {
    db.close()
  })
  return db
}

/** A database of the version that had only the first `count` migrations. */
function databaseAfter(count: number): { path: string; db: Sqlite } {
  const path = join(newFolder(), 'parley.db')
  const db = openSqlite(path)
  db.pragma('journal_mode = WAL')
  db.pragma('foreign_keys = ON')
  db.pragma(`application_id = ${0x7061726c}`)
  db.exec(
    'CREATE TABLE __drizzle_migrations (id INTEGER PRIMARY KEY, hash TEXT NOT NULL, created_at NUMERIC)',
  )
  for (const { tag, when } of MIGRATIONS.slice(0, count)) {
    for (const statement of readFileSync(`${FOLDER}${tag}.sql`, 'utf8').split('--> statement-breakpoint'))
      db.exec(statement)
    db.prepare('INSERT INTO __drizzle_migrations (hash, created_at) VALUES (?, ?)').run(tag, when)
  }
  return { path, db }
}

interface ColumnInfo {
  name: string
  type: string
  pk: number
}

/** Two rows in every table; a reference points to the row of the same number. */
function populate(db: Sqlite): Map<string, number> {
  const tables = db
    .prepare(
      "SELECT name FROM pragma_table_list WHERE type = 'table' AND schema = 'main' AND name NOT GLOB 'sqlite_*' AND name NOT GLOB '__*'",
    )
    .pluck()
    .all() as string[]
  db.pragma('foreign_keys = OFF')
  for (const table of tables) {
    const columns = db.prepare(`SELECT name, type, pk FROM pragma_table_info(?)`).all(table) as ColumnInfo[]
    const names = columns.map(({ name }) => quote(name)).join(', ')
    for (const number of [1, 2]) {
      const values = columns.map(({ type }) => (type === 'TEXT' ? `[["x${number}", 1]]` : number))
      db.prepare(`INSERT INTO ${quote(table)} (${names}) VALUES (${columns.map(() => '?').join(', ')})`).run(
        ...values,
      )
    }
  }
  db.pragma('foreign_keys = ON')
  expect(db.pragma('foreign_key_check')).toEqual([])
  const count = (table: string) =>
    db
      .prepare(`SELECT count(*) FROM ${quote(table)}`)
      .pluck()
      .get() as number
  return new Map(tables.map(table => [table, count(table)]))
}

describe('the migrations of the schema', () => {
  test('the migrations create the declared schema: there is nothing to generate', async () => {
    const last = MIGRATIONS.at(-1)
    const snapshot = `${FOLDER}meta/${String(last?.idx).padStart(4, '0')}_snapshot.json`
    const previous = JSON.parse(readFileSync(snapshot, 'utf8')) as Snapshot
    const current = await generateSQLiteDrizzleJson({ ...SCHEMA }, previous.id)
    expect(await generateSQLiteMigration(previous, current)).toEqual([])
  })

  test('the migrations are dated in their order, since a migration dated before the last applied one is skipped', () => {
    const dates = MIGRATIONS.map(({ when }) => when)
    expect(dates).toEqual([...new Set(dates)].sort((one, other) => one - other))
    expect(newestMigration()).toBe(dates.at(-1))
  })

  test('the migrations run on an empty file once, and not at the next start', () => {
    const path = join(newFolder(), 'parley.db')
    const first = openWarehouse({ path })
    const tables = first.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").pluck().all()
    expect(tables).toEqual(expect.arrayContaining(Object.keys(SCHEMA)))
    const version = first.pragma('schema_version', { simple: true })
    first.close()
    const second = opened(path)
    expect(second.pragma('schema_version', { simple: true })).toBe(version)
    expect(second.prepare('SELECT count(*) FROM __drizzle_migrations').pluck().get()).toBe(MIGRATIONS.length)
  })

  test('every table has the declared storage: by key alone, or with a rowid', () => {
    const db = opened()
    const clustered = db
      .prepare<unknown[], string>("SELECT name FROM pragma_table_list WHERE type = 'table' AND wr ORDER BY 1")
      .pluck()
      .all()
      .filter(name => !name.startsWith('_'))
    const derived = DERIVED_TABLES.flatMap(({ name, columns }) =>
      columns.some(column => column.name === '_id') ? [] : [name],
    )
    expect(clustered).toEqual([...CLUSTERED, ...derived].sort())
  })

  test('every child has a foreign key to the row above it', () => {
    const db = opened()
    for (const { table, parent: above } of TABLES.values()) {
      const inherits = Object.values(table.columns).some(({ source }) => source.from === 'parent')
      const references = db
        .prepare('SELECT DISTINCT "table", on_delete FROM pragma_foreign_key_list(?)')
        .raw()
        .all(table.name)
      expect([table.name, references]).toEqual([
        table.name,
        above && inherits ? [[above.name, 'CASCADE']] : [],
      ])
    }
  })

  test.each(MIGRATIONS.map(({ tag }, index) => [tag, index + 1] as const))(
    'the migrations after %s run on a full database and keep every row',
    (_tag, count) => {
      const { path, db } = databaseAfter(count)
      const rows = populate(db)
      db.close()
      const migrated = opened(path)
      for (const [table, number] of rows) {
        const still = migrated.prepare('SELECT 1 FROM sqlite_master WHERE name = ?').get(table)
        if (!still) continue
        const count = migrated
          .prepare(`SELECT count(*) FROM ${quote(table)}`)
          .pluck()
          .get()
        // A migration may make reads due, and the file notes which tables for reports it has.
        if (table === 'sync_tasks' || table === 'sync_meta') expect(count).toBeGreaterThanOrEqual(number)
        else expect([table, count]).toEqual([table, number])
      }
      expect(migrated.pragma('foreign_key_check')).toEqual([])
      expect(migrated.pragma('integrity_check', { simple: true })).toBe('ok')
      const views = migrated
        .prepare("SELECT name FROM sqlite_master WHERE type = 'view'")
        .pluck()
        .all() as string[]
      for (const view of views) migrated.prepare(`SELECT * FROM ${quote(view)} LIMIT 1`).all()
    },
  )

  test('the migrations of an older database update its views and leave correct ones alone', () => {
    const path = join(newFolder(), 'parley.db')
    const first = openWarehouse({ path })
    first.exec('DROP VIEW live_members; CREATE VIEW live_members AS SELECT 1 AS old; DROP VIEW live_teams')
    first.close()
    const second = opened(path)
    expect(second.prepare('SELECT * FROM live_members').all()).toEqual([])
    expect(second.prepare('SELECT * FROM live_teams').all()).toEqual([])
  })
})

describe('names', () => {
  test.each([
    ['a"b'],
    ["a'b"],
    ['a; DROP TABLE members; --'],
    ['a`b'],
    ['[a]'],
    ['select'],
    ['é 日本'],
    ['a\nb'],
  ])('%j is a normal identifier when quoted', name => {
    const db = openSqlite(':memory:')
    db.exec(`CREATE TABLE ${quote(name)} (${quote(name)} TEXT)`)
    db.prepare(`INSERT INTO ${quote(name)} (${quote(name)}) VALUES (?)`).run('x')
    expect(
      db
        .prepare(`SELECT ${quote(name)} FROM ${quote(name)}`)
        .pluck()
        .get(),
    ).toBe('x')
    expect(db.prepare('SELECT name FROM sqlite_master').pluck().all()).toEqual([name])
    db.close()
  })
})
