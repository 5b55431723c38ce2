import { createHash } from 'node:crypto'
import type { DescribedColumn } from '../dictionary/described-table.ts'
import { exactNames } from '../store/crm/columns.ts'
import { readCrmTables } from '../store/crm/dictionary.ts'
import { quote } from '../store/database/sql.ts'
import type { Sqlite } from '../store/database/sqlite-types.ts'
import { type ExportColumn, type ExportTable, exportColumn } from './export-tables.ts'
import type { ExportKind } from './parquet-types.ts'

/**
 * The typed tables of the workspace's CRM objects. No declaration lists them: their columns follow from the CRM's
 * metadata, which is read from the database.
 */
export function exportedCrmTables(db: Sqlite): ExportTable[] {
  return readCrmTables(sql => db.prepare(sql))
    .filter(({ form }) => form === 'table')
    .map(({ name, columns }) => ({
      name,
      folder: folderOfTable(name),
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
    const { name, kind, doc } = column
    const ownDoc = `${doc}${DIFFERENCES[kind] ?? ''}`
    const digits = exact.get(name)
    if (digits === undefined) return [{ ...column, doc: ownDoc }]
    return [
      { ...column, doc: `${ownDoc} The exact digits are in \`${digits}\`.` },
      { ...column, name: digits, kind: 'digits', source: name, doc: `The exact digits of \`${name}\`.` },
    ]
  })
}

/** How the values differ from the dictionary's description, as a sentence that follows the description. */
const DIFFERENCES: Readonly<Partial<Record<ExportKind, string>>> = {
  number: ' Here it is a double, or NULL for a text that is no number.',
  instant: ' Here such a value is NULL.',
  day: ' Here such a value is NULL.',
}

const nameOf = ({ name }: ExportColumn): string => name

/**
 * People name CRM objects, so the name of a table may have any characters. In the folder's name only ASCII letters,
 * digits and `_` remain. When that changes the name, a digest keeps it unique.
 */
export function folderOfTable(table: string): string {
  const plain = table.replaceAll(/[^A-Za-z0-9_]+/g, '_').slice(0, MAX_NAME_LENGTH)
  if (plain === table) return table
  return `${plain}-${createHash('sha256').update(table).digest('hex').slice(0, 8)}`
}

const MAX_NAME_LENGTH = 100
