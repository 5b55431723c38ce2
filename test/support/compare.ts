import { DICTIONARY } from '../../src/dictionary/dictionary.ts'
import { REPORT_TABLES } from '../../src/dictionary/report-tables.ts'
import { runDataTests } from '../../src/store/data-tests/run.ts'
import { openSqlite } from '../../src/store/database/sqlite.ts'
import type { Sqlite } from '../../src/store/database/sqlite-types.ts'
import { canonicalJson, isFields, type Json, parseExact } from './exact-json.ts'
import type { ExpectedTable } from './expected.ts'
import type { Cell, OneOf, Row } from './row-shape.ts'
import { compareTypedTables, typedNames } from './typed-tables.ts'

/** One difference between the warehouse and the API, as one line. */
export type Difference = string

const MOST_SHOWN = 20

/**
 * Compares every table, its `live_` view, parley's own columns, and the typed tables with their records, and tests what
 * the descriptions promise. Returns the first 20 differences.
 * @param besides differences to ignore
 */
export function compareWarehouse(
  file: string,
  expected: readonly ExpectedTable[],
  besides?: RegExp,
): Difference[] {
  const db = openSqlite(file, { readonly: true })
  try {
    const all = expected.flatMap(table => compareTable(db, table))
    all.push(...openRejects(db), ...holes(db), ...misreported(db, expected), ...compareTypedTables(db))
    all.push(...brokenPromises(db))
    const counted = all.filter(difference => !besides?.test(difference))
    const more = counted.length - MOST_SHOWN
    return more > 0 ? [...counted.slice(0, MOST_SHOWN), `and ${more} more`] : counted
  } finally {
    db.close()
  }
}

/** One table, its `live_` view and its underscore columns. */
export function compareTable(db: Sqlite, expected: ExpectedTable): Difference[] {
  return [...compareContents(db, expected), ...insane(db, expected)]
}

type Found = Record<string, Cell>

function compareContents(db: Sqlite, expected: ExpectedTable): Difference[] {
  const { table, isView } = expected
  const views = db.prepare("SELECT name FROM sqlite_master WHERE type = 'view'").pluck().all()
  const differences = compareRows(expected, liveRows(db, expected))
  if (isView && !views.includes(`live_${table}`)) return differences
  const live = db.prepare(`SELECT * FROM "live_${table}"`).all() as Found[]
  const underscored = Object.keys(live[0] ?? {}).filter(column => column.startsWith('_'))
  return [
    ...differences,
    ...compareRows({ ...expected, table: `live_${table}` }, live),
    ...underscored.map(column => `live_${table}: shows ${column}`),
  ]
}

function liveRows(db: Sqlite, { table, parent, isView }: ExpectedTable): Found[] {
  const columns = db.prepare(`SELECT name FROM pragma_table_info(?)`).pluck().all(table)
  const conditions = !isView && columns.includes('_deleted_at') ? ['t._deleted_at IS NULL'] : []
  if (parent) {
    const on = Object.entries(parent.on).map(([mine, theirs]) => `p."${theirs}" = t."${mine}"`)
    const all = [...on, 'p._deleted_at IS NULL', ...(parent.open ? [parent.open] : [])]
    conditions.push(`EXISTS (SELECT 1 FROM "${parent.table}" p WHERE ${all.join(' AND ')})`)
  }
  const where = conditions.length > 0 ? `WHERE ${conditions.join(' AND ')}` : ''
  return db.prepare(`SELECT t.* FROM "${table}" t ${where}`).all() as Found[]
}

function compareRows(expected: ExpectedTable, found: readonly Found[]): Difference[] {
  const { table, key, json } = expected
  const wanted = numbered(expected.rows, key)
  const allowed = numbered(expected.optional, key)
  const present = numbered(found, key)
  const differences: Difference[] = []
  for (const [name, row] of wanted) {
    const stored = present.get(name)
    if (stored) differences.push(...compareCells({ table, name, json }, row, stored))
    else differences.push(`${table} ${name}: is missing`)
  }
  for (const [name, stored] of present) {
    if (wanted.has(name)) continue
    const row = allowed.get(name)
    if (row) differences.push(...compareCells({ table, name, json }, row, stored))
    else differences.push(`${table} ${name}: should not be there`)
  }
  return differences
}

/** Rows by their key; rows with the same key are numbered. */
function numbered<R extends Row>(rows: readonly R[], key: readonly string[]): Map<string, R> {
  const counts = new Map<string, number>()
  const result = new Map<string, R>()
  for (const row of rows) {
    const name = JSON.stringify(key.map(column => row[column] ?? null))
    const count = (counts.get(name) ?? 0) + 1
    counts.set(name, count)
    result.set(count === 1 ? name : `${name} (${count})`, row)
  }
  return result
}

interface Place {
  table: string
  name: string
  json: readonly string[]
}

/** Views have no underscore columns, so only those of the table itself are compared. */
function compareCells({ table, name, json }: Place, row: Row, stored: Found): Difference[] {
  const isView = table.startsWith('live_')
  return Object.entries(row).flatMap(([column, wanted]) => {
    if (isView && column.startsWith('_')) return []
    const cell = stored[column]
    if (cell === undefined) return [`${table}: has no column ${column}`]
    const isJson = (json.includes(column) || column === '_extra') && typeof cell === 'string'
    const value = isJson
      ? canonicalJson(column === '_extra' ? withoutNulls(parseExact(cell)) : parseExact(cell))
      : cell
    return isMet(wanted, value)
      ? []
      : [`${table} ${name}: ${column} is ${shown(value)}, expected ${shown(wanted)}`]
  })
}

