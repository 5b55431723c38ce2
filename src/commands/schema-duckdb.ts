import { TABLES } from '../catalog.ts'
import { type DescribedKind, type DescribedTable, fullMeaning } from '../dictionary/described.ts'
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
  timestamp: 'TIMESTAMP',
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
  '-- A view in DuckDB for every table and view of the warehouse: timestamps (UTC), dates, booleans and JSON typed.',
  '-- A value that does not fit its type is NULL here; as it stands, it is in the attached file.',
  '-- DuckDB 1.2.1 or newer. INSTALL downloads the sqlite extension once; without a network, install it from a file.',
  '-- The views last, the attached file does not: run this again in every session.',
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
  const columns = table.columns.map(({ name, kind }) => {
    const type = TYPES[kind]
    return type === undefined ? quote(name) : `TRY_CAST(${quote(name)} AS ${type}) AS ${quote(name)}`
  })
  return `CREATE OR REPLACE VIEW ${quote(table.name)} AS SELECT ${columns.join(', ')} FROM ${sourceOf(table)};`
}

function sourceOf({ name, form, columns }: DescribedTable): string {
  const isPlain = form === 'table' && columns.every(({ kind }) => kind !== 'any')
  if (isPlain) return `${ATTACHED}.${quote(name)}`
  return `sqlite_query(${literal(ATTACHED)}, ${literal(`SELECT * FROM ${quote(name)}`)})`
}

function comments({ name, about, columns }: DescribedTable): string[] {
  return [
    `COMMENT ON VIEW ${quote(name)} IS ${literal(about)};`,
    ...columns.map(
      column => `COMMENT ON COLUMN ${quote(name)}.${quote(column.name)} IS ${literal(fullMeaning(column))};`,
    ),
  ]
}

function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`
}
