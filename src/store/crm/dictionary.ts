import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { DICTIONARY_TABLE } from '../../catalog/bookkeeping/tables.ts'
import {
  type CrmFieldDescription,
  type CrmObjectDescription,
  describedCrmTables,
} from '../../dictionary/crm-tables.ts'
import type { DescribedKind, DescribedTable } from '../../dictionary/described-table.ts'
import { type DictionaryRow, describedTable, dictionaryRows } from '../../dictionary/dictionary.ts'
import type { Prepare } from '../database/sqlite-types.ts'
import { createMeta, META } from '../sync/meta.ts'
import { type CrmField, formOf } from './columns.ts'
import { createCrmFieldReader, labelledView, liveView } from './sql.ts'

/** The rows of `data_dictionary` about typed tables and their views, from the CRM metadata. */

const COLUMNS = Object.keys(DICTIONARY_TABLE.columns)

/**
 * Updates the rows about an object's typed table and its views (default: of all objects), and removes the rows about
 * tables that are gone. Writes only what differs. Call it in the transaction that changed the table, after
 * `crm_objects.table_name`, `crm_fields.column_name` and the views are written.
 */
export function refreshCrmDictionary(prepare: Prepare, object?: string): void {
  const meta = createMeta(prepare)
  const tables = tablesByObject(prepare)
  const digestKeys = prepare<string>('SELECT key FROM sync_meta WHERE key >= ? AND key < ?').pluck()
  for (const name of digestKeys.all(...DIGEST_KEY_RANGE)) {
    if (!tables.has(name.slice(DIGEST_KEY_PREFIX.length))) meta.remove(name)
  }
  for (const described of readCrmObjects(prepare, object)) {
    const [key, digest] = [DIGEST_KEY_PREFIX + described.name, digestOf(described)]
    if (meta.get(key) === digest) continue
    for (const table of describedCrmTables(described)) writeTable(prepare, table)
    meta.set(key, digest)
  }
  const known = new Set(
    [...tables.values()].flatMap(({ table }) => [table, liveView(table), labelledView(table)]),
  )
  const names = prepare<string>('SELECT DISTINCT table_name FROM data_dictionary').pluck()
  const remove = prepare('DELETE FROM data_dictionary WHERE table_name = ?')
  for (const name of names.all()) {
    if (!known.has(name) && !describedTable(name)) remove.run(name)
  }
}

function writeTable(prepare: Prepare, table: DescribedTable): void {
  const insert = inserter(prepare)
  const stored = prepare<DictionaryRow>('SELECT * FROM data_dictionary WHERE table_name = ?')
  const removeColumn = prepare('DELETE FROM data_dictionary WHERE table_name = ? AND column_name = ?')
  const rows = new Map(stored.all(table.name).map(row => [row.column_name, row]))
  for (const row of dictionaryRows(table)) {
    if (!isDeepStrictEqual(row, rows.get(row.column_name))) insert.run(row)
    rows.delete(row.column_name)
  }
  for (const column of rows.keys()) removeColumn.run(table.name, column)
}

export function digestOf(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('hex')
}

/**
 * Keys in `sync_meta`: this prefix and the object's name. Their value is the digest of the object's dictionary rows.
 */
const DIGEST_KEY_PREFIX = `${META.dictionary} `
/** The first of these keys (included) and the first key after them (excluded). */
export const DIGEST_KEY_RANGE = [DIGEST_KEY_PREFIX, `${META.dictionary}!`] as const

/** A statement that writes a row of the dictionary. */
export const inserter = (prepare: Prepare) =>
  prepare(
    `REPLACE INTO data_dictionary (${COLUMNS.join(', ')}) VALUES (${COLUMNS.map(name => `@${name}`).join(', ')})`,
  )

interface ObjectRow {
  name: string
  label: string | null
  table: string
}

interface ColumnRow {
  name: string
  type: string
}

function tablesByObject(prepare: Prepare): ReadonlyMap<string, ObjectRow> {
  const objects = prepare<ObjectRow>(
    // Leaves out tables that another program has dropped: their views cannot be read.
    `SELECT o.name, o.label, o.table_name AS "table" FROM crm_objects o
     JOIN sqlite_master s ON s.type = 'table' AND s.name = o.table_name ORDER BY o.name`,
  ).all()
  return new Map(objects.map(object => [object.name, object]))
}

/** The typed tables of the warehouse and their views. */
export function readCrmTables(prepare: Prepare): DescribedTable[] {
  return readCrmObjects(prepare).flatMap(describedCrmTables)
}

/** The objects that have a typed table, with its columns. @param only name of one object; default all */
export function readCrmObjects(prepare: Prepare, only?: string): CrmObjectDescription[] {
  const tables = tablesByObject(prepare)
  const fieldsOf = createCrmFieldReader(prepare)
  const columnsOf = prepare<ColumnRow>('SELECT name, type FROM pragma_table_info(?) ORDER BY cid')
  const objects = [...tables.values()].filter(({ name }) => only === undefined || name === only)
  return objects.map(({ name, label, table }) => {
    const fields = new Map(fieldsOf(name).map(field => [field.column, field]))
    const shown = columnsOf.all(labelledView(table))
    // The labelled view has its columns in the order of the table.
    const described = columnsOf.all(table).flatMap((column, index) => {
      const field = fields.get(column.name)
      return field ? [describedField(field, column, shown[index]?.name ?? column.name, tables)] : []
    })
    return {
      name,
      label,
      table,
      liveView: liveView(table),
      labelledView: labelledView(table),
      fields: described,
    }
  })
}

function describedField(
  { name, label, type, isRelation, target }: CrmField,
  column: ColumnRow,
  shown: string,
  tables: ReadonlyMap<string, ObjectRow>,
): CrmFieldDescription {
  const targetTable = target && (tables.get(target.object ?? '')?.table ?? target.resource)
  return {
    name,
    label,
    type,
    column: column.name,
    labelledColumn: shown,
    isRelation,
    kind: kindOf(column.type, isRelation ? null : type),
    refersTo: targetTable ? [`${targetTable}.id`] : [],
  }
}

/** The type of the column decides. For a text column, the CRM's type of the field decides. */
function kindOf(declared: string, type: string | null): DescribedKind {
  const byColumn: Readonly<Record<string, DescribedKind>> = { INTEGER: 'boolean', ANY: 'any' }
  const form = formOf(type)
  return byColumn[declared] ?? (form === 'timestamp' || form === 'date' ? form : 'text')
}
