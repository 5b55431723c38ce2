import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, onTestFinished, test } from 'vitest'
import { isUuid } from '../../src/base/uuid.ts'
import { hasIds, TABLES } from '../../src/catalog/catalog.ts'
import { hasTable } from '../../src/store/database/existing-tables.ts'
import { quote } from '../../src/store/database/sql.ts'
import { openSqlite } from '../../src/store/database/sqlite.ts'
import type { Sqlite } from '../../src/store/database/sqlite-types.ts'
import { statementCache } from '../../src/store/database/statements.ts'
import { createPurgeQueue } from '../../src/store/deletions/purge-queue.ts'
import { openWarehouse } from '../../src/store/open-warehouse.ts'
import { createMessageMerge } from '../../src/store/rows/merge/messages.ts'
import { backfilled } from '../cli/workspace.ts'
import { newFolder, openAt } from '../store/temporary-store.ts'
import { share } from '../support/effort.ts'
import { compareTypedTables } from '../support/typed-tables.ts'
import { journalIn, migrationsOf, PRESENT } from './older-version.ts'

const UPGRADE_PROCESS = fileURLToPath(new URL('upgrade-process.ts', import.meta.url))

const STATE = [
  'sync_tasks',
  'sync_seen',
  'sync_purge_queue',
  'sync_suspicions',
  'sync_segments',
  'sync_rejects',
]

const OLDER_NAMES: Readonly<Record<string, string>> = {
  sync_purge_queue: 'sync_erasures',
  sync_suspicions: 'sync_absences',
}

interface Objects {
  indices: string[]
  tables: Map<string, string[]>
}

/** The tables and indices of an empty warehouse with the first `count` migrations. */
function objectsOf(count: number): Objects {
  const folder = newFolder()
  const db = openWarehouse({ path: join(folder, 'empty.db'), migrations: migrationsOf(folder, count) })
  const named = (type: string) =>
    db.prepare('SELECT name FROM sqlite_master WHERE type = ? AND sql NOT NULL').pluck().all(type) as string[]
  const columns = db.prepare('SELECT name FROM pragma_table_info(?)').pluck()
  const tables = new Map(named('table').map(table => [table, columns.all(table) as string[]]))
  const indices = named('index')
  db.close()
  return { indices, tables }
}

/** The file as the version before left it, without what later versions added. */
function downgrade(db: Sqlite): void {
  const before = 17
  const [older, present] = [objectsOf(before), objectsOf(journalIn(PRESENT).entries.length)]
  const views = db.prepare("SELECT name FROM sqlite_master WHERE type = 'view'").pluck().all() as string[]
  for (const view of views) db.exec(`DROP VIEW ${quote(view)}`)
  for (const index of present.indices.filter(name => !older.indices.includes(name)))
    db.exec(`DROP INDEX ${quote(index)}`)
  for (const [table, columns] of present.tables) {
    const earlier = OLDER_NAMES[table] ?? table
    const kept = older.tables.get(earlier)
    if (kept === undefined) {
      db.exec(`DROP TABLE ${quote(table)}`)
      continue
    }
    for (const column of columns.filter(name => !kept.includes(name)))
      db.exec(`ALTER TABLE ${quote(table)} DROP COLUMN ${quote(column)}`)
    if (earlier !== table) db.exec(`ALTER TABLE ${quote(table)} RENAME TO ${quote(earlier)}`)
  }
  db.exec(`DELETE FROM __drizzle_migrations WHERE created_at IN
    (SELECT created_at FROM __drizzle_migrations ORDER BY created_at LIMIT -1 OFFSET ${before})`)
}

/** All columns with ids, and their kinds. */
const ID_COLUMNS = [...TABLES.values()].flatMap(placed =>
  Object.entries(placed.table.columns).flatMap(([column, { kind }]) =>
    hasIds(placed, column) ? [[placed.table.name, column, kind] as const] : [],
  ),
)

