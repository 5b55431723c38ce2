import { openSqlite } from '../../src/store/database/sqlite.ts'
import type { Sqlite, Statement } from '../../src/store/database/sqlite-types.ts'

/**
 * Writes the same rows with better-sqlite3 alone: the schema with all its indices, cached statements, and one
 * transaction for each page of 100 items with their child rows. The rows are read from a finished warehouse one page
 * at a time, and only the writing is measured.
 */

/** Item tables, in the order in which the lists are read. */
const ITEM_TABLES = ['activities', 'message_copies', 'messages']
const PAGE = 100

interface Copying {
  /** The rows of one page, of an item table or of a child table. */
  read: Statement
  insert: Statement
}

export interface BareResult {
  rows: number
  /** Time of the writing, with the last checkpoint. */
  wallMs: number
  /** User and system time of the writing. */
  cpuMs: number
}

/** The store's settings (`src/store/file/open.ts`), so that the disk has the same work. */
const PRAGMAS = [
  'journal_mode = WAL',
  'synchronous = NORMAL',
  'foreign_keys = ON',
  'cache_size = -16000',
  'wal_autocheckpoint = 8000',
]

interface Stopwatch {
  run(work: () => void): void
  spent(): Pick<BareResult, 'wallMs' | 'cpuMs'>
}

function createStopwatch(): Stopwatch {
  let wallMs = 0
  let cpuMs = 0
  return {
    run(work) {
      const began = performance.now()
      const before = process.cpuUsage()
      work()
      const { user, system } = process.cpuUsage(before)
      wallMs += performance.now() - began
      cpuMs += (user + system) / 1000
    },
    spent: () => ({ wallMs, cpuMs }),
  }
}

export function writeBare(finished: string, path: string): BareResult {
  const from = openSqlite(finished, { readonly: true })
  const to = openSqlite(path)
  try {
    for (const pragma of PRAGMAS) to.pragma(pragma)
    for (const sql of schemaOf(from)) to.exec(sql)
    const watch = createStopwatch()
    const rows = ITEM_TABLES.reduce((sum, table) => sum + copyTable(from, to, table, watch), 0)
    watch.run(() => to.pragma('wal_checkpoint(TRUNCATE)'))
    return { rows, ...watch.spent() }
  } finally {
    from.close()
    to.close()
  }
}

function schemaOf(db: Sqlite): string[] {
  return db
    .prepare(
      `SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND type IN ('table', 'index')
       AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY type = 'index', rowid`,
    )
    .pluck()
    .all() as string[]
}

function copyTable(from: Sqlite, to: Sqlite, table: string, watch: Stopwatch): number {
  const copyings = [ofItems(from, to, table), ...belowItems(from, to, table), ...mergedBelow(from, to, table)]
  const last = from.prepare(`SELECT max(_id) FROM "${table}"`).pluck().get() as number | null
  const writePage = to.transaction((page: readonly (readonly unknown[][])[]) => {
    copyings.forEach(({ insert }, index) => {
      for (const row of page[index] ?? []) insert.run(...row)
    })
  })
  let rows = 0
  for (let first = 1; first <= (last ?? 0); first += PAGE) {
    const page = copyings.map(({ read }) => read.all(first, first + PAGE - 1) as unknown[][])
    watch.run(() => writePage.immediate(page))
    rows += page.reduce((sum, { length }) => sum + length, 0)
  }
  return rows
}

function ofItems(from: Sqlite, to: Sqlite, table: string): Copying {
  return {
    read: from
      .prepare(`SELECT ${storedColumns(from, table).join(', ')} FROM "${table}" WHERE _id BETWEEN ? AND ?`)
      .raw(),
    insert: to.prepare(insertInto(from, table)),
  }
}

function belowItems(from: Sqlite, to: Sqlite, table: string): Copying[] {
  const references = from
    .prepare(
      `SELECT m.name AS child, f."from" AS mine, f."to" AS theirs
       FROM sqlite_master m, pragma_foreign_key_list(m.name) f WHERE m.type = 'table' AND f."table" = ?`,
    )
    .all(table) as { child: string; mine: string; theirs: string }[]
  return references.map(({ child, mine, theirs }) => ({
    read: from
      .prepare(
        `SELECT c.* FROM "${table}" t JOIN "${child}" c ON c."${mine}" = t."${theirs}" WHERE t._id BETWEEN ? AND ?`,
      )
      .raw(),
    insert: to.prepare(insertInto(from, child)),
  }))
}

/** Tables that are merged with the e-mails have no foreign key. */
function mergedBelow(from: Sqlite, to: Sqlite, table: string): Copying[] {
  if (table !== 'messages') return []
  const read = from
    .prepare(
      `SELECT c.* FROM messages t JOIN message_participants c USING (header_message_id) WHERE t._id BETWEEN ? AND ?`,
    )
    .raw()
  return [{ read, insert: to.prepare(insertInto(from, 'message_participants')) }]
}

function insertInto(db: Sqlite, table: string): string {
  const columns = storedColumns(db, table)
  return `INSERT INTO "${table}" (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`
}

function storedColumns(db: Sqlite, table: string): string[] {
  const names = db.prepare('SELECT name FROM pragma_table_info(?)').pluck().all(table) as string[]
  return names.map(name => `"${name}"`)
}
