import { sparkStatement } from './spark-statement.ts'

/** The engines that read the tables of `parley publish`, and how they write SQL. Pure. */

export const ENGINES = ['spark', 'trino', 'clickhouse'] as const

export type Engine = (typeof ENGINES)[number]

export interface Dialect {
  /** What to do before the statements. Each line becomes an SQL comment. */
  preface: readonly string[]
  createView: string
  quote(name: string): string
  /** Where an engine finds the published tables once it is connected as the page for engines says. */
  catalogue: string
  /** A published table as it stands in FROM, after the name of the catalogue. */
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
      'The views are temporary: the catalogue of the published tables is read-only and does not store them.',
      'Run this in every session.',
    ],
    createView: 'CREATE OR REPLACE TEMPORARY VIEW',
    quote: inBackticks,
    catalogue: 'lake.parley',
    table: inBackticks,
    statement: sparkStatement,
  },
  trino: {
    preface: [
      'The catalog of the published tables is read-only. Run this in a schema of another one that stores views.',
    ],
    createView: 'CREATE OR REPLACE VIEW',
    quote: inDoubleQuotes,
    catalogue: 'lake.parley',
    table: inDoubleQuotes,
    statement: withSemicolon,
  },
  clickhouse: {
    preface: [
      'The published tables are those of a database of the engine DataLakeCatalog. Run this in another database.',
    ],
    createView: 'CREATE OR REPLACE VIEW',
    quote: inEscapedBackticks,
    catalogue: 'lake',
    table: name => inEscapedBackticks(`parley.${name}`),
    statement: withSemicolon,
  },
}
