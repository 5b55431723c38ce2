import { LosslessNumber } from 'lossless-json'
import type { Sqlite } from '../../src/store/database/sqlite-types.ts'
import { canonicalJson, fieldsOf, type Json, parseExact } from './exact-json.ts'
import { instantOf } from './row-shape.ts'

/** The expected content of the typed tables, derived from `crm_records` and the metadata without the code under test. */

type Db = Sqlite
type Cell = string | number | bigint | null
/** By column. A plain object would treat the key `__proto__` specially. */
type Found = ReadonlyMap<string, Cell>

interface Typed {
  object: string
  table: string
}

export function typedTables(db: Db): Typed[] {
  return db
    .prepare('SELECT name AS object, table_name AS "table" FROM crm_objects WHERE table_name IS NOT NULL')
    .all() as Typed[]
}

/** The typed tables and their views. */
export function typedNames(db: Db): string[] {
  return typedTables(db).flatMap(({ table }) => [table, `live_${table}`, `labelled_${table}`])
}

/** How the typed tables and their views differ from the records and metadata. */
export function compareTypedTables(db: Db): string[] {
  return typedTables(db).flatMap(typed => [...compareColumns(db, typed), ...compareRows(db, typed)])
}

interface Field {
  name: string
  column: string | null
  type: string | null
  relation: string | null
}

