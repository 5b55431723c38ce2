import { decodeJson, isJsonObject } from '../../base/json.ts'
import type { NotedChanges } from '../changes/noted-changes.ts'
import { placeholders, quote } from '../database/sql.ts'
import type { Prepare, Sqlite } from '../database/sqlite-types.ts'
import {
  type CrmCell,
  type CrmColumn,
  cellOf,
  LEADING_COLUMNS,
  storedName,
  TRAILING_COLUMNS,
} from './columns.ts'
import { lastId } from './sql.ts'
import type { CrmTableStates, TypedTable } from './table-state.ts'

/** A row of `crm_records`. */
export interface CrmRow {
  id: string
  /** JSON object of the values by field name; the API may have sent any other JSON. */
  fields: string | null
  createdAt: string | null
  updatedAt: string | null
  deletedAt: string | null
}

interface NotedRecord extends CrmRow {
  /** 1 when the table that is being filled, in the order of ids, has reached this id. */
  reached: number
  /** 0 when only `deletedAt` was written; `fields` is then null. */
  whole: number
  /** 1 when `crm_records` no longer has the row. A row that is only marked with `_deleted_at` is still there. */
  gone: number
}

const note = (row: string, whole: 0 | 1) =>
  `INSERT INTO noted_crm_records VALUES (${row}.object, ${row}.id, ${whole})
   ON CONFLICT DO ${whole ? 'UPDATE SET whole = 1' : 'NOTHING'};`

const noteObject = (name: string) => `INSERT INTO noted_crm_objects VALUES (${name}) ON CONFLICT DO NOTHING;`

const trigger = (name: string, when: string, body: string) =>
  `CREATE TEMP TRIGGER IF NOT EXISTS noted_${name} AFTER ${when} BEGIN ${body} END;`

const SAME = ['object', 'id', 'fields', 'created_at', 'updated_at']
  .map(column => `OLD.${column} IS NEW.${column}`)
  .join(' AND ')

const SCHEMA = [
  'CREATE TEMP TABLE IF NOT EXISTS noted_crm_records (object TEXT, id TEXT, whole INTEGER, PRIMARY KEY (object, id)) WITHOUT ROWID;',
  'CREATE TEMP TABLE IF NOT EXISTS noted_crm_objects (name TEXT PRIMARY KEY) WITHOUT ROWID;',
  trigger('record_insert', 'INSERT ON main.crm_records', note('NEW', 1)),
  trigger('record_delete', 'DELETE ON main.crm_records', note('OLD', 1)),
  trigger('record_update', `UPDATE ON main.crm_records WHEN NOT (${SAME})`, note('OLD', 1) + note('NEW', 1)),
  trigger(
    'record_mark',
    `UPDATE OF _deleted_at ON main.crm_records WHEN ${SAME} AND OLD._deleted_at IS NOT NEW._deleted_at`,
    note('NEW', 0),
  ),
  trigger('object_insert', 'INSERT ON main.crm_objects', noteObject('NEW.name')),
  trigger('object_delete', 'DELETE ON main.crm_objects', noteObject('OLD.name')),
  trigger('field_insert', 'INSERT ON main.crm_fields', noteObject('NEW.object')),
  trigger('field_delete', 'DELETE ON main.crm_fields', noteObject('OLD.object')),
  trigger(
    'field_update',
    'UPDATE OF position, label, type, is_active, relation_type, relation_target_object, relation_target_resource ON main.crm_fields',
    noteObject('NEW.object'),
  ),
].join('\n')

interface CrmTableRowsDeps {
  db: Sqlite
  prepare: Prepare
  states: Pick<CrmTableStates, 'all'>
  changes: Pick<NotedChanges, 'typedRow'>
}

export type CrmTableRows = ReturnType<typeof createCrmTableRows>

/**
 * Notes which CRM records and objects a transaction writes, and writes the records to typed tables. Temporary triggers
 * of this connection store the notes in temporary tables. Therefore a rollback removes the notes too, and other
 * connections have no such triggers.
 */