/** Changes every id of the file in the same way, wherever it is. */
function renameAll(db: Sqlite, rename: (id: string) => string): void {
  const words = (text: string) => text.replace(/[^\0 ]+/g, rename)
  const cell = (change: (text: string) => string) => (value: unknown) =>
    typeof value === 'string' ? change(value) : value
  db.function('renamed', cell(words))
  db.function(
    'renamed_mail',
    cell(mail => (mail.startsWith('id:') ? `id:${rename(mail.slice(3))}` : mail)),
  )
  db.function(
    'renamed_json',
    cell(json =>
      json.replace(/(?<=[[,:])"([^"\\]*)"(?!:)/g, (_, text: string) => JSON.stringify(rename(text))),
    ),
  )
  for (const [table, column, kind] of ID_COLUMNS) {
    const by = kind === 'json' ? 'renamed_json' : 'renamed'
    db.exec(`UPDATE ${table} SET ${quote(column)} = ${by}(${quote(column)})`)
  }
  db.exec(`UPDATE message_copies SET mail_id = renamed_mail(mail_id);
    UPDATE messages SET header_message_id = renamed_mail(header_message_id);
    UPDATE message_participants SET header_message_id = renamed_mail(header_message_id);
    UPDATE sync_segments SET scope = renamed(scope), edge_keys = renamed_json(edge_keys);
    UPDATE sync_rejects SET _scope = renamed(_scope)`)
  for (const table of ['sync_tasks', 'sync_seen', 'sync_purge_queue', 'sync_suspicions'])
    db.exec(`UPDATE ${table} SET scope = renamed(scope), key = renamed(key)`)
}

const uuidOf = (id: string): string =>
  createHash('md5')
    .update(id)
    .digest('hex')
    .replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')

const upperCase = (id: string): string => (isUuid(id) ? id.toUpperCase() : id)

interface Older {
  file: string
  /** Changes the file before it is that of the version before. */
  change(work: (db: Sqlite) => void): void
  upgrade(): void
  content(): string[]
}

/** A warehouse in which every key of an item is a UUID, with rows in each table. */
async function olderWarehouse(): Promise<Older> {
  const { file } = await backfilled({ onTestFinished }, { customRecords: 4 })
  const change = (work: (db: Sqlite) => void) => {
    const db = openSqlite(file)
    db.pragma('foreign_keys = OFF')
    db.transaction(() => work(db)).immediate()
    db.close()
  }
  change(db => {
    const columns = ID_COLUMNS.filter(([, , kind]) => kind === 'text')
    const ids = new Set(
      columns.flatMap(([table, column]) =>
        db
          .prepare(`SELECT DISTINCT ${quote(column)} FROM ${table}`)
          .pluck()
          .all(),
      ),
    )
    renameAll(db, id => (ids.has(id) && !isUuid(id) ? uuidOf(id) : id))
  })
  return {
    file,
    change,
    upgrade() {
      change(downgrade)
      openWarehouse({ path: file }).close()
    },
    content() {
      const db = openSqlite(file, { readonly: true })
      const content = contentOf(db)
      db.close()
      return content
    },
  }
}

const NOT_COMPARED = ['_id', '_synced_at', '_text_from']

/** All rows, without what differs between two files with the same rows: numbers of rows and times of writing. */
function contentOf(db: Sqlite): string[] {
  const texts =
    'SELECT m.header_message_id, c.id FROM messages m JOIN message_copies c ON c._id = m._text_from'
  const state = STATE.map(table => (hasTable(db, table) ? table : (OLDER_NAMES[table] ?? table)))
  const rows = [...TABLES.keys(), ...state].flatMap(table => {
    const columns = db.prepare('SELECT name FROM pragma_table_info(?)').pluck().all(table) as string[]
    const told = columns.filter(name => !NOT_COMPARED.includes(name)).map(quote)
    const found = db
      .prepare(`SELECT ${told.join(', ')} FROM ${table}`)
      .raw()
      .all()
    return found.map(row => `${table} ${JSON.stringify(row)}`)
  })
  return [
    ...rows,
    ...db
      .prepare(texts)
      .raw()
      .all()
      .map(row => `text ${JSON.stringify(row)}`),
  ].sort()
}

/** Rows of one that the other lacks. */
const differences = (before: readonly string[], after: readonly string[]) => {
  const [were, are] = [new Set(before), new Set(after)]
  return {
    lost: before.filter(row => !are.has(row)),
    made: after.filter(row => !were.has(row)),
    more: after.length - before.length,
  }
}

const NONE = { lost: [], made: [], more: 0 }

