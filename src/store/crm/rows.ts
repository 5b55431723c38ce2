import { decodeJson, isJsonObject } from '../../base/json.ts'
import type { NotedChanges } from '../changes/noted-changes.ts'
import { placeholders, quote } from '../database/sql.ts'
import type { Sqlite } from '../database/sqlite-types.ts'
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
import type { NotedRecord, WrittenRecords } from './written-records.ts'

/** Writes records to typed tables. */
export interface CrmTableRows {
  put(table: TypedTable, record: CrmRow): void
  /**
   * Updates an object's tables with the records that WrittenRecords has noted. The table that is being filled gets only
   * records up to the greatest id in it: filling adds the later ones.
   */
  follow(object: string): void
}

/** A row of `crm_records`. */
export interface CrmRow {
  id: string
  /** JSON object of the values by field name; the API may have sent any other JSON. */
  fields: string | null
  createdAt: string | null
  updatedAt: string | null
  deletedAt: string | null
}

export interface CrmTableRowsDeps {
  db: Sqlite
  states: Pick<CrmTableStates, 'all'>
  notes: Pick<WrittenRecords, 'records'>
  changes: Pick<NotedChanges, 'typedRow'>
}

export function createCrmTableRows({ db, states, notes, changes }: CrmTableRowsDeps): CrmTableRows {
  /** By `columns` array: each table has a separate array. A renamed table keeps it, so the name is compared too. */
  const writers = new WeakMap<readonly CrmColumn[], { table: string; writer: CrmTableWriter }>()
  const writerOf = ({ table, columns }: TypedTable): CrmTableWriter => {
    const known = writers.get(columns)
    if (known?.table === table) return known.writer
    const writer = createCrmTableWriter(db, table, columns)
    writers.set(columns, { table, writer })
    return writer
  }
  const put = (table: TypedTable, { fields, ...record }: CrmRow) =>
    writerOf(table).put({ ...record, values: valuesOf(fields) })

  return {
    put,
    follow(object) {
      const { made, next } = states.all().get(object) ?? {}
      const upTo = next ? lastId(db, next.table) : ''
      if (!made && upTo === '') return
      for (const record of notes.records(object, upTo)) {
        const values = valuesOf(record.fields)
        if (made) {
          write(writerOf(made), record, values)
          changes.typedRow(made.table, record.id)
        }
        if (next && record.reached) write(writerOf(next), record, values)
      }
    },
  }
}

function write(writer: CrmTableWriter, record: NotedRecord, values: Values): void {
  if (record.gone) writer.remove(record.id)
  else if (record.whole) writer.put({ ...record, values })
  else writer.mark(record.id, record.deletedAt)
}

type Values = readonly (readonly [field: string, value: unknown])[]

/** Empty when the text is not a JSON object. Then only `crm_records` has the values. */
function valuesOf(json: string | null): Values {
  if (json === null) return []
  try {
    const { value } = decodeJson(json)
    return isJsonObject(value) ? Object.entries(value) : []
  } catch (error) {
    if (error instanceof SyntaxError) return []
    throw error
  }
}

interface CrmTableWriter {
  put(row: Omit<CrmRow, 'fields'> & { values: Values }): void
  mark(id: string, deletedAt: string | null): void
  remove(id: string): void
}

function createCrmTableWriter(db: Sqlite, table: string, columns: readonly CrmColumn[]): CrmTableWriter {
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
    put({ id, values, createdAt, updatedAt, deletedAt }) {
      const cells = new Array<CrmCell>(columns.length).fill(null)
      for (const [name, value] of values) {
        const place = places.get(storedName(name))
        if (place) cells[place.index] = cellOf(place.form, value)
      }
      upsert.run([id, ...cells, createdAt, updatedAt, deletedAt])
    },
    mark: (id, deletedAt) => {
      mark.run(deletedAt, id)
    },
    remove: id => {
      remove.run(id)
    },
  }
}
