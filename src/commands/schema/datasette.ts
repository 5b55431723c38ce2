import { type DescribedTable, fullMeaning } from '../../dictionary/described-table.ts'
import { INTERNAL_TABLES, SEARCH_TABLES } from '../../dictionary/sync-tables.ts'

/**
 * Metadata for Datasette (https://docs.datasette.io/en/stable/metadata.html). The file `parley.db` has the name
 * `parley`. Facts without a metadata field, such as a unit that is not stated, are part of the descriptions. Pure.
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

/** Datasette passes units to the library Pint, which must know their names. */
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
