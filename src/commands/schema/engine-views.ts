import { ownerOf, type PlacedTable, TABLES, tableNamed } from '../../catalog/catalog.ts'
import type { LivesWith } from '../../catalog/resource.ts'

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
    placed => `CREATE OR REPLACE VIEW ${quote(`live_${placed.table.name}`)} AS\n${liveRows(placed, quote)};`,
  )
  return `${[...preface.map(line => `-- ${line}`), '', views.join('\n\n')].join('\n')}\n`
}

function liveRows(placed: PlacedTable, quote: Dialect['quote']): string {
  const { table } = placed
  const columns = Object.keys(table.columns).filter(name => !name.startsWith('_'))
  const select = `SELECT ${columns.map(name => `t.${quote(name)}`).join(', ')}\nFROM ${quote(table.name)} t`
  if (table.kind === 'entity') return `${select}\nWHERE t.${quote('_deleted_at')} IS NULL`
  const owner = ownerOf(placed)
  return owner ? `${select}\nWHERE ${ownerIsLive(owner, quote)}` : select
}

/** IN instead of EXISTS: some engines have no correlated subqueries. */
function ownerIsLive({ table, on }: LivesWith, quote: Dialect['quote']): string {
  const { openWhen } = tableNamed(table)
  const joined = Object.entries(on)
  const isLive = [`o.${quote('_deleted_at')} IS NULL`, ...(openWhen ? [`o.${openWhen}`] : [])].join(' AND ')
  const live = (columns: string) => `(SELECT ${columns} FROM ${quote(table)} o WHERE ${isLive})`
  if (joined.length === 0) return `1 IN ${live('1')}`
  const mine = joined.map(([column]) => `t.${quote(column)}`).join(', ')
  const theirs = joined.map(([, column]) => `o.${quote(column)}`).join(', ')
  return `(${mine}) IN ${live(theirs)}`
}
