import { TABLES } from '../../catalog/catalog.ts'
import { liveRows } from '../../dictionary/live-rows.ts'

/**
 * SQL for the engines that read the tables of `parley publish`: a view `live_…` for each table, with the rows that are
 * not deleted and whose owner is not. Pure.
 */

export const ENGINES = ['spark', 'trino', 'clickhouse'] as const

export type Engine = (typeof ENGINES)[number]

interface Dialect {
  /** What to do before the statements, as SQL comments. */
  preface: readonly string[]
  quote(name: string): string
}

const inBackticks = (name: string) => `\`${name.replaceAll('`', '``')}\``
const inDoubleQuotes = (name: string) => `"${name.replaceAll('"', '""')}"`

const DIALECTS: Readonly<Record<Engine, Dialect>> = {
  spark: {
    preface: ['Run it where the published tables are, such as after: USE lake.parley'],
    quote: inBackticks,
  },
  trino: {
    preface: ['Run it in the catalogue and the schema of the published tables.'],
    quote: inDoubleQuotes,
  },
  clickhouse: {
    preface: ['Run it in the database of the published tables.'],
    quote: inBackticks,
  },
}

export function engineViews(engine: Engine): string {
  const { preface, quote } = DIALECTS[engine]
  const views = [...TABLES.values()].map(
    placed =>
      `CREATE OR REPLACE VIEW ${quote(`live_${placed.table.name}`)} AS\n${liveRows(placed, { quote, table: quote, inSet: 'IN' })};`,
  )
  return `${[...preface.map(line => `-- ${line}`), '', views.join('\n\n')].join('\n')}\n`
}
