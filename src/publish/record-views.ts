import type { CrmFieldDescription, CrmObjectDescription } from '../dictionary/crm-tables.ts'
import { folderOf } from '../export/crm-tables.ts'
import { LEADING_COLUMNS, TRAILING_COLUMNS } from '../store/crm/columns.ts'
import { NAME_FIELDS, NAMED_RESOURCES } from '../store/crm/target-names.ts'
import { namesForReaders } from './iceberg/schema.ts'

/**
 * SQL of the views of CRM records for engines that read published tables: `live_…` has the rows that are not deleted,
 * `labelled_…` also has labels as column names and names in place of ids. Pure.
 */

export interface RecordsDialect {
  quote(name: string): string
  /** A published table as it stands in FROM. */
  table(name: string): string
  /**
   * SQL for the name of a row, or its id where no name is known. Undefined where the rows are not published.
   * @param place of the name among those of the view, from 1
   */
  nameOf(id: string, from: NamedRows, place: number): NameInView | undefined
}

/** The rows that a relation's value may identify. */
export interface NamedRows {
  /** The published table. */
  table: string
  /** The columns that may hold the name; the first that is not empty counts. */
  columns: readonly string[]
}

export interface NameInView {
  value: string
  join?: string
}

/** The object with the column names that its published table has, and with labels that may stand in a script. */
export function objectForReaders(object: CrmObjectDescription): CrmObjectDescription {
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

export function liveRecords({ table, fields }: CrmObjectDescription, dialect: RecordsDialect): string {
  const columns = fields.map(({ column }) => aliased(dialect, own(dialect, column), column))
  return recordsOf(table, columns, dialect)
}

/** @param objects those whose tables are published */
export function labelledRecords(
  { table, fields }: CrmObjectDescription,
  objects: readonly CrmObjectDescription[],
  dialect: RecordsDialect,
): string {
  const names: NameInView[] = []
  const columns = fields.map(field => {
    const id = own(dialect, field.column)
    const from = namedRows(field, objects)
    const name = from && dialect.nameOf(id, from, names.length + 1)
    if (name) names.push(name)
    return aliased(dialect, name?.value ?? id, field.labelledColumn)
  })
  const joins = names.flatMap(({ join }) => join ?? [])
  return recordsOf(table, columns, dialect, joins)
}

function recordsOf(
  table: string,
  columns: readonly string[],
  dialect: RecordsDialect,
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
 * Undefined where no name is known. Names of records are in the typed table of their object: engines differ in what they
 * read from the JSON of `crm_records`.
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
  return columns.length === 0 ? undefined : { table: folderOf(target), columns }
}

/** The first of these columns that is not empty. */
export const firstName = ({ quote }: Pick<RecordsDialect, 'quote'>, { columns }: NamedRows): string => {
  const found = columns.map(column => `nullif(${quote(column)}, '')`)
  return found.length === 1 ? found.join() : `coalesce(${found.join(', ')})`
}

const own = ({ quote }: RecordsDialect, column: string): string => `t.${quote(column)}`

/** With an alias also where the name stays: ClickHouse would name a column of a view with a join `t.id`. */
const aliased = ({ quote }: RecordsDialect, value: string, name: string): string =>
  `${value} AS ${quote(name)}`