/** The rows once more with their ids in upper case, as a list has sent them at another time. */
function addTwins(db: Sqlite, at: string): void {
  db.function('upper_ids', (value: unknown) => (typeof value === 'string' ? upperCase(value) : value))
  for (const { table } of TABLES.values()) {
    const columns = db.prepare('SELECT name FROM pragma_table_info(?)').pluck().all(table.name) as string[]
    const own = columns.filter(name => name !== '_id')
    const ids = new Map(
      ID_COLUMNS.filter(([name]) => name === table.name).map(([, column, kind]) => [column, kind]),
    )
    const isOfMails = table.name === 'messages' || table.name === 'message_participants'
    const isReadLater = table.kind === 'child' && table.livesWith !== undefined
    if (isOfMails || isReadLater || !table.key.some(column => ids.has(column))) continue
    const cell = (name: string) => {
      if (name === '_synced_at') return `'${at}'`
      const { default: initial = 'NULL', source } = table.columns[name] ?? {}
      if (source?.from === 'parley' && table.kind === 'entity')
        return name === 'access' ? quote(name) : initial
      return ids.get(name) === 'text' ? `upper_ids(${quote(name)})` : quote(name)
    }
    db.exec(`INSERT OR IGNORE INTO ${table.name} (${own.map(quote).join(', ')})
      SELECT ${own.map(cell).join(', ')} FROM ${table.name}`)
  }
  db.exec(`INSERT OR IGNORE INTO sync_tasks
    SELECT feed, upper_ids(scope), upper_ids(key), sort_at, '${LATER}', round, attempts, deadline, waiting, failures, named_at, tries, try_at
    FROM sync_tasks`)
}

const LATER = '2027-01-01T00:00:00.000Z'
const EARLIER = '2020-01-01T00:00:00.000Z'

function mergeAll(db: Sqlite): void {
  const prepare = statementCache(db)
  const merge = createMessageMerge(prepare, createPurgeQueue(prepare))
  const keys = db.prepare('SELECT DISTINCT mail_id FROM message_copies').pluck().all() as string[]
  merge.refresh(
    keys.map(key => ({ key, isReplaced: false })),
    EARLIER,
  )
}

describe('the upgrade of a warehouse', () => {
  test('without ids in upper case keeps every row as it is', async () => {
    const older = await olderWarehouse()
    const times = () => {
      const db = openSqlite(older.file, { readonly: true })
      const found = ['activities', 'meetings', 'crm_records', 'messages'].map(table =>
        db.prepare(`SELECT _id, _synced_at, _changed_at FROM ${table}`).raw().all(),
      )
      db.close()
      return found
    }
    const before = [older.content(), times()]
    older.upgrade()
    expect([older.content(), times()]).toEqual(before)
  })

  test('brings ids that are only there in upper case to lower case, and what refers to them', async () => {
    const older = await olderWarehouse()
    const before = older.content()
    older.change(db => renameAll(db, upperCase))
    expect(differences(before, older.content()).made.length).toBeGreaterThan(300)
    older.upgrade()
    expect(differences(before, older.content())).toEqual(NONE)
  })

  test.each([
    ['later', LATER],
    ['earlier', EARLIER],
  ])('makes one row of two, of which the one in upper case was written %s', async (_, at) => {
    const older = await olderWarehouse()
    const before = older.content()
    older.change(db => {
      addTwins(db, at)
      mergeAll(db)
    })
    expect(older.content().length).toBeGreaterThan(1.5 * before.length)
    older.upgrade()
    expect(differences(before, older.content())).toEqual(NONE)
  })

  test('makes the typed tables of CRM objects again', async () => {
    const older = await olderWarehouse()
    older.change(db => {
      addTwins(db, LATER)
      mergeAll(db)
    })
    older.upgrade()
    const store = openAt(older.file)
    await store.crmTables.finish()
    expect(compareTypedTables(store.db)).toEqual([])
    expect(store.db.prepare('SELECT count(*) FROM live_crm_deal').pluck().get()).toBe(2)
    store.close()
  })

  test('changes nothing when it is killed, at whatever statement, and is complete after another start', async () => {
    const older = await olderWarehouse()
    const before = older.content()
    older.change(db => {
      addTwins(db, LATER)
      mergeAll(db)
      downgrade(db)
    })
    const twice = older.content()
    const upgrade = (file: string, last: number) =>
      spawnSync(process.execPath, ['--import', 'tsx', UPGRADE_PROCESS, file, PRESENT, String(last)])
    const copy = `${older.file}-copy`
    cpSync(older.file, copy)
    const statements = Number(upgrade(copy, 0).stdout)
    expect(statements).toBeGreaterThan(1000)
    for (const part of share([0.6, 0.01, 0.2, 0.99])) {
      const { signal } = upgrade(older.file, Math.floor(part * statements))
      expect(signal).toBe('SIGKILL')
      expect(older.content()).toEqual(twice)
    }
    openWarehouse({ path: older.file }).close()
    expect(differences(before, older.content())).toEqual(NONE)
  })
})

const UPPER = 'AAAAAAAA-0000-4000-8000-00000000000A'
const LOWER = 'aaaaaaaa-0000-4000-8000-00000000000a'
const [FIRST, SECOND] = ['2026-01-01T00:00:00.000Z', '2026-01-02T00:00:00.000Z']

