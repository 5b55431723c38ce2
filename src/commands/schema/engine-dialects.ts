import { sparkStatement } from './spark-statement.ts'

/** The engines that read the tables of `parley publish`, and how they write SQL. Pure. */

export const ENGINES = ['spark', 'trino', 'clickhouse'] as const

export type Engine = (typeof ENGINES)[number]

export interface Dialect {
  /** What to do before the statements. Each line becomes an SQL comment. */
  preface: readonly string[]
  createView: string
  quote(name: string): string
  /** A published table as it stands in FROM, in the catalogue that is connected as `lake`. */
  table(name: string): string
  /** @param sql without a semicolon at its end */
  statement(sql: string): string
}

const withSemicolon = (sql: string) => `${sql};`

const inBackticks = (name: string) => `\`${name.replaceAll('`', '``')}\``
const inDoubleQuotes = (name: string) => `"${name.replaceAll('"', '""')}"`
/** To ClickHouse, a backslash in quotes is an escape. */
const inEscapedBackticks = (name: string) => `\`${name.replaceAll('\\', '\\\\').replaceAll('`', '\\`')}\``

export const DIALECTS: Readonly<Record<Engine, Dialect>> = {
  spark: {
    preface: [
      'The published tables are read in the catalogue lake. The views are temporary: they are not stored there,',
      'since it is read-only. Run this in every session.',
    ],
    createView: 'CREATE OR REPLACE TEMPORARY VIEW',
    quote: inBackticks,
    table: name => `lake.parley.${inBackticks(name)}`,
    statement: sparkStatement,
  },
  trino: {
    preface: [
      'The published tables are read in the catalog lake, which is read-only. Run this in a schema of another',
      'catalog that stores views.',
    ],
    createView: 'CREATE OR REPLACE VIEW',
    quote: inDoubleQuotes,
    table: name => `lake.parley.${inDoubleQuotes(name)}`,
    statement: withSemicolon,
  },
  clickhouse: {
    preface: [
      'The published tables are read in the database lake, of the engine DataLakeCatalog. Run this in another',
      'database.',
    ],
    createView: 'CREATE OR REPLACE VIEW',
    quote: inEscapedBackticks,
    table: name => `lake.${inEscapedBackticks(`parley.${name}`)}`,
    statement: withSemicolon,
  },
}
