import { createHash } from 'node:crypto'
import type { ColumnKind } from '../resource.ts'
import { type CrmForm, formOf } from '../store/crm-columns.ts'
import type { Sqlite } from '../store/open.ts'
import { quote } from '../store/sql.ts'
import type { ExportColumn, ExportTable } from './tables.ts'

/** The typed tables of the workspace's CRM objects: which there are is known to the database alone. */

interface TypedField {
  table_name: string
  column_name: string
  type: string | null
  relation_type: string | null
}

const FIELDS = `SELECT o.table_name, f.column_name, f.type, f.relation_type
  FROM crm_objects o JOIN crm_fields f ON f.object = o.name
  WHERE o.table_name IS NOT NULL AND f.column_name IS NOT NULL`

const TABLES = `SELECT o.table_name FROM crm_objects o
  JOIN sqlite_master s ON s.type = 'table' AND s.name = o.table_name ORDER BY o.table_name`

export function crmTables(db: Sqlite): ExportTable[] {
  const fields = db.prepare(FIELDS).all() as TypedField[]
  const names = db.prepare(TABLES).pluck().all() as string[]
  return names.map(name => {
    const own = new Map(
      fields.filter(({ table_name }) => table_name === name).map(field => [field.column_name, field]),
    )
    return {
      name,
      folder: folderOf(name),
      resource: 'crm_records',
      columns: columnsOf(db, name, own),
      rows: { from: `${quote(name)} t`, order: 't."id"' },
    }
  })
}

const RECORD_TIMES = ['created_at', 'updated_at', '_deleted_at']

function columnsOf(db: Sqlite, table: string, fields: ReadonlyMap<string, TypedField>): ExportColumn[] {
  const names = db.prepare('SELECT name FROM pragma_table_info(?)').pluck().all(table) as string[]
  const wanted = names.map((name): ExportColumn => {
    const field = fields.get(name)
    if (!field) return { name, kind: RECORD_TIMES.includes(name) ? 'timestamp' : 'text' }
    return { name, kind: field.relation_type === null ? KINDS[formOf(field.type)] : 'text' }
  })
  const unfit = columnsWithMisfits(db, table, wanted)
  return wanted.map(column => (unfit.has(column.name) ? { ...column, kind: 'text' } : column))
}

const KINDS: Readonly<Record<CrmForm, ColumnKind>> = {
  text: 'text',
  number: 'real',
  boolean: 'boolean',
  timestamp: 'timestamp',
}

/** Under which a value is none of its column's kind: a number with too many digits is text, and so is a free-form time. */
const MISFITS: Readonly<Partial<Record<ColumnKind, (column: string) => string>>> = {
  real: column => `typeof(${column}) NOT IN ('integer', 'real', 'null')`,
  boolean: column => `typeof(${column}) NOT IN ('integer', 'null')`,
  timestamp: column => `${column} IS NOT strftime('%Y-%m-%dT%H:%M:%fZ', ${column})`,
}

/** SQLite gives so many results in a row, and no more. */
const MOST_RESULTS = 1000

/** One reading of the table tells of all its columns. */
function columnsWithMisfits(db: Sqlite, table: string, columns: readonly ExportColumn[]): Set<string> {
  const doubtful = columns.flatMap(({ name, kind }) => {
    const condition = MISFITS[kind]?.(quote(name))
    return condition === undefined ? [] : [{ name, condition }]
  })
  const unfit = new Set<string>()
  for (let from = 0; from < doubtful.length; from += MOST_RESULTS) {
    const some = doubtful.slice(from, from + MOST_RESULTS)
    const conditions = some.map(({ condition }) => `max(${condition})`)
    const found = db
      .prepare(`SELECT ${conditions.join(', ')} FROM ${quote(table)}`)
      .raw()
      .get() as unknown[]
    some.forEach(({ name }, index) => {
      if (found[index] === 1) unfit.add(name)
    })
  }
  return unfit
}

/** Objects are named by people: what is no plain letter or digit is left out, and the name's digest tells them apart. */
export function folderOf(table: string): string {
  const plain = table.replaceAll(/[^A-Za-z0-9_]+/g, '_').slice(0, MOST_LETTERS)
  if (plain === table) return table
  return `${plain}-${createHash('sha256').update(table).digest('hex').slice(0, 8)}`
}

const MOST_LETTERS = 100
