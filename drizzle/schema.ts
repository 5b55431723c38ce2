import { getTableColumns, type SQL, sql } from 'drizzle-orm'
import {
  type AnySQLiteColumn,
  foreignKey,
  index,
  integer,
  primaryKey,
  real,
  type SQLiteTableExtraConfigValue,
  sqliteTable,
  text,
  uniqueIndex,
} from 'drizzle-orm/sqlite-core'
import type { BookkeepingTable } from '../src/catalog/bookkeeping/table-declaration.ts'
import { BOOKKEEPING } from '../src/catalog/bookkeeping/tables.ts'
import { type PlacedTable, TABLES } from '../src/catalog/catalog.ts'
import type { Column, ColumnKind, Table } from '../src/declare/table.ts'

/**
 * The drizzle schema from which migrations are generated: the catalogue's tables, then those of parley's own state.
 * Only `npm run schema` and tests read this file; the program itself runs the migrations and prepared statements.
 */

const BUILDERS: Readonly<
  Record<ColumnKind, (name: string) => ReturnType<typeof text | typeof integer | typeof real>>
> = {
  text: name => text(name),
  timestamp: name => text(name),
  date: name => text(name),
  json: name => text(name),
  integer: name => integer(name),
  boolean: name => integer(name),
  real: name => real(name),
}

function build(name: string, column: Column) {
  const builder = BUILDERS[column.kind](name)
  const filled = column.default === undefined ? builder : builder.default(sql.raw(column.default))
  return column.notNull ? filled.notNull() : filled
}

const ENTITY_COLUMNS = {
  _first_seen_at: () => text('_first_seen_at').notNull(),
  _synced_at: () => text('_synced_at').notNull(),
  _changed_at: () => text('_changed_at'),
  _deleted_at: () => text('_deleted_at'),
}

type Builder = ReturnType<typeof build>

function ownColumns(table: Table): Record<string, Builder> {
  return {
    ...(table.storage === 'rowid' ? { _id: integer('_id').primaryKey() } : {}),
    ...Object.fromEntries(Object.entries(table.columns).map(([name, column]) => [name, build(name, column)])),
    ...(table.kind === 'entity'
      ? Object.fromEntries(Object.entries(ENTITY_COLUMNS).map(([name, make]) => [name, make()]))
      : {}),
    ...(table.kind === 'link' ? {} : { _extra: text('_extra') }),
  }
}

type Columns = Record<string, AnySQLiteColumn>
type Pick = (names: readonly string[]) => [AnySQLiteColumn, ...AnySQLiteColumn[]]

function picker(columns: Columns): Pick {
  return names => {
    const [first, ...rest] = names.map(name => {
      const column = columns[name]
      if (!column) throw new TypeError(`no column ${name}`)
      return column
    })
    if (!first) throw new TypeError('no columns')
    return [first, ...rest]
  }
}

/** Columns of an index, some of them descending. */
function ordered(
  columns: Columns,
  names: readonly string[],
): [SQL | AnySQLiteColumn, ...(SQL | AnySQLiteColumn)[]] {
  const pick = picker(columns)
  const [first, ...rest] = names.map(name => {
    const [column] = pick([name.replace(/ DESC$/, '')])
    return name.endsWith(' DESC') ? sql`${column} DESC` : column
  })
  if (!first) throw new TypeError('an index without columns')
  return [first, ...rest]
}

type Built = ReturnType<typeof sqliteTable>

function buildTable({ table, parent }: PlacedTable, built: ReadonlyMap<string, Built>): Built {
  return sqliteTable(table.name, ownColumns(table), columns => {
    const pick = picker(columns as Columns)
    const constraints: SQLiteTableExtraConfigValue[] = [
      table.storage === 'rowid'
        ? uniqueIndex(`${table.name}_key`).on(...pick(table.key))
        : primaryKey({ columns: pick(table.key) }),
    ]
    for (const { name, columns: on, where } of table.indices) {
      const declared = index(name).on(...ordered(columns as Columns, on))
      constraints.push(where === undefined ? declared : declared.where(sql.raw(where)))
    }
    if (table.kind === 'entity') {
      const deleted = index(`${table.name}_deleted`).on(...pick(['_deleted_at']))
      constraints.push(deleted.where(sql.raw('_deleted_at IS NOT NULL')))
    }
    const reference = parent && parentReference(table, parent, built, pick)
    if (reference) constraints.push(reference)
    return constraints
  })
}

/** A foreign key to the parent within one payload. Other references have none, since either row may be stored first. */
function parentReference(table: Table, parent: Table, built: ReadonlyMap<string, Built>, pick: Pick) {
  const inherited = Object.entries(table.columns).flatMap(([name, { source }]) =>
    source.from === 'parent' ? [{ name, column: source.column }] : [],
  )
  const target = built.get(parent.name)
  if (inherited.length === 0 || !target) return undefined
  return foreignKey({
    name: `${table.name}_parent`,
    columns: pick(inherited.map(({ name }) => name)),
    foreignColumns: picker(getTableColumns(target))(inherited.map(({ column }) => column)),
  }).onDelete('cascade')
}

function buildCatalogue(): Map<string, Built> {
  const built = new Map<string, Built>()
  for (const placed of TABLES.values()) built.set(placed.table.name, buildTable(placed, built))
  return built
}

function buildBookkeeping(table: BookkeepingTable): Built {
  const [single, ...others] = table.key
  const isSingle = others.length === 0
  const columns = Object.entries(table.columns).map(([name, column]) => {
    const plain = BUILDERS[column.kind](name)
    const filled = column.default === undefined ? plain : plain.default(column.default)
    if (name === single && isSingle) return [name, filled.primaryKey()]
    const isNotNull = column.notNull || column.default !== undefined || table.key.includes(name)
    return [name, isNotNull ? filled.notNull() : filled]
  })
  return sqliteTable(table.name, Object.fromEntries(columns) as Record<string, Builder>, built => {
    const pick = picker(built as Columns)
    const indices = Object.entries(table.indices ?? {}).map(([suffix, { on, where, unique }]) => {
      const declared = (unique ? uniqueIndex : index)(`${table.name}_${suffix}`).on(...pick(on))
      return where === undefined ? declared : declared.where(sql.raw(where))
    })
    return isSingle ? indices : [primaryKey({ columns: pick(table.key) }), ...indices]
  })
}

/** Every table by name, catalogue first. */
export const SCHEMA: Readonly<Record<string, Built>> = {
  ...Object.fromEntries(buildCatalogue()),
  ...Object.fromEntries(BOOKKEEPING.map(table => [table.name, buildBookkeeping(table)])),
}

/** Tables that are stored by their key alone (WITHOUT ROWID). drizzle cannot express this; `generate.ts` adds it. */
export const CLUSTERED: ReadonlySet<string> = new Set(
  [...[...TABLES.values()].map(({ table }) => table), ...BOOKKEEPING]
    .filter(({ storage }) => storage === 'clustered')
    .map(({ name }) => name),
)
