import { safeMultilineText, safeText } from '../../base/safe-text.ts'
import { TABLES } from '../../catalog/catalog.ts'
import {
  type DescribedColumn,
  type DescribedKind,
  type DescribedTable,
  fullMeaning,
} from '../../dictionary/described-table.ts'
import { isDerived } from '../../dictionary/report-tables.ts'
import { LIKE_SQLITE, replacing } from '../../export/duckdb-views.ts'
import { exactNames } from '../../store/crm/columns.ts'
import { literal, quote } from '../../store/database/sql.ts'
import { liveViewOf } from '../../store/views/views.ts'

/**
 * SQL for DuckDB: attaches the file read-only and creates a view for every table and view, with types from the
 * dictionary. Pure.
 * - A table is read through the attached file.
 * - A live view of a table that a resource declares has the same SQL as in the warehouse, over the typed views.
 * - SQLite itself runs the query for any other view, for a table that mixes numbers and text in a column, and for the
 *   derived tables, whose declared types DuckDB's sqlite extension reads differently from version to version.
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

/** The statements that attach the file, and those that create the views, in the order to run them. */
export interface DuckdbStatements {
  attach: readonly string[]
  views: readonly string[]
}

export function duckdbStatements(file: string, tables: readonly DescribedTable[]): DuckdbStatements {
  const rest = tables.filter(({ name }) => !LIVE_VIEWS.has(name))
  const live = tables.flatMap(({ name }) => LIVE_VIEWS.get(name) ?? [])
  return {
    attach: [
      'INSTALL sqlite;',
      'LOAD sqlite;',
      `ATTACH IF NOT EXISTS ${literal(file)} AS ${ATTACHED} (TYPE sqlite, READ_ONLY);`,
    ],
    views: [...rest.map(typedView), ...live, ...tables.flatMap(commentStatements)],
  }
}

export function duckdbScript(file: string, tables: readonly DescribedTable[]): string {
  const printed = tables.filter(hasSafeNames)
  const { attach, views } = duckdbStatements(file, printed)
  const leftOut = printed.length < tables.length ? [LEFT_OUT] : []
  return `${[...PREFACE, ...leftOut, '', ...attach, '', ...views].join('\n')}\n`
}

/** Whether no name has a control character. Only earlier versions of parley gave such names. */
const hasSafeNames = ({ name, columns }: DescribedTable): boolean =>
  [name, ...columns.map(column => column.name)].every(one => safeText(one) === one)

const LEFT_OUT = '-- Left out: tables and views that have a control character in a name.'

const PREFACE = [
  '-- A view in DuckDB for every table and view of the warehouse: timestamps, dates, booleans and JSON typed.',
  '-- A value that does not fit its type is NULL here; the attached file has it unchanged.',
  '-- DuckDB 1.2.1 or newer. INSTALL downloads the sqlite extension once; without a network, install it from a file.',
  '-- DuckDB keeps the views, but not the attached file: run this again in every session.',
  ...LIKE_SQLITE,
]

/** Live views of the tables that resources declare. Their SQL is valid in DuckDB as well. */
const LIVE_VIEWS: ReadonlyMap<string, string> = new Map(
  [...TABLES.values()].map(liveViewOf).map(view => [view.name, replacing(view)]),
)

function typedView(table: DescribedTable): string {
  const exact = exactColumns(table)
  const columns = table.columns.flatMap(column => {
    const digits = exact.get(column.name)
    return [typedColumn(column), ...(digits === undefined ? [] : [quote(digits)])]
  })
  return `CREATE OR REPLACE VIEW ${quote(table.name)} AS SELECT ${columns.join(', ')} FROM ${sourceOf(table, exact)};`
}

function typedColumn({ name, kind, mayMisfit }: DescribedColumn): string {
  const type = TYPES[kind]
  if (type === undefined) return quote(name)
  const source = (mayMisfit && VALID_PART[kind]?.(quote(name))) || quote(name)
  const value = `TRY_CAST(${source} AS ${type})`
  // DuckDB reads 1e400 as infinity, which would make every sum infinite. Such a value becomes NULL.
  return `${kind === 'any' ? `CASE WHEN isfinite(${value}) THEN ${value} END` : value} AS ${quote(name)}`
}

/** SQL for the part of a value that has the warehouse's format. DuckDB's casts alone would accept more formats. */
const VALID_PART: Readonly<Partial<Record<DescribedKind, (column: string) => string>>> = {
  timestamp: column => `nullif(regexp_extract(${column}, '^\\d{4}-\\d\\d-\\d\\dT[0-9:.]{12}Z$'), '')`,
  date: column => `nullif(regexp_extract(${column}, '^(\\d{4}-\\d\\d-\\d\\d)($|[T ])', 1), '')`,
}

/** For each column of numbers of any length, the name of a second column with all digits, as in an export. */
function exactColumns({ columns }: DescribedTable): ReadonlyMap<string, string> {
  const numbers = columns.filter(({ kind }) => kind === 'any').map(({ name }) => name)
  return exactNames(
    columns.map(({ name }) => name),
    numbers,
  )
}

function sourceOf({ name, form, columns }: DescribedTable, exact: ReadonlyMap<string, string>): string {
  if (form === 'table' && exact.size === 0 && !isDerived(name)) return attachedRows(name, columns)
  const query = (select: string) =>
    `sqlite_query(${literal(ATTACHED)}, ${literal(`SELECT ${select} FROM ${quote(name)}`)})`
  const digits = [...exact].map(
    ([number, called]) =>
      `iif(typeof(${quote(number)}) = 'text', ${quote(number)}, NULL) AS ${quote(called)}`,
  )
  const cells = columns.map(sourceCell)
  if (cells.length + digits.length <= MAX_RESULT_COLUMNS) return query([...cells, ...digits].join(', '))
  return `${query(cells.join(', '))} JOIN ${query(['"id"', ...digits].join(', '))} USING ("id")`
}

/**
 * All rows: no key is NULL. The condition lets DuckDB read a column where a query needs none, such as `count(*)`.
 * Otherwise DuckDB asks for the rowid, which most tables do not have.
 */
function attachedRows(name: string, columns: readonly DescribedColumn[]): string {
  const key = columns.find(({ isKey }) => isKey)
  return `${ATTACHED}.${quote(name)}${key ? ` WHERE ${quote(key.name)} IS NOT NULL` : ''}`
}

/** The cell in a query that SQLite runs. Its result is text, and SQLite's own text of a double has only 15 digits. */
function sourceCell({ name, kind }: DescribedColumn): string {
  const column = quote(name)
  if (kind !== 'any' && kind !== 'real') return column
  return `iif(typeof(${column}) = 'real', printf('%!.17g', ${column}), ${column}) AS ${column}`
}

/** SQLite's limit for columns of a result. */
const MAX_RESULT_COLUMNS = 2000

function commentStatements(table: DescribedTable): string[] {
  const { name, about, columns } = table
  const comment = (column: string, text: string) =>
    `COMMENT ON COLUMN ${quote(name)}.${quote(column)} IS ${literal(safeMultilineText(text))};`
  return [
    `COMMENT ON VIEW ${quote(name)} IS ${literal(safeMultilineText(about))};`,
    ...columns.map(column => comment(column.name, fullMeaning(column))),
    ...[...exactColumns(table)].map(([number, digits]) => comment(digits, digitsComment(number))),
  ]
}

const digitsComment = (number: string): string =>
  `Every digit of "${number}" where a double does not keep them. NULL: the double is exact.`
