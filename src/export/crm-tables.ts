import { createHash } from 'node:crypto'
import type { DescribedColumn } from '../dictionary/described-table.ts'
import { exactNames } from '../store/crm/columns.ts'
import { quote } from '../store/database/sql.ts'
import type { Sqlite } from '../store/database/sqlite-types.ts'
import { readCrmTables } from '../store/views/fill-dictionary.ts'
import { type ExportColumn, type ExportTable, exportColumn } from './tables.ts'

/**
 * The typed tables of the workspace's CRM objects. No declaration lists them: their columns follow from the CRM's
 * metadata, which is read from the database.
 */
export function crmTables(db: Sqlite): ExportTable[] {
  return readCrmTables(sql => db.prepare(sql))
    .filter(({ form }) => form === 'table')
    .map(({ name, columns }) => ({
      name,
      folder: folderOf(name),
      resource: 'crm_records',
      columns: withDigits(columns),
      rows: { from: `${quote(name)} t`, order: 't."id"' },
    }))
}

/** Types never depend on the values: such types would change from one export to the next. */
function withDigits(described: readonly DescribedColumn[]): ExportColumn[] {
  const columns = described.map(exportColumn)
  const numbers = columns.filter(({ kind }) => kind === 'number')
  const exact = exactNames(columns.map(nameOf), numbers.map(nameOf))
  return columns.flatMap(column => {
    const name = exact.get(column.name)
    return name === undefined ? [column] : [column, { ...column, name, kind: 'digits', source: column.name }]
  })
}

const nameOf = ({ name }: ExportColumn): string => name

/**
 * People name CRM objects, so the name of a table may have any characters. In the folder's name only ASCII letters,
 * digits and `_` remain. When that changes the name, a digest keeps it unique.
 */
export function folderOf(table: string): string {
  const plain = table.replaceAll(/[^A-Za-z0-9_]+/g, '_').slice(0, MAX_NAME_LENGTH)
  if (plain === table) return table
  return `${plain}-${createHash('sha256').update(table).digest('hex').slice(0, 8)}`
}

const MAX_NAME_LENGTH = 100