const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`

function fieldsIn(db: Db, object: string): Field[] {
  return db
    .prepare(
      'SELECT name, column_name AS "column", type, relation_type AS relation FROM crm_fields WHERE object = ? ORDER BY position, name',
    )
    .all(object) as Field[]
}

const MOST = 1900

function compareColumns(db: Db, { object, table }: Typed): string[] {
  const fields = fieldsIn(db, object)
  const columns = fields.flatMap(({ column }) => (column === null ? [] : [column]))
  const names = (of: string): unknown[] =>
    db.prepare('SELECT name FROM pragma_table_info(?) ORDER BY cid').pluck().all(of)
  const same = (what: string, found: unknown[], wanted: unknown[]) =>
    JSON.stringify(found) === JSON.stringify(wanted) ? [] : [`${table}: ${what} is not as the metadata says`]
  const indexed = db
    .prepare(
      'SELECT i.name FROM pragma_index_list(?) l, pragma_index_info(l.name) i WHERE NOT l."unique" ORDER BY 1',
    )
    .pluck()
    .all(table)
  const relations = fields.flatMap(({ column, relation }) => (relation && column !== null ? [column] : []))
  return [
    ...(columns.length === Math.min(fields.length, MOST)
      ? []
      : [`${table}: ${columns.length} of ${fields.length} fields have a column`]),
    ...same('the order of its columns', names(table), [
      'id',
      ...columns,
      'created_at',
      'updated_at',
      '_deleted_at',
    ]),
    ...same('the live view', names(`live_${table}`), ['id', ...columns, 'created_at', 'updated_at']),
    ...same(
      'the width of the labelled view',
      names(`labelled_${table}`).map(() => 0),
      ['id', ...columns, 'created_at', 'updated_at'].map(() => 0),
    ),
    ...same(
      'which columns are indexed',
      indexed,
      relations.sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))),
    ),
  ]
}

function compareRows(db: Db, { object, table }: Typed): string[] {
  const fields = fieldsIn(db, object).filter(({ column }) => column !== null)
  const rows = new Map(readRows(db, table).map(row => [row.get('id'), row]))
  const records = db
    .prepare('SELECT id, fields, created_at, updated_at, _deleted_at FROM crm_records WHERE object = ?')
    .all(object) as Record<string, string | null>[]
  const live = db
    .prepare(`SELECT count(*) FROM ${quoted(`live_${table}`)}`)
    .pluck()
    .get()
  const labelled = db
    .prepare(`SELECT count(*) FROM ${quoted(`labelled_${table}`)}`)
    .pluck()
    .get()
  const published = records.filter(record => record['_deleted_at'] === null).length
  const shown = live === published && labelled === published
  const known = new Set(records.map(({ id }) => id))
  return [
    ...(shown ? [] : [`${table}: its views show ${live} and ${labelled} of ${published} records`]),
    ...[...rows.keys()].filter(id => !known.has(String(id))).map(id => `${table} ${id}: should not be there`),
    ...records.flatMap(record => {
      const row = rows.get(record['id'] ?? '')
      if (!row) return [`${table} ${record['id']}: is missing`]
      return compareCells(table, fields, record, row)
    }),
  ]
}

function readRows(db: Db, table: string): Found[] {
  const select = db.prepare(`SELECT * FROM ${quoted(table)}`).safeIntegers()
  const names = select.columns().map(({ name }) => name)
  return (select.raw().all() as Cell[][]).map(
    cells => new Map(names.map((name, index) => [name, cells[index] ?? null])),
  )
}

function compareCells(
  table: string,
  fields: readonly Field[],
  record: Record<string, string | null>,
  row: Found,
): string[] {
  // Of two names that are stored alike, the last counts.
  const values = new Map(
    Object.entries(fieldsOf(parseExact(record['fields'] ?? 'null'))).map(([key, value]) => [
      storedName(key),
      value,
    ]),
  )
  const wrong = ['created_at', 'updated_at', '_deleted_at'].filter(name => row.get(name) !== record[name])
  for (const { name, column, type, relation } of fields) {
    const value = values.get(name) ?? null
    const form = relation === 'MANY_TO_ONE' ? 'text' : (FORMS[(type ?? '').toUpperCase()] ?? 'text')
    const cell = row.get(column ?? '') ?? null
    if (!fits[form](value, cell)) wrong.push(`${column} (${form} ${cell})`)
  }
  return wrong.map(column => `${table} ${record['id']}: ${column} is not what the record says`)
}

/** A replacement character stands for half a surrogate pair. */
const storedName = (key: string): string => key.replace(/\p{Surrogate}/gu, '\ufffd')

type Form = 'text' | 'number' | 'boolean' | 'timestamp'

const FORMS: Readonly<Record<string, Form>> = {
  NUMBER: 'number',
  DECIMAL: 'number',
  CURRENCY: 'number',
  INTEGER: 'number',
  BOOLEAN: 'boolean',
  DATETIME: 'timestamp',
}

type Fits = (value: Json, cell: Cell) => boolean

const fits: Readonly<Record<Form, Fits>> = {
  text: isText,
  timestamp: (value, cell) =>
    typeof value === 'string' ? cell === (instantOf(value) ?? value.toWellFormed()) : isText(value, cell),
  boolean(value, cell) {
    const numbers: Readonly<Record<string, bigint>> = { true: 1n, false: 0n, '1e0': 1n, '0': 0n }
    const isSaid = typeof value === 'boolean' || value instanceof LosslessNumber
    const said = isSaid ? canonicalJson(value) : value === 'true' || value === 'false' ? value : ''
    return cell === (numbers[said] ?? null)
  },
  number(value, cell) {
    const text = value instanceof LosslessNumber ? value.value : typeof value === 'string' ? value : ''
    if (!/^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(text)) return cell === null
    const exact = canonicalJson(new LosslessNumber(text))
    if (cell === null || canonicalJson(new LosslessNumber(String(cell))) !== exact) return false
    const double = Number(text)
    const isHeld = Number.isFinite(double) && canonicalJson(new LosslessNumber(String(double))) === exact
    return isHeld === (typeof cell !== 'string') && (typeof cell === 'bigint' || !Number.isSafeInteger(cell))
  },
}

/** A text unchanged, any other value as its JSON. */
function isText(value: Json, cell: Cell): boolean {
  if (value === null) return cell === null
  if (typeof value === 'string') return cell === value.toWellFormed()
  return typeof cell === 'string' && canonicalJson(parseExact(cell)) === canonicalJson(value)
}
