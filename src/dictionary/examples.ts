import { type PlacedTable, resourceNamed, TABLES } from '../catalog.ts'
import { canonicalInstant } from '../instant.ts'
import type { Child, Column } from '../resource.ts'

/** Where a column's value stands in the API's payloads, and what it is in the made-up ones of the declarations. */

/** As it is stored, as text; null where no example payload shows it. Never anything that was read. */
export function exampleOf(placed: PlacedTable, name: string): string | null {
  const column = columnOf(placed, name)
  if (column.example !== undefined) return column.example
  const { source } = column
  if (source.from === 'position') return '0'
  if (source.from === 'parent') return ofOwner(placed, owner => exampleOf(owner, source.column))
  const path = source.from === 'parley' ? undefined : source.path
  if (path === undefined) return null
  const value = rowsOf(placed)
    .map(row => valueAt(row, path))
    .find(known => known !== undefined && known !== null)
  return value === undefined ? null : asStored(value, column)
}

/** Names joined by dots, `[]` after every list on the way; null for what parley fills of its own. */
export function sourceOf(placed: PlacedTable, name: string): string | null {
  const { apiField, source } = columnOf(placed, name)
  if (apiField !== undefined) return apiField
  const list = listPath(placed)
  if (source.from === 'position') return list
  if (source.from === 'parent') return ofOwner(placed, owner => sourceOf(owner, source.column))
  if (source.from === 'parley' || source.path === undefined) return null
  if (childIn(placed)?.items === 'scalar') return list
  return [...(placed.table.kind === 'child' ? [list] : []), ...source.path].join('.')
}

/** The table that a child's rows hang on, whichever list told of them. */
export function ownerOf({ table, above }: PlacedTable): string | undefined {
  return above?.name ?? table.livesWith?.table
}

function columnOf({ table }: PlacedTable, name: string): Column {
  const column = table.columns[name]
  if (!column) throw new TypeError(`${table.name} declares no column ${name}`)
  return column
}

function ofOwner(placed: PlacedTable, tell: (owner: PlacedTable) => string | null): string | null {
  const owner = TABLES.get(ownerOf(placed) ?? '')
  return owner ? tell(owner) : null
}

function childIn({ table, above }: PlacedTable): Child | undefined {
  return above?.children.find(child => child.table.name === table.name)
}

/** `attendees[].teams[]` for what is two lists deep, `[]` for an answer that is a list itself. */
function listPath(placed: PlacedTable): string {
  const above = placed.above && TABLES.get(placed.above.name)
  const own = `${childIn(placed)?.list.join('.') ?? ''}[]`
  return above?.above ? `${listPath(above)}.${own}` : own
}

/** Rows of a table in the example payloads of its resource. */
function rowsOf(placed: PlacedTable): readonly unknown[] {
  const above = placed.above && TABLES.get(placed.above.name)
  if (!above) return Object.values(resourceNamed(placed.resource).example)
  const child = childIn(placed)
  const items = rowsOf(above)
    .map(row => valueAt(row, child?.list ?? []))
    .flatMap(list => (Array.isArray(list) ? (list as unknown[]) : []))
  return child?.items === 'scalar' ? items.map(value => ({ value })) : items
}

function valueAt(row: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((value, step) => fieldsOf(value).get(step), row)
}

function fieldsOf(value: unknown): ReadonlyMap<string, unknown> {
  return new Map(typeof value === 'object' && value !== null ? Object.entries(value) : [])
}

function asStored(value: unknown, { kind, tuple }: Column): string {
  if (kind === 'boolean') return value === true ? '1' : '0'
  if (kind === 'timestamp') return canonicalInstant(String(value)) ?? String(value)
  if (kind !== 'json') return String(value)
  if (tuple === undefined || !Array.isArray(value)) return JSON.stringify(value)
  return JSON.stringify((value as unknown[]).map(item => tuple.map(field => valueAt(item, [field]))))
}
