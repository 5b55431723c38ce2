import { createHash } from 'node:crypto'
import { type CrmForm, exactNames, formOf } from '../store/crm/columns.ts'
import { quote } from '../store/database/sql.ts'
import type { Sqlite } from '../store/database/sqlite-types.ts'
import type { ExportKind } from './parquet-types.ts'
import type { ExportColumn, ExportTable } from './tables.ts'

/**
 * The typed tables of the workspace's CRM objects. No declaration lists them: their columns follow from the CRM's
 * metadata, which is read from the database.
 */

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

/** Types come from the CRM's metadata only. Types derived from the values would change from one export to the next. */
function columnsOf(db: Sqlite, table: string, own: ReadonlyMap<string, TypedField>): ExportColumn[] {
  const names = db.prepare('SELECT name FROM pragma_table_info(?)').pluck().all(table) as string[]
  const columns = names.map((name): ExportColumn => {
    const field = own.get(name)
    if (!field) return { name, kind: RECORD_TIMES.includes(name) ? 'timestamp' : 'text' }
    return { name, kind: field.relation_type === null ? KINDS[formOf(field.type)] : 'text', mayMisfit: true }
  })
  const numbers = columns.filter(({ kind }) => kind === 'number').map(({ name }) => name)
  const exact = exactNames(names, numbers)
  return columns.flatMap(column => {
    const name = exact.get(column.name)
    return name === undefined ? [column] : [column, { ...column, name, kind: 'digits', source: column.name }]
  })
}

const KINDS: Readonly<Record<CrmForm, ExportKind>> = {
  text: 'text',
  number: 'number',
  boolean: 'boolean',
  timestamp: 'instant',
  date: 'day',
}

/**
 * People name CRM objects, so the name of a table may have any characters. In the folder's name only ASCII letters,
 * digits and `_` remain. When that changes the name, a digest keeps it unique.
 */
function folderOf(table: string): string {
  const plain = table.replaceAll(/[^A-Za-z0-9_]+/g, '_').slice(0, MAX_NAME_LENGTH)
  if (plain === table) return table
  return `${plain}-${createHash('sha256').update(table).digest('hex').slice(0, 8)}`
}

const MAX_NAME_LENGTH = 100
