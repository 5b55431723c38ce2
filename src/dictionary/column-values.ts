import { ownerOf, TABLES } from '../catalog/catalog.ts'
import { column, type DescribedTable, reportTable } from './described-table.ts'

/** The values that occur in columns whose values the API does not state. `store/reporting` counts them. */

export interface EnumeratedTable {
  table: string
  columns: readonly string[]
  /** The tables whose changes may change which rows are live. */
  follows: readonly string[]
}

/** The columns whose values are counted. Values of people and of what they wrote are never among them. */
export const ENUMERATED: readonly EnumeratedTable[] = [...TABLES.values()].flatMap(placed => {
  const { table } = placed
  const columns = Object.entries(table.columns).flatMap(([name, { isEnumerated, content }]) =>
    isEnumerated && !content && !table.content ? name : [],
  )
  const owner = table.kind === 'entity' ? undefined : ownerOf(placed)
  return columns.length === 0
    ? []
    : [{ table: table.name, columns, follows: [table.name, ...(owner ? [owner.table] : [])] }]
})

/** SQL for whether a table has been counted since its last change. */
const isCounted = ({ table, follows }: EnumeratedTable): string =>
  `(SELECT coalesce(max(change), 0) FROM sync_changed_parts WHERE table_name IN (${follows.map(name => `'${name}'`).join(', ')}))
    = (SELECT CAST(json_extract(value, '$.${table}') AS INTEGER) FROM sync_meta WHERE key = 'counted_values')`

const COUNTED = ENUMERATED.map(each => `SELECT '${each.table}' AS name WHERE ${isCounted(each)}`)

const COUNTS = ENUMERATED.flatMap(each =>
  each.columns.map(
    column => `SELECT '${each.table}' AS t, '${column}' AS c, CAST("${column}" AS TEXT), count(*) FROM live_${each.table}
      WHERE "${column}" IS NOT NULL AND ${isCounted(each)} GROUP BY 3`,
  ),
)

export const COLUMN_VALUES: DescribedTable = reportTable(
  {
    name: 'column_values',
    about:
      'One value that occurs in a column with few values which the API does not state, such as `activities.type`. A column with more than 200 values, or with long ones, is left out. Counted again when the rows have changed, at most once an hour.',
    sortable: ['table_name'],
    recounts: [
      {
        about: 'its numbers are those of the live rows',
        key: ['table_name', 'column_name', 'value'],
        values: ['rows'],
        ours: `SELECT c.table_name, c.column_name, c.value, c.rows FROM column_values c JOIN (${COUNTED.join(' UNION ALL ')}) t ON t.name = c.table_name`,
        base: `SELECT * FROM (${COUNTS.join(' UNION ALL ')}) WHERE (t, c) IN (SELECT table_name, column_name FROM column_values)`,
      },
    ],
  },
  {
    table_name: column('text', 'Name of the table, as in `data_dictionary`.', 'activities', { isKey: true }),
    column_name: column('text', 'Name of the column, as in `data_dictionary`.', 'type', { isKey: true }),
    value: column('text', 'The value.', 'email_sent', { isKey: true }),
    rows: column('integer', 'Live rows that have it.', '1200', { unit: 'rows' }),
  },
)
