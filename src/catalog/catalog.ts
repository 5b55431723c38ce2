import type { Resource } from '../declare/resource.ts'
import type { ResourceName } from '../declare/resource-names.ts'
import type { Child, LivesWith, Table } from '../declare/table.ts'
import { DECLARATIONS } from './declarations.ts'

/** Every resource, parents first. */
export const CATALOG: readonly Resource[] = parentsFirst(DECLARATIONS)

/** A table and its place in the tree of its resource. */
export interface PlacedTable {
  table: Table
  resource: ResourceName
  /** For a child table: the table that stores the payload's own row. */
  root?: Table
  /** For a child table: the table one level up. */
  parent?: Table
}

export const TABLES: ReadonlyMap<string, PlacedTable> = placeTables(CATALOG)

export function tableNamed(name: string): Table {
  const placed = TABLES.get(name)
  if (!placed) throw new TypeError(`No resource declares a table ${name}`)
  return placed.table
}

const POSITIONS: ReadonlyMap<string, number> = new Map(
  [...TABLES.values()].flatMap(({ table: { name, columns } }) =>
    Object.keys(columns).map((column, position) => [`${name}.${column}`, position] as const),
  ),
)

/** Whether a column has ids of the API. A column copied from the parent's row has ids if the parent's column has. */
export function hasIds({ table, root, parent }: PlacedTable, column: string): boolean {
  const declared = table.columns[column]
  if (declared?.source.from !== 'parent') return declared?.hasIds === true
  const owner = TABLES.get((parent ?? root)?.name ?? table.livesWith?.table ?? '')
  return owner !== undefined && hasIds(owner, declared.source.column)
}

/** The position of a column among the cells of a row; -1 when the table has no such column. */
export function columnAt(table: string, column: string): number {
  return POSITIONS.get(`${table}.${column}`) ?? -1
}

/** The position of the key, or of its last column, among the cells of a row. */
export function keyAt(table: string): number {
  return columnAt(table, tableNamed(table).key.at(-1) ?? '')
}

export function resourceNamed(name: ResourceName): Resource {
  const found = CATALOG.find(resource => resource.name === name)
  if (!found) throw new TypeError(`No resource is called ${name}`)
  return found
}

/**
 * The table that owns the rows of this table, and the columns that join the two tables; undefined for a table whose
 * rows have no owner. There are no columns when the payload is one document: all rows then belong to the owner's only
 * row.
 */
export function ownerOf({ table, root }: PlacedTable): LivesWith | undefined {
  if (table.livesWith) return table.livesWith
  const [first = ''] = table.key
  if (!root) return undefined
  const inherits = table.columns[first]?.source.from === 'parent'
  return { table: root.name, on: inherits ? { [first]: root.key.at(-1) ?? '' } : {} }
}

/** All child tables of a table, at any depth. */
export function descendants(table: Table): readonly Child[] {
  return table.children.flatMap(child => [child, ...descendants(child.table)])
}

/** The named resources and all their parents, in the order of the catalogue. */
export function withParents(names: readonly ResourceName[]): readonly ResourceName[] {
  const chosen = new Set<ResourceName>()
  const add = (name: ResourceName) => {
    chosen.add(name)
    for (const parent of resourceNamed(name).parents) if (!chosen.has(parent)) add(parent)
  }
  for (const name of names) add(name)
  return CATALOG.filter(resource => chosen.has(resource.name)).map(resource => resource.name)
}

/** The resource, and the parents that its reads come from: a list of the whole workspace is read without parents. */
export function sourcesOf(name: ResourceName): readonly ResourceName[] {
  const { feeds, parents } = resourceNamed(name)
  const isListed = Object.values(feeds).some(feed => 'list' in feed && !('scope' in feed && feed.scope))
  return isListed ? [name] : [name, ...parents.flatMap(sourcesOf)]
}

function parentsFirst(resources: readonly Resource[]): readonly Resource[] {
  const ordered: Resource[] = []
  const waiting = [...resources]
  while (waiting.length > 0) {
    const placed = new Set(ordered.map(resource => resource.name))
    const index = waiting.findIndex(resource => resource.parents.every(parent => placed.has(parent)))
    const [next] = index < 0 ? [] : waiting.splice(index, 1)
    if (!next) throw new TypeError(`Cyclic parents: ${waiting.map(({ name }) => name).join(', ')}`)
    ordered.push(next)
  }
  return ordered
}

function placeTables(resources: readonly Resource[]): Map<string, PlacedTable> {
  const placed = new Map<string, PlacedTable>()
  const place = (entry: PlacedTable) => {
    if (placed.has(entry.table.name)) throw new TypeError(`Two tables are called ${entry.table.name}`)
    placed.set(entry.table.name, entry)
    for (const { table } of entry.table.children) {
      place({ table, resource: entry.resource, root: entry.root ?? entry.table, parent: entry.table })
    }
  }
  for (const { name, tables } of resources) for (const table of tables) place({ table, resource: name })
  return placed
}
