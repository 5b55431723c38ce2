import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { type CrmFieldTold, type CrmObjectTold, crmTables } from '../dictionary/crm-tables.ts'
import type { DescribedKind, DescribedTable } from '../dictionary/described.ts'
import { DICTIONARY, type DictionaryRow, describedTable, dictionaryRows } from '../dictionary/dictionary.ts'
import { formOf } from './crm-columns.ts'
import { labelledView, liveView } from './crm-sql.ts'
import { databaseError, openDatabase } from './open.ts'
import { META, type State } from './state.ts'
import type { Prepare } from './statements.ts'

/** Keeps the table `data_dictionary` true: its fixed part to the declarations, the rest to the CRM's metadata. */

const COLUMNS =
  'table_name, column_name, position, type, null_meaning, description, source_field, unit, example'

/** Writes the fixed part where this version's declarations differ from those it was made of. In a transaction. */
export function fillDictionary(prepare: Prepare, state: Pick<State, 'meta' | 'setMeta'>): void {
  const rows = DICTIONARY.flatMap(table => placed(prepare, table))
  const digest = digestOf([rows, crmTables(SAMPLE)])
  if (state.meta(META.dictionary) === digest) return
  const insert = inserter(prepare)
  prepare('DELETE FROM data_dictionary').run()
  prepare('DELETE FROM sync_meta WHERE key >= ? AND key < ?').run(...NOTED_KEYS)
  for (const row of rows) insert.run(...row)
  state.setMeta(META.dictionary, digest)
  createCrmDictionary(prepare).refresh()
}

/** Stands for what this version says of any typed table. */
const SAMPLE: CrmObjectTold = {
  name: 'o',
  label: 'O',
  table: 't',
  liveView: 'l',
  labelledView: 'v',
  fields: (['text', 'any', 'boolean', 'timestamp', 'date'] as const).map(kind => ({
    isRelation: kind === 'text',
    name: 'f',
    label: 'F',
    type: 'x',
    kind,
    column: 'f',
    shown: 'F',
    refersTo: ['t.id'],
  })),
}

function digestOf(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('hex')
}

/** A column that a migration added stands behind those that its declaration puts it before. */
function placed(prepare: Prepare, table: DescribedTable): DictionaryRow[] {
  const places = new Map(
    prepare('SELECT name, cid FROM pragma_table_xinfo(?)').raw().all(table.name) as [string, number][],
  )
  return dictionaryRows(table).map(([name, column, position, ...rest]) => [
    name,
    column,
    places.get(column) ?? position,
    ...rest,
  ])
}

export interface CrmDictionary {
  /**
   * Brings the rows of an object's typed table and its views to what these are now, of all objects where none is
   * named, and removes those of tables that are gone. Writes only what differs. In the transaction that changed
   * them, after `crm_objects.table_name`, `crm_fields.column_name` and the views.
   */
  refresh(object?: string): void
}

export function createCrmDictionary(prepare: Prepare): CrmDictionary {
  const insert = inserter(prepare)
  const present = prepare(`SELECT ${COLUMNS} FROM data_dictionary WHERE table_name = ?`).raw()
  const remove = prepare('DELETE FROM data_dictionary WHERE table_name = ?')
  const removeColumn = prepare('DELETE FROM data_dictionary WHERE table_name = ? AND column_name = ?')
  const names = prepare('SELECT DISTINCT table_name FROM data_dictionary').pluck()
  const noted = prepare('SELECT value FROM sync_meta WHERE key = ?').pluck()
  const note = prepare(
    'INSERT INTO sync_meta (key, value) VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value',
  )
  const forget = prepare('DELETE FROM sync_meta WHERE key = ?')
  const keys = prepare('SELECT key FROM sync_meta WHERE key >= ? AND key < ?').pluck()

  const write = (object: CrmObjectTold) => {
    const digest = digestOf(object)
    if (noted.get(NOTED + object.name) === digest) return
    for (const table of crmTables(object)) writeTable(table)
    note.run(NOTED + object.name, digest)
  }
  const writeTable = (table: DescribedTable) => {
    const rows = new Map((present.all(table.name) as DictionaryRow[]).map(row => [row[1], row]))
    for (const row of dictionaryRows(table)) {
      const before = rows.get(row[1])
      if (!before || row.some((cell, index) => cell !== before[index])) insert.run(...row)
      rows.delete(row[1])
    }
    for (const column of rows.keys()) removeColumn.run(table.name, column)
  }

  return {
    refresh(object) {
      const made = tablesByObject(prepare)
      for (const name of keys.all(...NOTED_KEYS) as string[]) {
        if (!made.has(name.slice(NOTED.length))) forget.run(name)
      }
      const known = new Set(
        [...made.values()].flatMap(({ table }) => [table, liveView(table), labelledView(table)]),
      )
      for (const told of readCrmObjects(prepare, object)) write(told)
      for (const name of names.all() as string[]) {
        if (!known.has(name) && !describedTable(name)) remove.run(name)
      }
    },
  }
}

