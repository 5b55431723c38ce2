import { TABLES } from '../../catalog/catalog.ts'
import { liveColumns, liveRows } from '../../dictionary/live-rows.ts'
import { PUBLICATION_COLUMNS, PUBLICATIONS } from '../publications.ts'
import type { PublishedTable } from '../tables.ts'
import type { ClickHouseDialect } from './dialect.ts'
import { PART_COLUMN, PUBLICATION_COLUMN, type PublishedColumn, type TableLayout } from './layout.ts'
import { STATE_TABLES } from './state-tables.ts'
import {
  type ClickHouseColumn,
  type DatabasePlace,
  literal,
  nullable,
  quoted,
  tableIn,
  type ViewToCreate,
} from './statements.ts'

/**
 * The views that readers use. A view of a published table has the parts that the last complete publication names. It
 * looks that publication up in each query, so all views move to the next one at the same instant. Pure.
 */

export interface ViewedTable {
  table: PublishedTable
  layout: TableLayout
  /** Tables with rows of this published table in earlier layouts. They go with the publications that need them. */
  earlier: readonly EarlierLayout[]
}

export interface EarlierLayout {
  name: string
  columns: readonly ClickHouseColumn[]
}

export const viewNames = (tables: readonly ViewedTable[]): string[] => [
  ...tables.flatMap(({ table: { read } }) =>
    TABLES.has(read.name) ? [read.folder, liveName(read.name)] : [read.folder],
  ),
  PUBLICATIONS,
]

export const liveName = (table: string): string => `live_${table}`

/** Views come after those that they read. */
export const allViews = (
  place: DatabasePlace,
  dialect: ClickHouseDialect,
  tables: readonly ViewedTable[],
): ViewToCreate[] => [
  ...tables.map(viewed => publishedView(place, dialect, viewed)),
  publicationsView(place, dialect),
  ...tables.flatMap(viewed => liveView(place, viewed) ?? []),
]

export function publishedView(
  place: DatabasePlace,
  dialect: ClickHouseDialect,
  { table, layout, earlier }: ViewedTable,
): ViewToCreate {
  const columns = layout.published
  const select = (from: string, cells: readonly string[]) =>
    `SELECT ${cells.join(', ')} FROM ${tableIn(place, from)} WHERE ${isShown(place, from)}`
  const current = select(layout.name, columns.map(named))
  const others = earlier.map(other => select(other.name, columns.map(convertedCell(other, dialect))))
  return {
    name: table.read.folder,
    columns: columns.map(column => ({ ...column, doc: table.docs.get(column.name) ?? '' })),
    select: [current, ...others].join(' UNION ALL '),
  }
}

const named = ({ name, stored }: PublishedColumn): string =>
  name === stored ? quoted(name) : `${quoted(stored)} AS ${quoted(name)}`

/** A cell of an earlier layout as the column is now: NULL where the value does not fit, or there was no such column. */
const convertedCell =
  ({ columns }: EarlierLayout, { isModern }: ClickHouseDialect) =>
  (column: PublishedColumn): string => {
    const { name, stored, type } = column
    const before = columns.find(other => other.name === stored)
    if (before?.type === type) return named(column)
    const bare = type.replace(/^Nullable\((.*)\)$/, '$1')
    return before && isModern
      ? `accurateCastOrNull(toString(${quoted(stored)}), ${literal(bare)}) AS ${quoted(name)}`
      : `CAST(NULL AS ${type}) AS ${quoted(name)}`
  }

/** A subquery of a distributed query must be GLOBAL: each shard would else read only its rows of the answer. */
const inSet = ({ cluster }: DatabasePlace): string => (cluster === undefined ? 'IN' : 'GLOBAL IN')

/** Rows of a publication that is not complete, or not the last, are not shown. */
function isShown(place: DatabasePlace, source: string): string {
  const newest = `SELECT max(publication) FROM ${tableIn(place, STATE_TABLES.publications)}`
  const parts = `SELECT part, written_in FROM ${tableIn(place, STATE_TABLES.parts)} WHERE source = ${literal(source)} AND publication = (${newest})`
  return `(${PART_COLUMN}, ${PUBLICATION_COLUMN}) ${inSet(place)} (${parts})`
}

/** Undefined for a table that parley does not declare. */
function liveView(place: DatabasePlace, { table, layout }: ViewedTable): ViewToCreate | undefined {
  const { name } = table.read
  const placed = TABLES.get(name)
  if (!placed) return undefined
  const names = new Set(liveColumns(placed))
  const columns = layout.published.filter(column => names.has(column.name))
  return {
    name: liveName(name),
    columns: columns.map(column => ({ ...column, doc: table.docs.get(column.name) ?? '' })),
    select: liveRows(placed, { quote: quoted, table: other => tableIn(place, other), inSet: inSet(place) }),
  }
}

const INSTANTS = ['published_at', 'complete_as_of', 'fresh_as_of'] as const

function publicationsView(place: DatabasePlace, { isModern, types }: ClickHouseDialect): ViewToCreate {
  const { name: type } = types.timestamp
  const instant = (name: string) =>
    isModern ? `accurateCastOrNull(${name}, ${literal(type)}) AS ${name}` : name
  const cells = ['publication', ...INSTANTS.map(instant), 'warehouse']
  return {
    name: PUBLICATIONS,
    columns: [
      {
        name: 'publication',
        type: 'UInt64',
        doc: 'The number of the publication. The rows that it wrote have it in _publication.',
      },
      ...INSTANTS.map(name => ({ name, type: nullable(type), doc: PUBLICATION_COLUMNS[name].doc })),
      { name: 'warehouse', type: 'String', doc: PUBLICATION_COLUMNS.warehouse.doc },
    ],
    select: `SELECT ${cells.join(', ')} FROM ${tableIn(place, STATE_TABLES.publications)}`,
  }
}