/** A null field without a column may be kept or left out. */
function withoutNulls(value: Json): Json {
  if (!isFields(value)) return value
  return Object.fromEntries(Object.entries(value).filter(([, each]) => each !== null))
}

function isMet(wanted: Cell | OneOf, cell: Cell): boolean {
  if (wanted !== null && typeof wanted === 'object') return wanted.oneOf.includes(cell)
  return wanted === cell
}

function shown(value: Cell | OneOf): string {
  const text = JSON.stringify(value)
  return text.length > 160 ? `${text.slice(0, 160)}…` : text
}

const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

/** The times that parley notes on rows must be consistent. */
function insane(db: Sqlite, { table, isView }: ExpectedTable): Difference[] {
  const columns = db.prepare('SELECT name FROM pragma_table_info(?)').pluck().all(table)
  if (isView || !columns.includes('_synced_at')) return []
  const rows = db
    .prepare(`SELECT _first_seen_at, _synced_at, _changed_at, _deleted_at FROM "${table}"`)
    .raw()
    .all() as [first: string, synced: string, changed: string | null, deleted: string | null][]
  return rows.flatMap(([first, synced, changed, deleted]) => {
    const instants = [first, synced, changed ?? first, deleted ?? first]
    const malformed = instants.filter(text => !INSTANT.test(text))
    const isBackwards =
      first > synced ||
      (changed !== null && (changed < first || changed > synced)) ||
      (deleted !== null && deleted < first)
    return [
      ...malformed.map(text => `${table}: ${text} is no instant`),
      ...(isBackwards ? [`${table}: ${first}, ${synced}, ${changed}, ${deleted} are out of order`] : []),
    ]
  })
}

/** History and the program's own tables are not copies of published items. */
const NOT_COMPARED =
  /^(_|sync_|sqlite_|live_|search_|__|data_dictionary$|parley_questions$|crm_record_changes$|deal_timeline$|deal_stage_history$)|_(fts|search)(_|$)/

/** They are computed from the others, and have tests of their own (`test/reporting`). */
const ARE_FOR_REPORTS: ReadonlySet<string> = new Set(REPORT_TABLES.map(({ name }) => name))

/** A table without a comparison would be untested. */
export function forgottenTables(db: Sqlite, expected: readonly ExpectedTable[]): Difference[] {
  const known = new Set([...expected.map(({ table }) => table), ...typedNames(db)])
  const names = db.prepare("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')").pluck().all()
  return names
    .map(String)
    .filter(name => !NOT_COMPARED.test(name) && !known.has(name) && !ARE_FOR_REPORTS.has(name))
    .map(name => `${name}: nothing is expected of this table`)
}

function openRejects(db: Sqlite): Difference[] {
  const rows = db
    .prepare('SELECT resource, reason, item FROM sync_rejects WHERE resolved_at IS NULL')
    .all() as { resource: string; reason: string; item: string }[]
  return rows.map(({ resource, reason, item }) => `sync_rejects: ${resource}: ${reason}: ${shown(item)}`)
}

/** `sync_status` counts what the tables hold. */
function misreported(db: Sqlite, expected: readonly ExpectedTable[]): Difference[] {
  // Read once: SQLite takes longer to compile this view than to compare a table.
  const rows = db.prepare('SELECT resource, rows_live FROM sync_status').raw().all() as [string, number][]
  const counts = new Map(rows)
  return expected.flatMap(({ table }) => {
    const told = counts.get(table)
    if (told === undefined) return []
    const held = db.prepare(`SELECT count(*) FROM "live_${table}"`).pluck().get()
    return told === held ? [] : [`sync_status ${table}: ${told} rows, expected ${held}`]
  })
}

/** The segments of a timeline tile the whole axis. */
function holes(db: Sqlite): Difference[] {
  const rows = db
    .prepare(
      'SELECT resource, from_at, to_at FROM sync_coverage ORDER BY resource, to_at IS NOT NULL, to_at DESC',
    )
    .all() as { resource: string; from_at: string | null; to_at: string | null }[]
  return ['activities', 'messages'].flatMap(resource => {
    const segments = rows.filter(row => row.resource === resource)
    const bounds = segments.flatMap(({ from_at, to_at }) => [to_at, from_at])
    const isTiled =
      bounds.at(0) === null &&
      bounds.at(-1) === null &&
      segments.every(
        ({ from_at }, number) => number === segments.length - 1 || from_at === segments[number + 1]?.to_at,
      )
    return isTiled || segments.length === 0 ? [] : [`sync_coverage: ${resource}: ${JSON.stringify(segments)}`]
  })
}

/** Tests of the content as `parley doctor --data` runs them. Tables for reports follow later, and are left out. */
function brokenPromises(db: Sqlite): Difference[] {
  const tables = DICTIONARY.filter(({ area }) => area !== 'reports')
  return [...runDataTests(db, tables)].flatMap(result => {
    if ('missing' in result) return [`not tested: ${result.missing}`]
    const { test, rows, keys } = result
    return rows === 0 || !test.isPromised
      ? []
      : [`${test.table} ${test.columns.join()}: ${rows} not ${test.expected} (${keys.join(', ')})`]
  })
}