export function createCrmTableRows({ db, prepare, states, changes }: CrmTableRowsDeps) {
  db.exec(SCHEMA)
  const anyNote = prepare(
    'SELECT EXISTS (SELECT 1 FROM noted_crm_records) OR EXISTS (SELECT 1 FROM noted_crm_objects)',
  ).pluck()
  const objects = prepare<string>('SELECT name FROM noted_crm_objects ORDER BY name').pluck()
  const recordObjects = prepare<string>(
    'SELECT DISTINCT object FROM noted_crm_records ORDER BY object',
  ).pluck()
  const records = prepare<NotedRecord>(
    `SELECT n.id, n.id <= @upTo AS reached, n.whole, r._id IS NULL AS gone, iif(n.whole, r.fields, NULL) AS fields,
       r.created_at AS createdAt, r.updated_at AS updatedAt, r._deleted_at AS deletedAt
     FROM noted_crm_records n LEFT JOIN crm_records r ON r.object = n.object AND r.id = n.id
     WHERE n.object = @object ORDER BY n.id`,
  )
  const clearing = ['noted_crm_records', 'noted_crm_objects'].map(table => prepare(`DELETE FROM ${table}`))
  /**
   * By `columns` array: each table has a separate array. A renamed table keeps its array, so the name is compared too.
   */
  const writers = new WeakMap<readonly CrmColumn[], { table: string; writer: CrmTableWriter }>()
  const writerOf = ({ table, columns }: TypedTable): CrmTableWriter => {
    const known = writers.get(columns)
    if (known?.table === table) return known.writer
    const writer = createCrmTableWriter(db, table, columns)
    writers.set(columns, { table, writer })
    return writer
  }

  return {
    put: (table: TypedTable, record: CrmRow) => writerOf(table).put(record, valuesOf(record.fields)),
    /**
     * Updates an object's tables with its noted records. The table that is being filled gets only records up to the
     * greatest id in it: filling adds the later ones.
     */
    follow(object: string) {
      const { made, next } = states.all().get(object) ?? {}
      const upTo = next ? lastId(db, next.table) : ''
      if (!made && upTo === '') return
      for (const record of records.all({ object, upTo })) {
        const values = valuesOf(record.fields)
        if (made) {
          write(writerOf(made), record, values)
          changes.typedRow(made.table, record.id)
        }
        if (next && record.reached) write(writerOf(next), record, values)
      }
    },
    hasNotes: () => anyNote.get() === 1,
    /** Objects whose metadata was written. */
    notedObjects: () => objects.all(),
    /** Objects with written records. */
    objectsOfNotedRecords: () => recordObjects.all(),
    clearNotes: () => {
      for (const statement of clearing) statement.run()
    },
  }
}

function write(writer: CrmTableWriter, record: NotedRecord, values: CrmValues): void {
  if (record.gone) writer.remove(record.id)
  else if (record.whole) writer.put(record, values)
  else writer.mark(record.id, record.deletedAt)
}

export type CrmValues = readonly (readonly [field: string, value: unknown])[]

/** The values of a record. Empty when the text is not a JSON object: then only `crm_records` has the text. */
export function valuesOf(json: string | null): CrmValues {
  if (json === null) return []
  try {
    const { value } = decodeJson(json)
    return isJsonObject(value) ? Object.entries(value) : []
  } catch (error) {
    if (error instanceof SyntaxError) return []
    throw error
  }
}

type CrmTableWriter = ReturnType<typeof createCrmTableWriter>

function createCrmTableWriter(db: Sqlite, table: string, columns: readonly CrmColumn[]) {
  const names = [...LEADING_COLUMNS, ...columns.map(({ column }) => column), ...TRAILING_COLUMNS].map(quote)
  const sets = names.slice(1).map(name => `${name} = excluded.${name}`)
  const upsert = db.prepare(
    `INSERT INTO ${quote(table)} (${names.join(', ')}) VALUES (${placeholders(names.length)})
     ON CONFLICT ("id") DO UPDATE SET ${sets.join(', ')}`,
  )
  const mark = db.prepare(`UPDATE ${quote(table)} SET _deleted_at = ? WHERE "id" = ?`)
  const remove = db.prepare(`DELETE FROM ${quote(table)} WHERE "id" = ?`)
  const places = new Map(columns.map(({ field, form }, index) => [field, { form, index }]))
  return {
    put({ id, createdAt, updatedAt, deletedAt }: CrmRow, values: CrmValues) {
      const cells = new Array<CrmCell>(columns.length).fill(null)
      for (const [name, value] of values) {
        const place = places.get(storedName(name))
        if (place) cells[place.index] = cellOf(place.form, value)
      }
      upsert.run([id, ...cells, createdAt, updatedAt, deletedAt])
    },
    mark: (id: string, deletedAt: string | null) => {
      mark.run(deletedAt, id)
    },
    remove: (id: string) => {
      remove.run(id)
    },
  }
}
