import { errorCode } from '../../base/errors.ts'
import { TABLES } from '../../catalog/catalog.ts'
import { type SchemaObject, schemaObjects } from '../database/existing-tables.ts'
import { literal, quote } from '../database/sql.ts'
import type { Prepare, Sqlite } from '../database/sqlite-types.ts'
import { onlyRow } from '../database/statements.ts'
import type { View } from '../views/replace.ts'
import {
  type CrmColumn,
  type CrmField,
  createUniqueNames,
  identifier,
  LEADING_COLUMNS,
  labelsOf,
  type Names,
  SQL_TYPES,
  TRAILING_COLUMNS,
} from './columns.ts'
import type { TypedTable } from './table-state.ts'

/** SQL that creates, names and drops typed tables and their views (`live_…`, `labelled_…`), and reads their fields. */

/** Names that a new table or index must not have. */
export function namesInUse(db: Sqlite): Names {
  return createUniqueNames(db.prepare<unknown[], string>('SELECT name FROM sqlite_master').pluck().all())
}

/** A name that is free for a table and its views: the wanted name, else that name with a number appended. */
export function freeName(db: Sqlite, wanted: string): string {
  const inUse = namesInUse(db)
  for (let number = 1; ; number += 1) {
    const name = number === 1 ? wanted : `${wanted}_${number}`
    if (![name, liveView(name), labelledView(name)].some(inUse.has)) return name
  }
}

/** The name of an object's table. `freeName` appends a number when the name is taken. */
export function nameFor(object: string): string {
  return `crm_${identifier(object)}`
}

export function liveView(table: string): string {
  return `live_${table}`
}

export function labelledView(table: string): string {
  return `labelled_${table}`
}

/**
 * Creates an empty table with its indices.
 * @param finalName the table's name after the rename, used to name the indices
 */
export function createTable(
  db: Sqlite,
  table: string,
  finalName: string,
  columns: readonly CrmColumn[],
): void {
  const definitions = [
    '"id" TEXT PRIMARY KEY NOT NULL',
    ...columns.map(({ column, form }) => `${quote(column)} ${SQL_TYPES[form]}`),
    ...TRAILING_COLUMNS.map(column => `${quote(column)} TEXT`),
  ]
  db.exec(`CREATE TABLE ${quote(table)} (\n  ${definitions.join(',\n  ')}\n) STRICT`)
  const indexed = columns.filter(({ form }) => form === 'relation')
  if (indexed.length === 0) return
  const names = namesInUse(db)
  for (const { column } of indexed) {
    const name = names.take(`${finalName}_by_${column}`)
    db.exec(indexSql(name, table, column))
  }
}

const indexSql = (name: string, table: string, column: string) =>
  `CREATE INDEX ${quote(name)} ON ${quote(table)} (${quote(column)})`

/** The indices of a typed table that other people created. */
export function foreignIndices(db: Sqlite, { table, columns }: TypedTable): SchemaObject[] {
  const isOwn = ({ name, sql }: SchemaObject) =>
    columns.some(({ column }) => name.includes(`_by_${column}`) && sql === indexSql(name, table, column))
  return schemaObjects(db, 'rowid').filter(
    object => object.type === 'index' && object.table === table && !isOwn(object),
  )
}

/** The greatest id in a table; '' for an empty table. */
export function lastId(db: Sqlite, table: string): string {
  const sql = `SELECT coalesce(max("id"), '') FROM ${quote(table)}`
  return onlyRow(db.prepare<unknown[], string>(sql).pluck())
}

/**
 * Drops a table. When a foreign key of a table that parley did not create prevents that, the table stays and parley no
 * longer uses it.
 */
export function dropTable(db: Sqlite, table: string): void {
  drop(db, `DROP TABLE IF EXISTS ${quote(table)}`)
}

export function dropViews(db: Sqlite, table: string): void {
  for (const view of [liveView(table), labelledView(table)]) drop(db, `DROP VIEW IF EXISTS ${quote(view)}`)
}

function drop(db: Sqlite, sql: string): void {
  try {
    db.exec(sql)
  } catch (error) {
    if (!isTableError(error)) throw error
  }
}

/**
 * SQLite errors of the table itself, or of objects on it that parley did not create. SQLITE_BUSY and errors of the disk
 * do not match.
 */
const TABLE_ERROR_CODE = /^SQLITE_(ERROR|CONSTRAINT|MISMATCH|TOOBIG|RANGE|SCHEMA|LOCKED)/

