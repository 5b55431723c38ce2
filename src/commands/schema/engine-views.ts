import { ownerOf, type PlacedTable, TABLES, tableNamed } from '../../catalog/catalog.ts'
import type { LivesWith } from '../../declare/table.ts'
import type { CrmFieldDescription, CrmObjectDescription } from '../../dictionary/crm-tables.ts'
import { chosenTables } from '../../export/chosen-tables.ts'
import { folderOfTable } from '../../export/crm-tables.ts'
import { declaredTables } from '../../export/export-tables.ts'
import { namesForReaders } from '../../publish/iceberg/iceberg-schema.ts'
import { LEADING_COLUMNS, TRAILING_COLUMNS } from '../../store/crm/columns.ts'
import { NAME_FIELDS, NAMED_RESOURCES } from '../../store/crm/sql.ts'
import { DIALECTS, type Dialect, type QueryEngine } from './engine-dialects.ts'

export interface PublishedWhere {
  /** Names of the tables that are published; undefined: all. */
  tables?: readonly string[] | undefined
  /** The name of the catalogue in the engine; undefined: the name in drizzle/engines.md. */
  catalogue?: string | undefined
}

/**
 * SQL for the engines that read the tables of `parley publish`: a view `live_…` for each table, and for each typed
 * table of a CRM object also a view `labelled_…`. A view that reads a table which is not published is left out. Pure.
 * @throws StopError (exit status 64) for a name that neither a table nor a CRM object can have
 */
export function engineViews(
  engine: QueryEngine,
  all: readonly CrmObjectDescription[],
  { tables: names, catalogue = DIALECTS[engine].catalogue }: PublishedWhere = {},
): string {
  const { table, ...ofEngine } = DIALECTS[engine]
  const dialect = { ...ofEngine, table: (name: string) => `${catalogue}.${table(name)}` }
  const { preface, createView, quote, statement } = dialect
  const published = publishedNames(all, names)
  const objects = all.filter(({ table }) => published.has(folderOfTable(table))).map(objectForReaders)
  const declared = [...TABLES.values()]
    .filter(placed => tablesOfLiveRows(placed).every(one => published.has(one)))
    .map(placed => [placed.table.name, liveRows(placed, dialect)] as const)
  const typed = objects.map(object => [folderOfTable(object.table), liveRecords(object, dialect)] as const)
  const labelled = objects.map(
    object =>
      [folderOfTable(object.table), labelledRecords(object, objects, { ...dialect, published })] as const,
  )
  const views = [
    ...[...declared, ...typed].map(([name, select]) => [`live_${name}`, select] as const),
    ...labelled.map(([name, select]) => [`labelled_${name}`, select] as const),
  ].map(([name, select]) => statement(`${createView} ${quote(name)} AS\n${select}`))
  const found = `The published tables are read as ${dialect.table('…')}.`
  const comments = [found, ...preface, ...(names ? [LEFT_OUT] : [])].map(line => `-- ${line}`)
  return `${[...comments, '', views.join('\n\n')].join('\n')}\n`
}

const LEFT_OUT =
  'Views of tables that are not published are left out, and so are the names that they would show.'

/** The tables and views that are published. @throws as `engineViews` */
export function publishedNames(
  objects: readonly CrmObjectDescription[],
  names: readonly string[] | undefined,
): ReadonlySet<string> {
  const typed = objects.map(({ table }) => ({ name: table, folder: folderOfTable(table) }))
  // Without a warehouse, and before its records were read, an object has no table yet, so every name that begins with
  // `crm_` is accepted.
  const chosen = chosenTables([...declaredTables(), ...typed], names, name => /^crm_/i.test(name))
  return new Set(chosen.map(({ folder }) => folder))
}

/** How an engine writes names. `table` is a published table as it stands in FROM. */
type EngineNames = Pick<Dialect, 'quote' | 'table'>

/** The tables that the live view of a table reads. */
function tablesOfLiveRows(placed: PlacedTable): readonly string[] {
  const owner = placed.table.kind === 'entity' ? undefined : ownerOf(placed)
  return [placed.table.name, ...(owner ? [owner.table] : [])]
}

/** The SQL of a live view: rows that are not deleted and whose owner's row is not, without parley's own columns. */
function liveRows(placed: PlacedTable, names: EngineNames): string {
  const { table } = placed
  const columns = Object.keys(table.columns).filter(name => !name.startsWith('_'))
  const cells = columns.map(name => aliased(names, own(names, name), name))
  const select = `SELECT ${cells.join(', ')}\nFROM ${names.table(table.name)} t`
  if (table.kind === 'entity') return `${select}\nWHERE ${own(names, '_deleted_at')} IS NULL`
  const owner = ownerOf(placed)
  return owner ? `${select}\nWHERE ${ownerIsLive(owner, names)}` : select
}

