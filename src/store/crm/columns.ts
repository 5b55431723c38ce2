import { canonicalInstant } from '../../base/instant.ts'
import { decodeJson, encodeJson, exactNumber } from '../../base/json.ts'
import { safeText } from '../../base/safe-text.ts'
import { canonicalId } from '../../base/uuid.ts'

/** Maps the fields of a CRM object to the columns of its typed table: names, types and values. Pure. */

/** The kind of values in a column. */
export type CrmForm = 'text' | 'number' | 'boolean' | 'timestamp' | 'date' | 'relation'

/** A row of `crm_fields`. */
export interface CrmField {
  name: string
  label: string | null
  type: string | null
  isActive: boolean
  isRelation: boolean
  /** The target of a relation: records of a CRM object, or rows of a resource of the API. */
  target?: { object: string | null; resource: string | null }
}

export interface CrmColumn {
  /** Name of the field: a key of `crm_records.fields`. */
  field: string
  column: string
  /** A relation gets an index. */
  form: CrmForm
}

/** A value for better-sqlite3, which stores a number as REAL and a bigint as INTEGER. */
export type CrmCell = string | number | bigint | null

/** SQLite allows 2,000 columns in a table or view. The rest is for columns that are not fields. */
export const MAX_FIELD_COLUMNS = 1900

/** Columns before and after those of the fields. */
export const LEADING_COLUMNS = ['id'] as const
export const TRAILING_COLUMNS = ['created_at', 'updated_at', '_deleted_at'] as const

/** Column types in STRICT tables. ANY stores every number and text unchanged. */
export const SQL_TYPES: Readonly<Record<CrmForm, string>> = {
  text: 'TEXT',
  timestamp: 'TEXT',
  date: 'TEXT',
  relation: 'TEXT',
  boolean: 'INTEGER',
  number: 'ANY',
}

/** The API does not document its names of types, so common spellings are recognised. Any other type is text. */
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
 * The columns for the fields, in the order of the metadata. When there are too many fields for a table, active fields
 * have precedence over inactive ones. A field keeps its earlier column name.
 * @param before earlier column names by field
 */
export function columnsForFields(
  fields: readonly CrmField[],
  before: ReadonlyMap<string, string>,
): CrmColumn[] {
  const chosen = new Set(
    [...fields.filter(({ isActive }) => isActive), ...fields.filter(({ isActive }) => !isActive)].slice(
      0,
      MAX_FIELD_COLUMNS,
    ),
  )
  const shown = fields.filter(field => chosen.has(field))
  const taken = createUniqueNames([...LEADING_COLUMNS, ...TRAILING_COLUMNS])
  const kept = new Map(
    shown.flatMap(({ name }) => {
      const column = before.get(name)
      return column === undefined ? [] : [[name, taken.take(identifier(column))] as const]
    }),
  )
  return shown.map(({ name, type, isRelation }) => ({
    field: name,
    column: kept.get(name) ?? taken.take(identifier(name)),
    form: isRelation ? 'relation' : formOf(type),
  }))
}

/** The labels of the columns, in the order of `columns`, made unique. */
export function labelsOf(columns: readonly CrmColumn[], fields: readonly CrmField[]): string[] {
  const labels = new Map(fields.map(({ name, label }) => [name, label]))
  const taken = createUniqueNames([...LEADING_COLUMNS, ...TRAILING_COLUMNS])
  return columns.map(({ field, column }) => taken.take(identifier(labels.get(field)?.trim() || column)))
}

/**
 * A name for use inside SQL quotes. SQLite ends SQL text at a NUL, even inside quotes, and scripts and terminals show
 * what a control character does.
 */
export function identifier(name: string): string {
  const plain = safeText(name.toWellFormed())
  return plain === '' ? 'unnamed' : plain
}

/** A field name of a record as `crm_fields.name` stores it. Lone surrogates are replaced: UTF-8 cannot hold them. */
export function storedName(key: string): string {
  return key.toWellFormed()
}

export type Names = ReturnType<typeof createUniqueNames>

/** A set of names that are unique regardless of case. */
export function createUniqueNames(taken: Iterable<string>) {
  const folded = new Set([...taken].map(fold))
  const next = new Map<string, number>()
  return {
    has: (name: string) => folded.has(fold(name)),
    /** Reserves the name, or `name_2`, `name_3`, … when it is taken, and returns it. */
    take(name: string) {
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
 * Names of additional columns, by the name of their number column. An export format stores numbers as doubles; the
 * additional column holds the exact digits of a value that a double cannot hold.
 * @param all every column of the table
 * @param numbers the number columns
 */
export function exactNames(all: readonly string[], numbers: readonly string[]): ReadonlyMap<string, string> {
  const taken = createUniqueNames(all)
  return new Map(numbers.map(name => [name, taken.take(`${name}_exact`)]))
}

/**
 * Returns the same text for names that a database engine may treat as equal. Engines in Java compare the lower case of
 * each character's upper case, so `ı`, `İ` and `I` are one letter. A character whose upper case is several stays as it
 * is.
 */
const fold = (name: string): string =>
  [...name.toLowerCase().replaceAll('i\u0307', 'i')].map(foldCharacter).join('')

function foldCharacter(character: string): string {
  const upper = character.toUpperCase()
  return upper.length === character.length ? upper.toLowerCase() : character
}

/** The value as the column stores it. Null when the value does not fit: then only `crm_records.fields` has it. */
export function cellOf(form: CrmForm, value: unknown): CrmCell {
  return value === null || value === undefined ? null : CELLS[form](value)
}

const CELLS: Readonly<Record<CrmForm, (value: NonNullable<unknown>) => CrmCell>> = {
  text: asText,
  timestamp: value => (typeof value === 'string' ? canonicalInstant(value) : undefined) ?? asText(value),
  date: asText,
  relation: value => canonicalId(asText(value)),
  boolean: value => BOOLEANS.get(value) ?? null,
  number: asNumber,
}

const BOOLEANS: ReadonlyMap<unknown, CrmCell> = new Map<unknown, CrmCell>([
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

/** Matches the text of a JSON number. */
export const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/

/** Accepts numbers as strings too: some CRMs send amounts as text to keep every digit. */
function asNumber(value: NonNullable<unknown>): CrmCell {
  const number = typeof value === 'string' && NUMBER.test(value) ? decodeJson(value).value : value
  if (typeof number === 'number') return Number.isSafeInteger(number) ? BigInt(number) : number
  return exactNumber(number)?.text ?? null
}