export function isTableError(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const code = errorCode(error)
  return code === undefined || TABLE_ERROR_CODE.test(code)
}

/**
 * The two views without deleted rows. `live_…` has the column names of the table; `labelled_…` has labels as column
 * names, and names in place of ids.
 */
export function viewsOf(
  table: string,
  columns: readonly CrmColumn[],
  fields: readonly CrmField[],
): readonly View[] {
  const declared = new Map(fields.map(field => [field.name, field]))
  const select = (shown: readonly string[]) => {
    const all = [
      ...LEADING_COLUMNS.map(own),
      ...shown,
      ...TRAILING_COLUMNS.filter(name => !name.startsWith('_')).map(own),
    ]
    return `SELECT ${all.join(', ')} FROM ${quote(table)} t WHERE t._deleted_at IS NULL`
  }
  const labels = labelsOf(columns, fields)
  const labelled = columns.map(({ field, column }, index) => {
    const id = own(column)
    const name = nameOfTarget(declared.get(field) ?? {}, id)
    // Without the cast, the column of the view has no declared type.
    return aliased(name === id ? id : `CAST(${name} AS TEXT)`, column, labels[index] ?? column)
  })
  return [
    { name: liveView(table), select: select(columns.map(({ column }) => own(column))) },
    { name: labelledView(table), select: select(labelled) },
  ].map(({ name, select: sql }) => ({ name, sql: `CREATE VIEW ${quote(name)} AS ${sql}` }))
}

const own = (column: string): string => `t.${quote(column)}`

function aliased(value: string, column: string, name: string): string {
  return value === own(name) && column === name ? value : `${value} AS ${quote(name)}`
}

/** Fields that may hold a record's name. The API does not document which field does; the first non-empty one counts. */
export const NAME_FIELDS = ['name', 'full_name', 'display_name', 'label', 'title']

/** Resources of the API whose rows have an id and a name. */
export const NAMED_RESOURCES: ReadonlySet<string> = new Set(
  [...TABLES.values()].flatMap(({ table }) =>
    table.kind === 'entity' && table.key.join() === 'id' && 'name' in table.columns ? [table.name] : [],
  ),
)

/** SQL for the name of a relation's target, or its id when no name is known. Pure. @param id SQL for the id */
function nameOfTarget({ target }: Pick<CrmField, 'target'>, id: string): string {
  if (target === undefined) return id
  const { object, resource } = target
  if (resource !== null && NAMED_RESOURCES.has(resource)) {
    return `coalesce((SELECT nullif(n.name, '') FROM ${quote(resource)} n WHERE n.id = ${id}), ${id})`
  }
  // SQLite ends SQL text at a NUL, so this object cannot be named in it.
  if (object === null || object.includes('\u0000')) return id
  const fields = NAME_FIELDS.map(field => `nullif(n.fields ->> '${field}', '')`).join(', ')
  const name = `SELECT coalesce(${fields}) FROM crm_records n WHERE n.object = ${literal(object)} AND n.id = ${id}`
  return `coalesce((${name}), ${id})`
}

export interface PublishedField extends CrmField {
  /** The published column, `crm_fields.column_name`. */
  column: string | null
}

/** Reads the fields of an object in the order of the metadata. */
export type CrmFieldReader = (object: string) => PublishedField[]

interface FieldRow extends Omit<PublishedField, 'isActive' | 'isRelation' | 'target'> {
  isActive: number
  isRelation: number | null
  targetObject: string | null
  targetResource: string | null
}

const IS_RELATION = "relation_type = 'MANY_TO_ONE'"

export function createCrmFieldReader(prepare: Prepare, { relationsOnly = false } = {}): CrmFieldReader {
  const read = prepare<FieldRow>(
    `SELECT name, label, type, is_active IS NOT 0 AS isActive, ${IS_RELATION} AS isRelation,
       relation_target_object AS targetObject, relation_target_resource AS targetResource, column_name AS "column"
     FROM crm_fields WHERE object = ?${relationsOnly ? ` AND ${IS_RELATION}` : ''} ORDER BY position, name`,
  )
  return object =>
    read.all(object).map(({ targetObject, targetResource, ...field }) => ({
      ...field,
      isActive: field.isActive === 1,
      isRelation: field.isRelation === 1,
      ...(field.isRelation === 1 ? { target: { object: targetObject, resource: targetResource } } : {}),
    }))
}
