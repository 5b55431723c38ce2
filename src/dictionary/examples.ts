import { canonicalInstant } from '../base/instant.ts'
import { type PlacedTable, resourceNamed, TABLES } from '../catalog/catalog.ts'
import type { Child, Column } from '../declare/table.ts'

/** The path of a column in the API's payloads, and its value in the made-up example payloads of the declarations. */

/** The example in its stored form, as text; null where no example payload has the value. */
export function exampleOf(placed: PlacedTable, name: string): string | null {
  const column = columnOf(placed, name)
  if (column.example !== undefined) return column.example
  const { source } = column
  if (source.from === 'position') return '0'
  if (source.from === 'parent') return valueOfOwner(placed, owner => exampleOf(owner, source.column))
  const path = 'path' in source ? source.path : undefined
  if (path === undefined) return null
  const value = rowsOf(placed)
    .map(row => valueAt(row, path))
    .find(known => known !== undefined && known !== null)
  return value === undefined ? null : asStored(value, column)
}

/** The API field: names joined by dots, `[]` after each list in the path; null for values that parley sets. */
export function sourceOf(placed: PlacedTable, name: string): string | null {
  const { apiField, source } = columnOf(placed, name)
  if (apiField !== undefined) return apiField
  const list = listPath(placed)
  if (source.from === 'position') return list
  if (source.from === 'parent') return valueOfOwner(placed, owner => sourceOf(owner, source.column))
  if (!('path' in source) || source.path === undefined) return null
  if (childIn(placed)?.items === 'scalar') return list
  return [...(placed.table.kind === 'child' ? [list] : []), ...source.path].join('.')
}

/** The table that the rows belong to: the parent, or the table in `livesWith`. */
export function tableOfOwner({ table, parent }: PlacedTable): string | undefined {
  return parent?.name ?? table.livesWith?.table
}

function columnOf({ table }: PlacedTable, name: string): Column {
  const column = table.columns[name]
  if (!column) throw new TypeError(`${table.name} declares no column ${name}`)
  return column
}

function valueOfOwner(placed: PlacedTable, read: (owner: PlacedTable) => string | null): string | null {
  const owner = TABLES.get(tableOfOwner(placed) ?? '')
  return owner ? read(owner) : null
}

function childIn({ table, parent }: PlacedTable): Child | undefined {
  return parent?.children.find(child => child.table.name === table.name)
}

/** Path of the list whose items are the rows, such as `attendees[].teams[]`; `[]` where the answer is the list. */
function listPath(placed: PlacedTable): string {
  const parent = placed.parent && TABLES.get(placed.parent.name)
  const own = `${childIn(placed)?.list.join('.') ?? ''}[]`
  return parent?.parent ? `${listPath(parent)}.${own}` : own
}

/** The table's rows in the example payloads of its resource. */
function rowsOf(placed: PlacedTable): readonly unknown[] {
  const parent = placed.parent && TABLES.get(placed.parent.name)
  if (!parent) return Object.values(resourceNamed(placed.resource).example)
  const child = childIn(placed)
  const items = rowsOf(parent)
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
