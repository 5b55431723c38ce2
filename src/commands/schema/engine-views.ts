import { TABLES } from '../../catalog/catalog.ts'
import type { CrmFieldDescription, CrmObjectDescription } from '../../dictionary/crm-tables.ts'
import { liveRows } from '../../dictionary/live-rows.ts'
import { folderOf } from '../../export/crm-tables.ts'
import { NAME_FIELDS, NAMED_RESOURCES } from '../../store/crm/target-names.ts'
import { DIALECTS, type Dialect, type Engine } from './engine-dialects.ts'

/**
 * SQL for the engines that read the tables of `parley publish`: a view `live_…` for each table, with the rows that are
 * not deleted and whose owner is not, and for each typed table of a CRM object also a view `labelled_…`, with labels as
 * column names and names in place of ids. Pure.
 */
export function engineViews(engine: Engine, objects: readonly CrmObjectDescription[]): string {
  const dialect = DIALECTS[engine]
  const { preface, createView, quote, statement } = dialect
  const declared = [...TABLES.values()].map(
    placed => [placed.table.name, liveRows(placed, { ...dialect, inSet: 'IN' })] as const,
  )
  const typed = objects.map(object => [folderOf(object.table), liveRecords(object, dialect)] as const)
  const labelled = objects.map(
    object => [folderOf(object.table), labelledRecords(object, objects, dialect)] as const,
  )
  const views = [
    ...[...declared, ...typed].map(([name, select]) => [`live_${name}`, select] as const),
    ...labelled.map(([name, select]) => [`labelled_${name}`, select] as const),
  ].map(([name, select]) => statement(`${createView} ${quote(name)} AS\n${select}`))
  return `${[...preface.map(line => `-- ${line}`), '', views.join('\n\n')].join('\n')}\n`
}

function liveRecords({ table, fields }: CrmObjectDescription, dialect: Dialect): string {
  const columns = fields.map(({ column }) => aliased(dialect, own(dialect, column), column))
  return recordsOf(table, columns, dialect)
}

function labelledRecords(
  { table, fields }: CrmObjectDescription,
  objects: readonly CrmObjectDescription[],
  dialect: Dialect,
): string {
  const { quote } = dialect
  const joins: string[] = []
  const columns = fields.map(field => {
    const id = own(dialect, field.column)
    const names = namesOfTargets(field, objects, dialect)
    if (names === undefined) return aliased(dialect, id, field.labelledColumn)
    const joined = `n${joins.length + 1}`
    // A join, since some engines have no correlated subqueries.
    joins.push(`LEFT JOIN (${names}) ${joined} ON ${joined}.${quote('id')} = ${id}`)
    return aliased(dialect, `coalesce(${joined}.${quote('name')}, ${id})`, field.labelledColumn)
  })
  return recordsOf(table, columns, dialect, joins)
}

function recordsOf(
  table: string,
  columns: readonly string[],
  dialect: Dialect,
  joins: readonly string[] = [],
): string {
  const all = [
    aliased(dialect, own(dialect, 'id'), 'id'),
    ...columns,
    ...['created_at', 'updated_at'].map(name => aliased(dialect, own(dialect, name), name)),
  ]
  return [
    `SELECT ${all.join(', ')}`,
    `FROM ${dialect.table(folderOf(table))} t`,
    ...joins,
    `WHERE ${own(dialect, '_deleted_at')} IS NULL`,
  ].join('\n')
}

/**
 * A query for the ids and the names of the rows that a relation's value may identify. Names of records are in the typed
 * table of their object: engines differ in what they read from the JSON of `crm_records`.
 */
function namesOfTargets(
  { isRelation, refersTo }: CrmFieldDescription,
  objects: readonly CrmObjectDescription[],
  { quote, table }: Dialect,
): string | undefined {
  const target = isRelation ? refersTo[0]?.replace(/\.id$/, '') : undefined
  if (target === undefined) return undefined
  const namesFrom = (name: string, columns: readonly string[]) => {
    const found = columns.map(column => `nullif(${quote(column)}, '')`)
    const first = found.length === 1 ? found : `coalesce(${found.join(', ')})`
    return `SELECT ${quote('id')}, ${first} AS ${quote('name')} FROM ${table(name)}`
  }
  if (NAMED_RESOURCES.has(target)) return namesFrom(target, ['name'])
  const fields = objects.find(object => object.table === target)?.fields ?? []
  const columns = NAME_FIELDS.flatMap(
    name => fields.find(field => field.name === name && field.kind === 'text')?.column ?? [],
  )
  return columns.length === 0 ? undefined : namesFrom(folderOf(target), columns)
}

const own = ({ quote }: Dialect, column: string): string => `t.${quote(column)}`

/** With an alias also where the name stays: ClickHouse would name a column of a view with a join `t.id`. */
const aliased = ({ quote }: Dialect, value: string, name: string): string => `${value} AS ${quote(name)}`
