import { type DescribedTable, fullMeaning } from '../../dictionary/described-table.ts'
import { INTERNAL_TABLES, SEARCH_TABLES } from '../../dictionary/sync-tables.ts'

/**
 * Metadata for Datasette (https://docs.datasette.io/en/stable/metadata.html). Datasette has no field for some facts,
 * such as the meaning of NULL. The descriptions contain them. Pure.
 * @param database the name that Datasette gives the database: `parley` for the file `parley.db`
 */
export function datasetteMetadata(database: string, tables: readonly DescribedTable[]): object {
  const described = Object.fromEntries(tables.map(table => [table.name, metadataOf(table)]))
  const internal = Object.entries({ ...INTERNAL_TABLES, ...SEARCH_TABLES }).map(([name, description]) => [
    name,
    { description, hidden: true },
  ])
  return {
    title: 'Conversations of the workspace',
    databases: {
      [database]: {
        description:
          'Maintained by parley. Views named live_… leave out deleted rows. Start from these views.',
        tables: { ...described, ...Object.fromEntries(internal) },
      },
    },
  }
}

/** The names of units in Pint, the library to which Datasette passes them. Any other unit is left out. */
const PINT: Readonly<Record<string, string>> = {
  milliseconds: 'ms',
  seconds: 's',
  days: 'day',
  bytes: 'byte',
}

function metadataOf({ about, columns, sortable, newestBy, label }: DescribedTable): object {
  const units = columns.flatMap(({ name, unit }) => {
    const known = unit === null ? undefined : PINT[unit]
    return known === undefined ? [] : [[name, known]]
  })
  return {
    description: about,
    columns: Object.fromEntries(columns.map(column => [column.name, fullMeaning(column)])),
    ...(units.length > 0 && { units: Object.fromEntries(units) }),
    // Sorting a large table by another column would exceed Datasette's time limit.
    sortable_columns: sortable,
    ...(newestBy !== undefined && { sort_desc: newestBy }),
    ...(label !== undefined && { label_column: label }),
  }
}
