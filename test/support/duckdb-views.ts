import type { DuckDBConnection } from '@duckdb/node-api'
import { duckdbStatements } from '../../src/commands/schema/duckdb.ts'
import type { DescribedTable } from '../../src/dictionary/described-table.ts'
import { quote } from '../../src/store/database/sql.ts'
import type { Sqlite } from '../../src/store/database/sqlite-types.ts'

/**
 * Creates the views of `parley schema --duckdb` in a DuckDB database. The sqlite extension would have to be downloaded,
 * so another DuckDB database replaces the attached file. Its tables have the types that the extension gives
 * (https://duckdb.org/docs/stable/core_extensions/sqlite). Results of queries that SQLite itself answers are VARCHAR.
 */
export async function makeDuckdbViews(
  connection: DuckDBConnection,
  sqlite: Sqlite,
  tables: readonly DescribedTable[],
  { comments = false } = {},
): Promise<void> {
  await connection.run(`${SESSION}; ATTACH ':memory:' AS parley_file`)
  for (const { name, form } of tables) {
    if (form === 'table') await standIn(connection, sqlite, name)
  }
  let answers = 0
  for (const statement of duckdbStatements('parley.db', tables).views) {
    // DuckDB takes seconds to comment a very wide table.
    if (!comments && statement.startsWith('COMMENT')) continue
    let made = statement
    for (const [call, sql = ''] of statement.matchAll(ASKED)) {
      answers += 1
      const answer = `parley_file."answer ${answers}"`
      await fill(connection, answer, sqlite, asTexts(sqlite, sql.replaceAll("''", "'")), () => 'VARCHAR')
      made = made.replace(call, () => answer)
    }
    await connection.run(made)
  }
}

/** The settings that the script makes. */
const SESSION = "SET TimeZone = 'UTC'; SET default_null_order = 'nulls_first_on_asc_last_on_desc'"

const ASKED = /sqlite_query\('parley_file', '((?:[^']|'')*)'\)/g

/** In which SQLite gives 15 digits of a double. */
function asTexts(sqlite: Sqlite, sql: string): string {
  const columns = sqlite.prepare(sql).columns()
  return `SELECT ${columns.map(({ name }) => `CAST(${quote(name)} AS TEXT) AS ${quote(name)}`).join(', ')} FROM (${sql})`
}

const DECLARED: Readonly<Record<string, string>> = { TEXT: 'VARCHAR', INTEGER: 'BIGINT', REAL: 'DOUBLE' }

async function standIn(connection: DuckDBConnection, sqlite: Sqlite, name: string): Promise<void> {
  const types = new Map(
    sqlite.prepare('SELECT name, type FROM pragma_table_info(?)').raw().all(name) as [string, string][],
  )
  const typeOf = (column: string) => DECLARED[types.get(column) ?? ''] ?? 'BLOB'
  const columns = [...types.keys()].map(quote).join(', ')
  await fill(
    connection,
    `parley_file.${quote(name)}`,
    sqlite,
    `SELECT ${columns} FROM ${quote(name)}`,
    typeOf,
  )
}

async function fill(
  connection: DuckDBConnection,
  table: string,
  sqlite: Sqlite,
  sql: string,
  typeOf: (column: string) => string,
): Promise<void> {
  const statement = sqlite.prepare(sql).raw()
  const columns = statement.columns().map(({ name }) => `${quote(name)} ${typeOf(name)}`)
  await connection.run(`CREATE TABLE ${table} (${columns.join(', ')})`)
  const rows = (statement.all() as unknown[][]).map(row => `(${row.map(literal).join(', ')})`)
  for (let from = 0; from < rows.length; from += ROWS) {
    await connection.run(`INSERT INTO ${table} VALUES ${rows.slice(from, from + ROWS).join(', ')}`)
  }
}

/** Rows of one INSERT. */
const ROWS = 200

/** DuckDB ends SQL at a NUL. */
const literal = (value: unknown): string =>
  value === null ? 'NULL' : `'${String(value).replaceAll("'", "''").replaceAll('\u0000', '\ufffd')}'`
