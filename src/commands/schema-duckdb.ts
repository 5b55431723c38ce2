import { TABLES } from '../catalog.ts'
import {
  type DescribedColumn,
  type DescribedKind,
  type DescribedTable,
  fullMeaning,
} from '../dictionary/described.ts'
import { exactNames } from '../store/crm-columns.ts'
import { quote } from '../store/sql.ts'
import { viewStatements } from '../store/views.ts'

/**
 * SQL for DuckDB: attaches the file for reading and makes a view of every table and view, typed by the dictionary.
 * Tables are read through the attached file. Views of live rows are those of the warehouse, over the typed ones. What
 * only SQLite understands, and what holds numbers and texts in one column, is asked of SQLite. Pure.
 */

const ATTACHED = 'parley_file'

const TYPES: Readonly<Record<DescribedKind, string | undefined>> = {
  text: undefined,
  timestamp: 'TIMESTAMPTZ',
  date: 'DATE',
  json: 'JSON',
  integer: 'BIGINT',
  boolean: 'BOOLEAN',
  real: 'DOUBLE',
  any: 'DOUBLE',
}

/** The statement that attaches, and those that make the views, in an order in which they can be run. */
export interface DuckdbStatements {
  attach: readonly string[]
  views: readonly string[]
}

export function duckdbStatements(file: string, tables: readonly DescribedTable[]): DuckdbStatements {
  const rest = tables.filter(({ name }) => !LIVE_VIEWS.has(name))
  const live = tables.filter(({ name }) => LIVE_VIEWS.has(name))
  return {
    attach: [
      'INSTALL sqlite;',
      'LOAD sqlite;',
      `ATTACH IF NOT EXISTS ${literal(file)} AS ${ATTACHED} (TYPE sqlite, READ_ONLY);`,
    ],
    views: [
      ...rest.map(typedView),
      ...live.map(({ name }) => `CREATE OR REPLACE VIEW ${quote(name)} AS ${LIVE_VIEWS.get(name)};`),
      ...tables.flatMap(comments),
    ],
  }
}

export function duckdbScript(file: string, tables: readonly DescribedTable[]): string {
  const { attach, views } = duckdbStatements(file, tables)
  return `${[...PREFACE, '', ...attach, '', ...views].join('\n')}\n`
}

const PREFACE = [
  '-- A view in DuckDB for every table and view of the warehouse: timestamps, dates, booleans and JSON typed.',
  '-- A value that does not fit its type is NULL here; as it stands, it is in the attached file.',
  '-- DuckDB 1.2.1 or newer. INSTALL downloads the sqlite extension once; without a network, install it from a file.',
  '-- The views last, the attached file does not: run this again in every session.',
  '-- Days and months are those of UTC, as in the warehouse.',
  "SET TimeZone = 'UTC';",
  '-- NULL comes first in ascending order, as in SQLite.',
  "SET default_null_order = 'nulls_first_on_asc_last_on_desc';",
]

/** Of the tables that resources declare: plain SQL, the same in DuckDB. */
const LIVE_VIEWS: ReadonlyMap<string, string> = new Map(
  viewStatements().flatMap(({ name, sql }): [string, string][] =>
    name.startsWith('live_') && TABLES.has(name.slice('live_'.length))
      ? [[name, sql.slice(sql.indexOf(' AS ') + ' AS '.length)]]
      : [],
  ),
)

function typedView(table: DescribedTable): string {
  const exact = exactColumns(table)
  const columns = table.columns.flatMap(column => {
    const digits = exact.get(column.name)
    return [typedColumn(table, column), ...(digits === undefined ? [] : [quote(digits)])]
  })
  return `CREATE OR REPLACE VIEW ${quote(table.name)} AS SELECT ${columns.join(', ')} FROM ${sourceOf(table, exact)};`
}

function typedColumn(table: DescribedTable, { name, kind, mayMisfit }: DescribedColumn): string {
  // DuckDB does not see computed columns of an attached table.
  const computed = TABLES.get(table.name)?.table.columns[name]?.computed
  if (computed !== undefined) return `${computed} AS ${quote(name)}`
  const type = TYPES[kind]
  if (type === undefined) return quote(name)
  const source = (mayMisfit && FITTING[kind]?.(quote(name))) || quote(name)
  const value = `TRY_CAST(${source} AS ${type})`
  // DuckDB reads 1e400 as infinity, which would spoil every sum.
  return `${kind === 'any' ? `CASE WHEN isfinite(${value}) THEN ${value} END` : value} AS ${quote(name)}`
}

/** The part of a value that the type is to be read from: DuckDB takes more than the warehouse's own forms. */
const FITTING: Readonly<Partial<Record<DescribedKind, (column: string) => string>>> = {
  timestamp: column => `nullif(regexp_extract(${column}, '^\\d{4}-\\d\\d-\\d\\dT[0-9:.]{12}Z$'), '')`,
  date: column => `nullif(regexp_extract(${column}, '^(\\d{4}-\\d\\d-\\d\\d)($|[T ])', 1), '')`,
}

/** Next to each column of numbers of any length, the one with their digits: the same that an export has. */
function exactColumns({ columns }: DescribedTable): ReadonlyMap<string, string> {
  const numbers = columns.filter(({ kind }) => kind === 'any').map(({ name }) => name)
  return exactNames(
    columns.map(({ name }) => name),
    numbers,
  )
}

function sourceOf({ name, form, columns }: DescribedTable, exact: ReadonlyMap<string, string>): string {
  if (form === 'table' && exact.size === 0) return `${ATTACHED}.${quote(name)}`
  const asked = (select: string) =>
    `sqlite_query(${literal(ATTACHED)}, ${literal(`SELECT ${select} FROM ${quote(name)}`)})`
  const digits = [...exact].map(
    ([number, called]) =>
      `iif(typeof(${quote(number)}) = 'text', ${quote(number)}, NULL) AS ${quote(called)}`,
  )
  if (columns.length + exact.size <= MOST_RESULTS) return asked(['*', ...digits].join(', '))
  return `${asked('*')} JOIN ${asked(['"id"', ...digits].join(', '))} USING ("id")`
}

/** SQLite gives so many columns at once. */
const MOST_RESULTS = 2000

function comments(table: DescribedTable): string[] {
  const { name, about, columns } = table
  const comment = (column: string, text: string) =>
    `COMMENT ON COLUMN ${quote(name)}.${quote(column)} IS ${literal(text)};`
  return [
    `COMMENT ON VIEW ${quote(name)} IS ${literal(about)};`,
    ...columns.map(column => comment(column.name, fullMeaning(column))),
    ...[...exactColumns(table)].map(([number, digits]) => comment(digits, digitsOf(number))),
  ]
}

const digitsOf = (number: string): string =>
  `Every digit of "${number}" where a double does not keep them. NULL: the double is exact.`

function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`
}
