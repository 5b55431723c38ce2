import type { RowOf } from '../catalog/bookkeeping/table-declaration.ts'
import type { DICTIONARY_TABLE } from '../catalog/bookkeeping/tables.ts'
import { CONVENIENCE_VIEWS } from './convenience-views.ts'
import { type DescribedTable, meaning } from './described-table.ts'
import { REPORT_TABLES } from './report-tables.ts'
import { liveViews, resourceTables } from './resource-tables.ts'
import { DICTIONARY_TABLES, SYNC_TABLES } from './sync-tables.ts'

/**
 * Descriptions of every table and view that analysts may query: the source of the table `data_dictionary`, of the
 * comments in the schema, of `drizzle/README.md` and of `parley schema`. The typed CRM tables are not among them, since
 * they depend on the workspace's metadata.
 */
export const DICTIONARY: readonly DescribedTable[] = [
  ...resourceTables(),
  ...REPORT_TABLES,
  ...CONVENIENCE_VIEWS,
  ...SYNC_TABLES,
  ...DICTIONARY_TABLES,
  ...liveViews(),
]

const BY_NAME: ReadonlyMap<string, DescribedTable> = new Map(DICTIONARY.map(table => [table.name, table]))

export function describedTable(name: string): DescribedTable | undefined {
  return BY_NAME.get(name)
}

/** A row of `data_dictionary`. */
export type DictionaryRow = RowOf<typeof DICTIONARY_TABLE>

export function dictionaryRows({ name, columns }: DescribedTable): DictionaryRow[] {
  return columns.map((column, position) => ({
    table_name: name,
    column_name: column.name,
    position,
    type: column.kind,
    null_meaning: column.nullMeaning,
    description: meaning(column),
    source_field: column.source,
    unit: column.unit,
    example: column.example,
    value_on_delete: column.onDelete,
  }))
}
