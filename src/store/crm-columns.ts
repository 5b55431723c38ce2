import { canonicalInstant } from '../instant.ts'
import { decodeJson, encodeJson, exactNumber } from '../json.ts'

/** How the fields of a CRM object become the columns of its typed table: names, types and values, and nothing else. */

/** What the values of a column are made of. */
export type CrmForm = 'text' | 'number' | 'boolean' | 'timestamp' | 'date'

/** A row of `crm_fields`, as far as it matters here. */
export interface CrmField {
  name: string
  label: string | null
  type: string | null
  isActive: boolean
  isRelation: boolean
  /** What a relation points at: records of an object, or rows of a resource of the API. */
  target?: { object: string | null; resource: string | null }
}

export interface CrmColumn {
  /** The field's name: a key of `crm_records.fields`. */
  field: string
  column: string
  form: CrmForm
  /** It points at another record. */
  indexed: boolean
}

/** What better-sqlite3 takes: a number is stored as REAL, a bigint as INTEGER. */
export type CrmCell = string | number | bigint | null

/** SQLite takes 2,000 columns at most; some are left for those that are not fields, and for views over the table. */
export const MOST_FIELD_COLUMNS = 1900

/** Before the fields and after them. */
export const LEADING_COLUMNS = ['id'] as const
export const TRAILING_COLUMNS = ['created_at', 'updated_at', '_deleted_at'] as const

/** In STRICT tables; ANY keeps whatever number or text it is given as it is. */
export const SQL_TYPES: Readonly<Record<CrmForm, string>> = {
  text: 'TEXT',
  timestamp: 'TEXT',
  date: 'TEXT',
  boolean: 'INTEGER',
  number: 'ANY',
}

/** The API does not state its types' names, so that any usual spelling is understood; the rest is text. */
const FORMS: readonly { form: CrmForm; types: RegExp }[] = [
  { form: 'boolean', types: /^(bool|boolean|checkbox|flag|yesno)$/ },
  {
    form: 'number',
    types:
      /^(number|numeric|int|integer|bigint|smallint|long|float|double|decimal|real|currency|money|amount|percent|percentage)$/,
  },
  { form: 'timestamp', types: /^(datetime|datetimetz|timestamp|timestamptz|timestampz|instant)$/ },
  { form: 'date', types: /^(date|day|localdate)$/ },
]

export function formOf(type: string | null): CrmForm {
  const plain = (type ?? '').toLowerCase().replace(/[^a-z]/g, '')
  return FORMS.find(({ types }) => types.test(plain))?.form ?? 'text'
}

/**
 * The columns for fields in the order of the metadata. Beyond the most that a table takes, those in use go before
 * those that are retired. A field keeps the column that it had.
 * @param before column by field
 */
export function columnsOf(fields: readonly CrmField[], before: ReadonlyMap<string, string>): CrmColumn[] {
  const chosen = new Set(
    [...fields.filter(({ isActive }) => isActive), ...fields.filter(({ isActive }) => !isActive)].slice(
      0,
      MOST_FIELD_COLUMNS,
    ),
  )
  const shown = fields.filter(field => chosen.has(field))
  const taken = createNames([...LEADING_COLUMNS, ...TRAILING_COLUMNS])
  const kept = new Map(
    shown.flatMap(({ name }) => {
      const column = before.get(name)
      return column === undefined ? [] : [[name, taken.take(column)] as const]
    }),
  )
  return shown.map(({ name, type, isRelation }) => ({
    field: name,
    column: kept.get(name) ?? taken.take(identifier(name)),
    form: isRelation ? 'text' : formOf(type),
    indexed: isRelation,
  }))
}

/** What people call the columns, in the order of `columns`: each name once. */
export function labelsOf(columns: readonly CrmColumn[], fields: readonly CrmField[]): string[] {
  const labels = new Map(fields.map(({ name, label }) => [name, label]))
  const taken = createNames([...LEADING_COLUMNS, ...TRAILING_COLUMNS])
  return columns.map(({ field, column }) => taken.take(identifier(labels.get(field)?.trim() || column)))
}

/** SQL text ends at a NUL, whatever quotes it stands in. */
export function identifier(name: string): string {
  const plain = name.toWellFormed().replaceAll('\u0000', '\ufffd')
  return plain === '' ? 'unnamed' : plain
}

/** A key of a record as `crm_fields.name` has it: half a character has no UTF-8. */
export function storedName(key: string): string {
  return key.toWellFormed()
}

export interface Names {
  has(name: string): boolean
  /** The name itself where it is free, else with the first number that makes it so. */
  take(name: string): string
}

/** Names of which no two are alike but for case. */
export function createNames(taken: Iterable<string>): Names {
  const folded = new Set([...taken].map(fold))
  const next = new Map<string, number>()
  return {
    has: name => folded.has(fold(name)),
    take(name) {
      let free = name
      let number = next.get(fold(name)) ?? 2
      for (; folded.has(fold(free)); number += 1) free = `${name}_${number}`
      next.set(fold(name), number)
      folded.add(fold(free))
      return free
    },
  }
}

/**
 * Where the numbers of a column are doubles, the column next to it that holds every digit of those that a double does
 * not keep: its name, by the name of the number's. It is there whatever the values are.
 * @param all every column of the table
 */
export function exactNames(all: readonly string[], numbers: readonly string[]): ReadonlyMap<string, string> {
  const taken = createNames(all)
  return new Map(numbers.map(name => [name, taken.take(`${name}_exact`)]))
}

const fold = (name: string): string => name.toLowerCase()

/** The value as it stands in its column; null where it does not fit, and is to be looked for in the JSON. */
export function cellOf(form: CrmForm, value: unknown): CrmCell {
  return value === null || value === undefined ? null : CELLS[form](value)
}

const CELLS: Readonly<Record<CrmForm, (value: NonNullable<unknown>) => CrmCell>> = {
  text: asText,
  timestamp: value => (typeof value === 'string' ? canonicalInstant(value) : undefined) ?? asText(value),
  date: asText,
  boolean: value => TRUTHS.get(value) ?? null,
  number: asNumber,
}

const TRUTHS: ReadonlyMap<unknown, CrmCell> = new Map<unknown, CrmCell>([
  [true, 1],
  [1, 1],
  ['true', 1],
  [false, 0],
  [0, 0],
  ['false', 0],
])

function asText(value: NonNullable<unknown>): string {
  return typeof value === 'string' ? value.toWellFormed() : encodeJson(value)
}

/** A JSON number as text, and nothing else. */
export const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/

/** Amounts are sent as text by those who mind their digits. */
function asNumber(value: NonNullable<unknown>): CrmCell {
  const number = typeof value === 'string' && NUMBER.test(value) ? decodeJson(value).value : value
  if (typeof number === 'number') return Number.isSafeInteger(number) ? BigInt(number) : number
  return exactNumber(number)?.text ?? null
}
