import { EXIT_STATUS, StopError } from '../../errors.ts'
import type { Sqlite } from '../../store/database/sqlite-types.ts'
import { readCrmObjects } from '../../store/views/fill-dictionary.ts'
import { publishedTables } from '../tables.ts'
import type { ClickHouseConnection } from './connection.ts'
import type { ClickHouseDialect } from './dialect.ts'
import { isLayoutOf, layoutOf } from './layout.ts'
import { type Relation, readColumns, readRelations } from './state.ts'
import { createStateTables, STATE_TABLES } from './state-tables.ts'
import { createTable, type DatabasePlace, type ViewToCreate } from './statements.ts'
import { allViews, type ViewedTable } from './views.ts'

/** Creates the tables that a publication writes, where they are missing. */

export interface TablesToPrepare {
  db: Sqlite
  connection: ClickHouseConnection
  place: DatabasePlace
  dialect: ClickHouseDialect
  /** Names of the tables to publish; undefined: all. */
  names: readonly string[] | undefined
}

export interface Prepared extends Omit<TablesToPrepare, 'db' | 'names'> {
  /** The published tables; rows that others own come first. */
  tables: readonly ViewedTable[]
  /** All that the database is to have, those that others read first. */
  views: readonly ViewToCreate[]
  /** What the database had before. */
  relations: ReadonlyMap<string, Relation>
}

/** @throws StopError 64 when the database has other tables of these names */
export async function prepareTables({
  db,
  connection,
  place,
  dialect,
  names,
}: TablesToPrepare): Promise<Prepared> {
  const relations = await readRelations(connection, place)
  const objects = new Map(readCrmObjects(sql => db.prepare(sql)).map(object => [object.table, object]))
  const layouts = publishedTables(db, names).map(table => ({
    table,
    layout: layoutOf(table, dialect, place),
    object: objects.get(table.read.name),
  }))
  const earlier = layouts.map(({ table, layout }) =>
    [...relations.keys()].filter(name => name !== layout.name && isLayoutOf(table.read.folder, name)),
  )
  const columns = await readColumns(connection, earlier.flat())
  const tables = layouts.map(
    (one, place): ViewedTable => ({
      ...one,
      earlier: (earlier[place] ?? []).map(name => ({ name, columns: columns.get(name) ?? [] })),
    }),
  )
  const views = allViews(place, dialect, tables)
  refuseOtherTables(connection, relations, views)
  const missing = [
    ...(Object.values(STATE_TABLES).every(name => relations.has(name)) ? [] : createStateTables(place)),
    ...layouts.flatMap(({ layout }) => (relations.has(layout.name) ? [] : createTable(place, layout))),
  ]
  for (const statement of missing) await connection.run(statement)
  return { connection, place, dialect, tables, views, relations }
}

/** A database without publications must not have any of the names; later, only views of these names are replaced. */
function refuseOtherTables(
  { name }: ClickHouseConnection,
  relations: ReadonlyMap<string, Relation>,
  views: readonly ViewToCreate[],
): void {
  const isNew = !relations.has(STATE_TABLES.publications)
  const other = views.find(view => {
    const engine = relations.get(view.name)?.engine
    return engine !== undefined && (isNew || engine !== 'View')
  })
  if (other === undefined) return
  throw new StopError(`${name} has a table ${other.name} that parley publish did not create`, {
    code: 'publish-not-ours',
    hint: 'Name a database that is empty, or one with publications of this warehouse. Nothing was changed.',
    exitStatus: EXIT_STATUS.usage,
  })
}
