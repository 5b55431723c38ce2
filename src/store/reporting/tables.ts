import {
  type DescribedColumn,
  type DescribedTable,
  fullMeaning,
  NEVER_NULL,
  sqlComment,
} from '../../dictionary/described-table.ts'
import { DERIVED_TABLES, REPORT_VIEWS } from '../../dictionary/report-tables.ts'
import { quote } from '../database/sql.ts'
import type { Sqlite } from '../database/sqlite-types.ts'
import { createMeta, META } from '../sync/meta.ts'

/**
 * The derived tables for reports. They are created from their descriptions and dropped when these change, since their rows
 * are computed from other tables. They are not STRICT: declared types such as DATE and BOOLEAN are shown by many clients.
 */

const NAMES = [...DERIVED_TABLES, ...REPORT_VIEWS].map(({ name }) => name)

/**
 * Creates the tables that are missing or have other columns in this version. Returns whether the names of all tables and
 * views for reports are parley's: when somebody has used one of them, none is made.
 */
export function ensureReportTables(db: Sqlite): boolean {
  if (foreignReportObjects(db).length > 0) return false
  const present = new Map(
    db
      .prepare<unknown[], [string, string]>("SELECT name, sql FROM sqlite_master WHERE type = 'table'")
      .raw()
      .all(),
  )
  const outdated = DERIVED_TABLES.filter(table => present.get(table.name) !== tableSql(table))
  const meta = createMeta(sql => db.prepare(sql))
  if (outdated.length === 0 && meta.get(META.reportObjects) === JSON.stringify(NAMES)) return true
  db.transaction(() => {
    for (const table of outdated) {
      db.exec(`DROP TABLE IF EXISTS ${quote(table.name)}`)
      db.exec(tableSql(table))
    }
    if (outdated.some(({ name }) => name === 'calendar'))
      db.exec('CREATE INDEX calendar_by_utc_from ON calendar (utc_from)')
    meta.set(META.reportObjects, JSON.stringify(NAMES))
  }).immediate()
  return true
}

/** The tables and views of other people that have names of those for reports. */
export function foreignReportObjects(db: Sqlite): string[] {
  const own: unknown = JSON.parse(createMeta(sql => db.prepare(sql)).get(META.reportObjects) ?? '[]')
  const known = Array.isArray(own) ? own : []
  const exists = db
    .prepare<unknown[], string>(
      "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND lower(name) = ?",
    )
    .pluck()
  return NAMES.filter(name => !known.includes(name)).flatMap(name => exists.get(name) ?? [])
}

const TYPES: Readonly<Record<DescribedColumn['kind'], string>> = {
  text: 'TEXT',
  json: 'TEXT',
  timestamp: 'TIMESTAMP',
  date: 'DATE',
  boolean: 'BOOLEAN',
  integer: 'INTEGER',
  real: 'REAL',
  any: 'ANY',
}

/** As the tables of migrations, which explain their columns too. */
function tableSql({ name, about, columns }: DescribedTable): string {
  const lines = columns.map(column => {
    const must = column.nullMeaning === NEVER_NULL ? ' NOT NULL' : ''
    return `\t\`${column.name}\` ${TYPES[column.kind]}${must} ${sqlComment(fullMeaning(column))}`
  })
  const key = columns.filter(({ isKey }) => isKey).map(column => `\`${column.name}\``)
  return `CREATE TABLE \`${name}\` ( ${sqlComment(about)}\n${lines.join(',\n')},\n\tPRIMARY KEY(${key.join(', ')})\n) WITHOUT ROWID`
}
