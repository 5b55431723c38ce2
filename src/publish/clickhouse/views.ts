import { TABLES } from '../../catalog/catalog.ts'
import { type CrmObjectDescription, crmTables } from '../../dictionary/crm-tables.ts'
import { type DescribedTable, fullMeaning } from '../../dictionary/described-table.ts'
import { liveColumns, liveRows, tablesOfLiveRows } from '../../dictionary/live-rows.ts'
import { PUBLICATION_COLUMNS, PUBLICATIONS } from '../publications.ts'
import { firstName, labelledRecords, liveRecords, type RecordsDialect } from '../record-views.ts'
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
 * looks that publication up in each query, so all views move to the next one at the same instant. A view that reads a
 * table which is not published does not exist. Pure.
 */

export interface ViewedTable {
  table: PublishedTable
  layout: TableLayout
  /** Tables with rows of this published table in earlier layouts. They go with the publications that need them. */
  earlier: readonly EarlierLayout[]
  /** Of a typed table. */
  object?: CrmObjectDescription | undefined
}

export interface EarlierLayout {
  name: string
  columns: readonly ClickHouseColumn[]
}

/** The names that views of a published table may have. */
export const viewNamesOf = (folder: string): string[] => [folder, `live_${folder}`, `labelled_${folder}`]

/** Views come after those that they read. */
export function allViews(
  place: DatabasePlace,
  dialect: ClickHouseDialect,
  tables: readonly ViewedTable[],
): ViewToCreate[] {
  const published = new Set(tables.map(({ table }) => table.read.folder))
  const objects = tables.flatMap(({ object }) => object ?? [])
  return [
    ...tables.map(viewed => publishedView(place, dialect, viewed)),
    publicationsView(place, dialect),
    ...tables.flatMap(viewed => liveView(place, viewed, published) ?? []),
    ...tables.flatMap(viewed =>
      viewed.object ? recordViews(place, viewed, { object: viewed.object, objects, published }) : [],
    ),
  ]
}

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

/** Undefined for a typed table, and for one whose owner is not published. */
function liveView(
  place: DatabasePlace,
  { table, layout }: ViewedTable,
  published: ReadonlySet<string>,
): ViewToCreate | undefined {
  const { name } = table.read
  const placed = TABLES.get(name)
  if (!placed || !tablesOfLiveRows(placed).every(one => published.has(one))) return undefined
  const shown = new Set(liveColumns(placed))
  const columns = layout.published.filter(column => shown.has(column.name))
  return {
    name: `live_${name}`,
    columns: columns.map(column => ({ ...column, doc: table.docs.get(column.name) ?? '' })),
    select: liveRows(placed, { quote: quoted, table: other => tableIn(place, other), inSet: inSet(place) }),
  }
}

interface RecordTables {
  object: CrmObjectDescription
  /** All whose tables are published. */
  objects: readonly CrmObjectDescription[]
  /** The names of all published tables. */
  published: ReadonlySet<string>
}

function recordViews(
  place: DatabasePlace,
  { table, layout }: ViewedTable,
  { object, objects, published }: RecordTables,
): ViewToCreate[] {
  const dialect: RecordsDialect = {
    quote: quoted,
    table: name => tableIn(place, name),
    nameOf: nameOf(place, published),
  }
  const types = new Map(layout.published.map(({ name, type }) => [name, type]))
  const typeOf = (column: string) => types.get(column) ?? nullable('String')
  const sources = new Map(object.fields.map(field => [field.labelledColumn, field.column]))
  const [, live, labelled] = crmTables(object)
  const viewOf = (prefix: string, described: DescribedTable | undefined, select: string): ViewToCreate => ({
    name: `${prefix}_${table.read.folder}`,
    columns: (described?.columns ?? []).map(column => ({
      name: column.name,
      type: typeOf(prefix === 'live' ? column.name : (sources.get(column.name) ?? column.name)),
      doc: fullMeaning(column),
    })),
    select,
  })
  return [
    viewOf('live', live, liveRecords(object, dialect)),
    viewOf('labelled', labelled, labelledRecords(object, objects, dialect)),
  ]
}

/**
 * A lookup in two lists of the same order, since older servers allow only one join in a query. Both begin with the empty
 * text, since the lists of a lookup must not be empty.
 */
const nameOf =
  (place: DatabasePlace, published: ReadonlySet<string>): RecordsDialect['nameOf'] =>
  (id, from) => {
    if (!published.has(from.table)) return undefined
    const rows = `SELECT ${quoted('id')} AS _i, ${firstName({ quote: quoted }, from)} AS _n FROM ${tableIn(place, from.table)}`
    const named = `SELECT assumeNotNull(_i) AS i, assumeNotNull(_n) AS n FROM (${rows}) WHERE isNotNull(_i) AND isNotNull(_n)`
    const list = (sorted: string) => `(SELECT arrayConcat([''], ${sorted}) FROM (${named}))`
    const ids = list('arraySort(groupArray(i))')
    const names = list('arraySort((name, id) -> id, groupArray(n), groupArray(i))')
    return { value: `if(isNull(${id}), NULL, transform(assumeNotNull(${id}), ${ids}, ${names}))` }
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