/** Two rows of a table whose ids differ by case: what the upgrade makes of them. */
const PAIRS: readonly (readonly [makes: string, rows: string, asked: string, found: unknown[]])[] = [
  [
    'of two live rows, the one that was written last stays, as old as the older one',
    `INSERT INTO members (id, name, _first_seen_at, _synced_at) VALUES
      ('${LOWER}', 'Old', '${FIRST}', '${FIRST}'), ('${UPPER}', 'New', '${SECOND}', '${SECOND}')`,
    'SELECT id, name, _first_seen_at FROM members',
    [[LOWER, 'New', FIRST]],
  ],
  [
    'a live row stays, whenever the deleted one was written',
    `INSERT INTO members (id, name, _first_seen_at, _synced_at, _deleted_at) VALUES
      ('${LOWER}', 'Gone', '${FIRST}', '${SECOND}', '${SECOND}'), ('${UPPER}', 'Here', '${FIRST}', '${FIRST}', NULL);
     INSERT INTO sync_erasures VALUES ('members', '', '${LOWER}', '${SECOND}')`,
    `SELECT id, name, _deleted_at FROM members UNION ALL SELECT 'queued', count(*), 0 FROM sync_purge_queue`,
    [
      [LOWER, 'Here', null],
      ['queued', 0, 0],
    ],
  ],
  [
    'a deleted row waits for its purge once',
    `INSERT INTO members (id, name, _first_seen_at, _synced_at, _deleted_at) VALUES
      ('${LOWER}', 'One', '${FIRST}', '${FIRST}', '${FIRST}'), ('${UPPER}', 'Two', '${FIRST}', '${SECOND}', '${SECOND}');
     INSERT INTO sync_erasures VALUES ('members', '', '${LOWER}', '${FIRST}'), ('members', '', '${UPPER}', '${SECOND}')`,
    'SELECT m.name, e.key, e.withdrawn_at FROM members m, sync_purge_queue e',
    [['Two', LOWER, FIRST]],
  ],
  [
    'a transcript stays that was read under the id of the older row',
    `INSERT INTO meetings (id, title, access, transcript_state, _first_seen_at, _synced_at) VALUES
      ('${LOWER}', 'Old', 'open', 'present', '${FIRST}', '${FIRST}'), ('${UPPER}', 'New', 'open', 'pending', '${SECOND}', '${SECOND}');
     INSERT INTO transcript_entries (meeting_id, position, text) VALUES ('${LOWER}', 0, 'Hello')`,
    'SELECT m.id, m.title, m.transcript_state, t.text FROM meetings m JOIN transcript_entries t ON t.meeting_id = m.id',
    [[LOWER, 'New', 'present', 'Hello']],
  ],
  [
    'a transcript goes when the newer row is withheld',
    `INSERT INTO meetings (id, title, access, transcript_state, _first_seen_at, _synced_at) VALUES
      ('${LOWER}', 'Old', 'open', 'present', '${FIRST}', '${FIRST}'), ('${UPPER}', NULL, 'withheld', 'withheld', '${SECOND}', '${SECOND}');
     INSERT INTO transcript_entries (meeting_id, position, text) VALUES ('${LOWER}', 0, 'Hello')`,
    'SELECT id, access, transcript_state, (SELECT count(*) FROM transcript_entries) FROM meetings',
    [[LOWER, 'withheld', 'withheld', 0]],
  ],
  [
    'the child rows are those of the newer row',
    `INSERT INTO teams (id, name, _first_seen_at, _synced_at) VALUES
      ('${LOWER}', 'T', '${FIRST}', '${FIRST}'), ('${UPPER}', 'T', '${SECOND}', '${SECOND}');
     INSERT INTO team_members (team_id, member_id) VALUES ('${LOWER}', 'One'), ('${UPPER}', 'Two'), ('${UPPER}', '${UPPER}')`,
    'SELECT team_id, member_id FROM team_members ORDER BY 2',
    [
      [LOWER, 'Two'],
      [LOWER, LOWER],
    ],
  ],
  [
    'a probe is due when the first of both was, and the row is suspected no more',
    `INSERT INTO members (id, name, _first_seen_at, _synced_at) VALUES
      ('${LOWER}', 'M', '${FIRST}', '${FIRST}'), ('${UPPER}', 'M', '${SECOND}', '${SECOND}');
     INSERT INTO sync_absences (table_name, key, missing_since) VALUES
      ('members', '${LOWER}', '${FIRST}'), ('members', '${UPPER}', '${FIRST}'), ('members', 'Other', '${FIRST}');
     INSERT INTO sync_tasks (feed, key, due_at) VALUES ('x.probe', '${LOWER}', '${SECOND}'), ('x.probe', '${UPPER}', '${FIRST}')`,
    'SELECT t.key, t.due_at, a.key FROM sync_tasks t, sync_suspicions a',
    [[LOWER, FIRST, 'Other']],
  ],
  [
    'two lists of a scope become one, which goes on where that in lower case was',
    `INSERT INTO collections (id, _first_seen_at, _synced_at) VALUES ('${UPPER}', '${FIRST}', '${FIRST}');
     INSERT INTO sync_segments (feed, scope, cursor) VALUES ('a', '${LOWER}', '{"cursor":"1"}'), ('a', '${UPPER}', NULL);
     INSERT INTO sync_segments (feed, scope, cursor, pass_started_at) VALUES ('b', '${UPPER}', '{"cursor":"2"}', '${FIRST}')`,
    "SELECT feed, scope, cursor FROM sync_segments WHERE feed IN ('a', 'b') ORDER BY 1",
    [
      ['a', LOWER, '{"cursor":"1"}'],
      ['b', LOWER, null],
    ],
  ],
  [
    'a change of a record that was observed under both ids is one change, and the next begins where it ended',
    `INSERT INTO crm_records (object, id, fields, _first_seen_at, _synced_at) VALUES
      ('deal', '${LOWER}', '{"a":3}', '${FIRST}', '${FIRST}'), ('deal', '${UPPER}', '{"a":3}', '${FIRST}', '${SECOND}');
     INSERT INTO crm_record_changes (object, record_id, field, observed_at, old_value, new_value) VALUES
      ('deal', '${UPPER}', 'a', '2026-01-01', '1', '2'), ('deal', '${LOWER}', 'a', '2026-01-02', '1', '2'),
      ('deal', '${LOWER}', 'a', '2026-01-03', '1', '3'),
      ('deal', '${LOWER}', 'purged', '2026-01-03', NULL, NULL), ('deal', '${UPPER}', 'purged', '2026-01-04', NULL, NULL)`,
    'SELECT record_id, field, observed_at, old_value, new_value, fields FROM crm_record_changes, crm_records ORDER BY 2, 3',
    [
      [LOWER, 'a', '2026-01-01', '1', '2', '{"a":3}'],
      [LOWER, 'a', '2026-01-03', '2', '3', '{"a":3}'],
      [LOWER, 'purged', '2026-01-03', null, null, '{"a":3}'],
      [LOWER, 'purged', '2026-01-04', null, null, '{"a":3}'],
    ],
  ],
  [
    'an e-mail without a Message-ID keeps the text of either copy',
    `INSERT INTO message_copies (_id, id, text_state, mail_id, _first_seen_at, _synced_at) VALUES
      (1, '${LOWER}', 'present', 'id:${LOWER}', '${FIRST}', '${FIRST}'), (2, '${UPPER}', 'pending', 'id:${UPPER}', '${SECOND}', '${SECOND}');
     INSERT INTO messages (header_message_id, id, copy_count, text, text_state, _text_from, _first_seen_at, _synced_at) VALUES
      ('id:${LOWER}', '${LOWER}', 1, 'Hello', 'present', 1, '${FIRST}', '${FIRST}'), ('id:${UPPER}', '${UPPER}', 1, NULL, 'pending', NULL, '${SECOND}', '${SECOND}')`,
    'SELECT m.header_message_id, m.id, m.text, c.text_state, c.mail_id FROM messages m JOIN message_copies c ON c._id = m._text_from',
    [[`id:${LOWER}`, LOWER, 'Hello', 'present', `id:${LOWER}`]],
  ],
  [
    'an id that is no UUID keeps its case',
    `INSERT INTO members (id, name, _first_seen_at, _synced_at) VALUES
      ('MEM_1', 'M', '${FIRST}', '${FIRST}'), ('mem_1', 'm', '${FIRST}', '${FIRST}'), ('${UPPER}', 'U', '${FIRST}', '${FIRST}')`,
    'SELECT id, name FROM members ORDER BY 1',
    [
      ['MEM_1', 'M'],
      [LOWER, 'U'],
      ['mem_1', 'm'],
    ],
  ],
]

test.each(PAIRS)('after the upgrade, %s', (_, rows, asked, found) => {
  const folder = newFolder()
  const path = join(folder, 'parley.db')
  const before = journalIn(PRESENT).entries.findIndex(({ tag }) => tag === '0017_copy_texts')
  const older = openWarehouse({ path, migrations: migrationsOf(folder, before) })
  older.exec(rows)
  older.close()
  const db = openWarehouse({ path })
  expect(db.prepare(asked).raw().all()).toEqual(found)
  db.close()
})
