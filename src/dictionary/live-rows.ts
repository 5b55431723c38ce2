import { ownerOf, type PlacedTable, tableNamed } from '../catalog/catalog.ts'
import type { LivesWith } from '../catalog/resource.ts'

/** SQL of the views `live_…` for other engines: rows that are not deleted and whose owner is not. Pure. */

export interface LiveRowsDialect {
  quote(name: string): string
  /** The table as it stands in FROM. */
  table(name: string): string
  /** `IN`, or how the engine writes it. */
  inSet: string
}

/** Without the columns of parley. */
export const liveColumns = ({ table }: PlacedTable): string[] =>
  Object.keys(table.columns).filter(name => !name.startsWith('_'))

/** The tables that the view reads. */
export function tablesOfLiveRows(placed: PlacedTable): readonly string[] {
  const owner = placed.table.kind === 'entity' ? undefined : ownerOf(placed)
  return [placed.table.name, ...(owner ? [owner.table] : [])]
}

export function liveRows(placed: PlacedTable, dialect: LiveRowsDialect): string {
  const { quote } = dialect
  const { table } = placed
  const columns = liveColumns(placed).map(name => `t.${quote(name)} AS ${quote(name)}`)
  const select = `SELECT ${columns.join(', ')}\nFROM ${dialect.table(table.name)} t`
  if (table.kind === 'entity') return `${select}\nWHERE t.${quote('_deleted_at')} IS NULL`
  const owner = ownerOf(placed)
  return owner ? `${select}\nWHERE ${ownerIsLive(owner, dialect)}` : select
}

/** IN instead of EXISTS: some engines have no correlated subqueries. */
function ownerIsLive({ table, on }: LivesWith, { quote, table: from, inSet }: LiveRowsDialect): string {
  const { openWhen } = tableNamed(table)
  const joined = Object.entries(on)
  const isLive = [`o.${quote('_deleted_at')} IS NULL`, ...(openWhen ? [`o.${openWhen}`] : [])].join(' AND ')
  const live = (columns: string) => `(SELECT ${columns} FROM ${from(table)} o WHERE ${isLive})`
  if (joined.length === 0) return `1 ${inSet} ${live('1')}`
  const mine = joined.map(([column]) => `t.${quote(column)}`).join(', ')
  const theirs = joined.map(([, column]) => `o.${quote(column)}`).join(', ')
  return `(${mine}) ${inSet} ${live(theirs)}`
}