/** Before an object's name, in `sync_meta`: digest of what its rows were made of. */
const NOTED = `${META.dictionary} `
/** The first key of these and the first behind them. */
const NOTED_KEYS = [NOTED, `${META.dictionary}!`] as const

const inserter = (prepare: Prepare) =>
  prepare(`REPLACE INTO data_dictionary (${COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`)

interface ObjectRow {
  name: string
  label: string | null
  table: string
}

interface FieldRow {
  name: string
  label: string | null
  type: string | null
  column: string
  isRelation: number
  targetObject: string | null
  targetResource: string | null
}

interface ColumnRow {
  name: string
  type: string
}

function tablesByObject(prepare: Prepare): ReadonlyMap<string, ObjectRow> {
  const objects = prepare(
    // Of a table that someone has dropped nothing is told, and its views cannot be looked at.
    `SELECT o.name, o.label, o.table_name AS "table" FROM crm_objects o
     JOIN sqlite_master s ON s.type = 'table' AND s.name = o.table_name ORDER BY o.name`,
  ).all() as ObjectRow[]
  return new Map(objects.map(object => [object.name, object]))
}

/** The objects that have a typed table, or the one that is named, with its columns. Only reads. */
function readCrmObjects(prepare: Prepare, only?: string): CrmObjectTold[] {
  const tables = tablesByObject(prepare)
  const fieldsOf = prepare(
    `SELECT name, label, type, column_name AS "column", relation_type = 'MANY_TO_ONE' AS isRelation,
       relation_target_object AS targetObject, relation_target_resource AS targetResource
     FROM crm_fields WHERE object = ? AND column_name IS NOT NULL`,
  )
  const columnsOf = prepare('SELECT name, type FROM pragma_table_info(?) ORDER BY cid')
  const objects = [...tables.values()].filter(({ name }) => only === undefined || name === only)
  return objects.map(({ name, label, table }) => {
    const fields = new Map((fieldsOf.all(name) as FieldRow[]).map(field => [field.column, field]))
    const shown = columnsOf.all(labelledView(table)) as ColumnRow[]
    // The columns of the labelled view stand in the order of the table's.
    const told = (columnsOf.all(table) as ColumnRow[]).flatMap((column, index) => {
      const field = fields.get(column.name)
      return field ? [toldField(field, column, shown[index]?.name ?? column.name, tables)] : []
    })
    return {
      name,
      label,
      table,
      liveView: liveView(table),
      labelledView: labelledView(table),
      fields: told,
    }
  })
}

function toldField(
  { name, label, type, isRelation, targetObject, targetResource }: FieldRow,
  column: ColumnRow,
  shown: string,
  tables: ReadonlyMap<string, ObjectRow>,
): CrmFieldTold {
  const target = tables.get(targetObject ?? '')?.table ?? targetResource
  return {
    name,
    label,
    type,
    column: column.name,
    shown,
    isRelation: isRelation === 1,
    kind: kindOf(column.type, isRelation === 1 ? null : type),
    refersTo: isRelation === 1 && target !== null ? [`${target}.id`] : [],
  }
}

/** By the type that the column has, and for text by what the CRM calls the field's type. */
function kindOf(declared: string, type: string | null): DescribedKind {
  const byColumn: Readonly<Record<string, DescribedKind>> = { INTEGER: 'boolean', ANY: 'any' }
  const form = formOf(type)
  return byColumn[declared] ?? (form === 'timestamp' || form === 'date' ? form : 'text')
}

/**
 * Typed tables of the warehouse at this path; none where there is no file yet, or where it was made by a version
 * without them.
 * @throws StopError (73) when there is a file that cannot be read, or is no warehouse
 */
export function readCrmTablesAt(path: string): DescribedTable[] {
  const file = resolve(path)
  if (!existsSync(file)) return []
  try {
    const db = openDatabase({ path: file, readonly: true })
    try {
      const known = db
        .prepare("SELECT 1 FROM pragma_table_info('crm_fields') WHERE name = 'column_name'")
        .get()
      return known ? readCrmObjects(sql => db.prepare(sql)).flatMap(crmTables) : []
    } finally {
      db.close()
    }
  } catch (error) {
    throw databaseError(error, file)
  }
}
