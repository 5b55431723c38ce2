import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { commented } from '../../drizzle/comments.ts'
import { fullMeaning, sqlComment } from '../../src/dictionary/described-table.ts'
import { DICTIONARY } from '../../src/dictionary/dictionary.ts'
import { openSqlite } from '../../src/store/database/sqlite.ts'
import type { Sqlite } from '../../src/store/database/sqlite-types.ts'
import { openWarehouse } from '../../src/store/open-warehouse.ts'
import { emptyFolder } from '../cli/parley.ts'

const FOLDER = fileURLToPath(new URL('../../drizzle', import.meta.url))
const FILES = readdirSync(FOLDER).filter(name => name.endsWith('.sql'))

const textOf = (file: string): string => readFileSync(join(FOLDER, file), 'utf8')

const withoutComments = (sql: string): string => sql.replace(/ \/\*.*?\*\//g, '')

/** The migrations as they were before they had comments. */
function bareMigrations(): string {
  const folder = join(emptyFolder(), 'drizzle')
  cpSync(FOLDER, folder, { recursive: true })
  for (const file of FILES) writeFileSync(join(folder, file), withoutComments(textOf(file)))
  return folder
}

/** All that SQLite makes of the schema's text. */
function understood(db: Sqlite): unknown {
  const tables = db
    .prepare("SELECT * FROM pragma_table_list WHERE schema = 'main' AND type = 'table' ORDER BY name")
    .all() as { name: string }[]
  const about = (pragma: string, name: string) => db.prepare(`SELECT * FROM ${pragma}(?)`).all(name)
  return tables.map(table => ({
    table,
    columns: about('pragma_table_xinfo', table.name),
    references: about('pragma_foreign_key_list', table.name),
    indices: (about('pragma_index_list', table.name) as { name: string }[]).map(index => ({
      index,
      columns: about('pragma_index_xinfo', index.name),
    })),
  }))
}

const schemaOf = (db: Sqlite, name: string): string =>
  String(db.prepare('SELECT sql FROM sqlite_master WHERE name = ?').pluck().get(name))

test.each(FILES)('the comments of %s equal those of the declarations; npm run schema writes them', file => {
  expect(commented(textOf(file))).toBe(textOf(file))
})

test('the comments do not change the schema', () => {
  const [bare, present] = [bareMigrations(), FOLDER].map(migrations => {
    const db = openWarehouse({ path: join(emptyFolder(), 'parley.db'), migrations })
    const seen = understood(db)
    db.close()
    return seen
  })
  expect(present).toEqual(bare)
})

test.each(DICTIONARY.filter(({ form }) => form === 'table').map(table => [table.name, table] as const))(
  'the schema of a new warehouse explains %s and its columns',
  (name, { about, columns }) => {
    const db = openWarehouse({ path: join(emptyFolder(), 'parley.db') })
    const sql = schemaOf(db, name)
    db.close()
    expect(sql).toContain(sqlComment(about))
    for (const column of columns) {
      const line = sql.match(new RegExp(`\`${column.name}\` [^\n]*?/\\*.*?\\*/`))?.[0]
      expect(line, `${name}.${column.name}`).toContain(sqlComment(fullMeaning(column)))
    }
  },
)

test('a warehouse from before the comments opens, and no migration is repeated', () => {
  const path = join(emptyFolder(), 'parley.db')
  const before = openWarehouse({ path, migrations: bareMigrations() })
  before.exec("INSERT INTO teams (id, _first_seen_at, _synced_at) VALUES ('t', 'x', 'x')")
  const applied = before.prepare('SELECT * FROM __drizzle_migrations').all()
  const version = before.pragma('schema_version', { simple: true })
  before.close()
  const after = openWarehouse({ path })
  expect(after.prepare('SELECT * FROM __drizzle_migrations').all()).toEqual(applied)
  expect(after.pragma('schema_version', { simple: true })).toBe(version)
  expect(after.prepare('SELECT id FROM teams').pluck().all()).toEqual(['t'])
  after.close()
})

test('later migrations can add, rename and drop columns, and every comment stays with its own', () => {
  const db = openSqlite(':memory:')
  db.exec(textOf('0000_warehouse.sql'))
  db.exec('ALTER TABLE sync_runs ADD "later" text /* new, last */')
  db.exec('ALTER TABLE sync_runs DROP COLUMN "error"')
  db.exec('ALTER TABLE sync_runs RENAME COLUMN "lane" TO "lane_name"')
  expect(schemaOf(db, 'sync_runs')).toContain('"later" text /* new, last */')
  expect(schemaOf(db, 'sync_runs')).toContain('"lane_name" text NOT NULL /* `history` until')
  expect(schemaOf(db, 'sync_runs')).not.toContain('What went wrong')
  db.exec('ALTER TABLE sync_runs DROP COLUMN "later"')
  expect(schemaOf(db, 'sync_runs')).toMatch(
    /Rows whose deletion the run confirmed\. Unit: rows\. \*\/\n?\) STRICT$/,
  )
  db.exec('ALTER TABLE crm_objects ADD "more" text /* in front of the key, if there is one */')
  db.exec('ALTER TABLE crm_fields ADD "more" text /* in front of the key */')
  expect(schemaOf(db, 'crm_fields')).toMatch(
    /`_extra` text \/\*.*\*\/, "more" text \/\* in front of the key \*\/,/,
  )
  expect(db.pragma('integrity_check', { simple: true })).toBe('ok')
  db.close()
})
