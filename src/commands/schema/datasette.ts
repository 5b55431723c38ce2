import { type DescribedTable, fullMeaning } from '../../dictionary/described-table.ts'
import type { Question } from '../../dictionary/questions.ts'
import { INTERNAL_TABLES, SEARCH_TABLES } from '../../dictionary/sync-tables.ts'

/**
 * Metadata for Datasette (https://docs.datasette.io/en/stable/metadata.html). Datasette has no field for some facts,
 * such as the meaning of NULL. The descriptions contain these facts. Pure.
 * @param database the name that Datasette gives the database: `parley` for the file `parley.db`
 */
export function datasetteMetadata(
  database: string,
  tables: readonly DescribedTable[],
  questions: readonly Question[],
): object {
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
        queries: Object.fromEntries(questions.map(question => [question.name, queryOf(question)])),
      },
    },
  }
}

/**
 * A question as a query with a field for each parameter. The value of a field is text; an empty field stands for the
 * question's own value.
 */
function queryOf({ question, parameters, sql }: Question): object {
  const statement = sql.slice(sql.search(/^(WITH|SELECT)\b/m))
  return {
    title: question,
    description: parameters.map(({ name, about }) => `${name}: ${about}.`).join(' '),
    sql: parameters.reduce((text, { name, value }) => {
      const given = `coalesce(nullif(:${name}, ''), ${value})`
      const typed = /^[\d.]+$/.test(value) ? `CAST(${given} AS NUMERIC)` : given
      return text.replace(`${value} AS ${name}`, () => `${typed} AS ${name}`)
    }, statement),
    params: parameters.map(({ name }) => name),
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