/** Whether the owner's row is live. IN replaces EXISTS: some engines have no correlated subqueries. */
function ownerIsLive({ table, on }: LivesWith, names: EngineNames): string {
  const { openWhen } = tableNamed(table)
  const { quote } = names
  const joined = Object.entries(on)
  const isLive = [`o.${quote('_deleted_at')} IS NULL`, ...(openWhen ? [`o.${openWhen}`] : [])].join(' AND ')
  const live = (columns: string) => `(SELECT ${columns} FROM ${names.table(table)} o WHERE ${isLive})`
  if (joined.length === 0) return `1 IN ${live('1')}`
  const mine = joined.map(([column]) => own(names, column)).join(', ')
  const theirs = joined.map(([, column]) => `o.${quote(column)}`).join(', ')
  return `(${mine}) IN ${live(theirs)}`
}

/** The object with the column names that its published table has, and with labels that may stand in a script. */
function objectForReaders(object: CrmObjectDescription): CrmObjectDescription {
  const { fields } = object
  const named = (names: readonly string[]) =>
    namesForReaders([...LEADING_COLUMNS, ...names, ...TRAILING_COLUMNS]).slice(LEADING_COLUMNS.length)
  const columns = named(fields.map(({ column }) => column))
  const labels = named(fields.map(({ labelledColumn }) => labelledColumn))
  return {
    ...object,
    fields: fields.map((field, place) => ({
      ...field,
      column: columns[place] ?? field.column,
      labelledColumn: labels[place] ?? field.labelledColumn,
    })),
  }
}

function liveRecords({ table, fields }: CrmObjectDescription, names: EngineNames): string {
  const columns = fields.map(({ column }) => aliased(names, own(names, column), column))
  return recordsOf(table, columns, names)
}

interface NamesInViews extends EngineNames {
  published: ReadonlySet<string>
}

/**
 * The SQL of a labelled view: labels as column names, names in place of ids.
 * @param objects those with a published table
 */
function labelledRecords(
  { table, fields }: CrmObjectDescription,
  objects: readonly CrmObjectDescription[],
  names: NamesInViews,
): string {
  const joins: string[] = []
  const columns = fields.map(field => {
    const id = own(names, field.column)
    const from = namedRows(field, objects)
    if (from === undefined || !names.published.has(from.table))
      return aliased(names, id, field.labelledColumn)
    const joined = `n${joins.length + 1}`
    joins.push(nameJoin(id, from, { ...names, joined }))
    return aliased(names, `coalesce(${joined}.${names.quote('name')}, ${id})`, field.labelledColumn)
  })
  return recordsOf(table, columns, names, joins)
}

function recordsOf(
  table: string,
  columns: readonly string[],
  names: EngineNames,
  joins: readonly string[] = [],
): string {
  const all = [
    aliased(names, own(names, 'id'), 'id'),
    ...columns,
    ...['created_at', 'updated_at'].map(name => aliased(names, own(names, name), name)),
  ]
  return [
    `SELECT ${all.join(', ')}`,
    `FROM ${names.table(folderOfTable(table))} t`,
    ...joins,
    `WHERE ${own(names, '_deleted_at')} IS NULL`,
  ].join('\n')
}

/** The rows that a relation's value may identify. */
interface NamedRows {
  /** The published table. */
  table: string
  /** The columns that may hold the name; the first that is not empty counts. */
  columns: readonly string[]
}

/**
 * Where the names for a relation are; undefined where no name is known. The names of records are in the typed table of
 * their object: engines differ in what they read from the JSON of `crm_records`.
 */
function namedRows(
  { isRelation, refersTo }: CrmFieldDescription,
  objects: readonly CrmObjectDescription[],
): NamedRows | undefined {
  const target = isRelation ? refersTo[0]?.replace(/\.id$/, '') : undefined
  if (target === undefined) return undefined
  if (NAMED_RESOURCES.has(target)) return { table: target, columns: ['name'] }
  const fields = objects.find(object => object.table === target)?.fields ?? []
  const columns = NAME_FIELDS.flatMap(
    name => fields.find(field => field.name === name && field.kind === 'text')?.column ?? [],
  )
  return columns.length === 0 ? undefined : { table: folderOfTable(target), columns }
}

/** The join for the name of an id, since some engines have no correlated subqueries. */
function nameJoin(
  id: string,
  from: NamedRows,
  { quote, table, joined }: EngineNames & { joined: string },
): string {
  const filled = from.columns.map(column => `nullif(${quote(column)}, '')`)
  const name = filled.length === 1 ? filled.join() : `coalesce(${filled.join(', ')})`
  const names = `SELECT ${quote('id')}, ${name} AS ${quote('name')} FROM ${table(from.table)}`
  return `LEFT JOIN (${names}) ${joined} ON ${joined}.${quote('id')} = ${id}`
}

const own = ({ quote }: EngineNames, column: string): string => `t.${quote(column)}`

/**
 * The value with an alias, even if the name stays: without one, ClickHouse names a column of a view with a join `t.id`.
 */
const aliased = ({ quote }: EngineNames, value: string, name: string): string => `${value} AS ${quote(name)}`
