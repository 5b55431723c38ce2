import { canonicalJson, type Fields, isFields, type Json, numberOf } from './exact-json.ts'

/**
 * A second, independent description of how the warehouse contract maps a payload to a row.
 * A shape is a line of columns: `column`, `column:kind`, `column<path.in.the.payload` or both.
 * The default kind is text.
 */
export type Shape = readonly ColumnShape[]

interface ColumnShape {
  column: string
  kind: Kind
  path: readonly string[]
}

type Kind = keyof typeof READ

export type Cell = string | number | null
/** Cells of JSON columns are canonical JSON. */
export type Row = Readonly<Record<string, Cell | OneOf>>
export interface OneOf {
  oneOf: readonly Cell[]
}

export function shape(line: string): Shape {
  return line
    .trim()
    .split(/\s+/)
    .map(word => {
      const [, column = '', kind = 'text', path = column] =
        /^(\w+)(?::(\w+))?(?:<([\w.]+))?$/.exec(word) ?? []
      if (!isKind(kind)) throw new RangeError(`no kind of column is called ${kind}`)
      return { column, kind, path: path.split('.') }
    })
}

function isKind(text: string): text is Kind {
  return Object.hasOwn(READ, text)
}

/** Undefined for a value of another type. */
const READ = {
  text: (value: Json) => (typeof value === 'string' ? value : undefined),
  integer: (value: Json) => {
    const number = numberOf(value)
    return Number.isSafeInteger(number) ? number : undefined
  },
  real: numberOf,
  boolean: (value: Json) => (typeof value === 'boolean' ? Number(value) : undefined),
  instant: (value: Json) => (typeof value === 'string' ? instantOf(value) : undefined),
  day: (value: Json) => (typeof value === 'string' && /^\d{4}-\d\d-\d\d$/.test(value) ? value : undefined),
  json: canonicalJson,
} satisfies Record<string, (value: Json) => Cell | undefined>

const INSTANT = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d+))?(Z|[+-]\d\d:\d\d)$/

/** UTC, truncated to the millisecond. Undefined unless the value is an RFC 3339 date-time. */
export function instantOf(text: string): string | undefined {
  const [whole, seconds = '', digits = '', zone = ''] = INSTANT.exec(text) ?? []
  if (whole === undefined) return undefined
  return new Date(`${seconds}.${digits.padEnd(3, '0').slice(0, 3)}${zone}`).toISOString()
}

export interface RowSource {
  shape: Shape
  payload: Fields
  /** Columns that parley fills itself. */
  given?: Row
  /** Fields that are stored elsewhere: lists of child rows. */
  elsewhere?: readonly string[]
}

export function rowOf({ shape: columns, payload, given = {}, elsewhere = [] }: RowSource): Row {
  const row: Record<string, Cell | OneOf> = { ...given }
  const placed = new Set(elsewhere)
  for (const { column, kind, path } of columns) {
    const value = at(payload, path)
    const cell = value === null || value === undefined ? null : READ[kind](value)
    row[column] = cell ?? null
    if (cell !== undefined) placed.add(path.join('.'))
  }
  const rest = leftOver(payload, placed, '')
  row['_extra'] = rest === undefined ? null : canonicalJson(rest)
  return row
}

function at(payload: Json | undefined, path: readonly string[]): Json | undefined {
  return path.reduce<Json | undefined>((value, name) => (isFields(value) ? value[name] : undefined), payload)
}

/** Fields without a column that are not null. Undefined when there are none. */
function leftOver(payload: Fields, placed: ReadonlySet<string>, prefix: string): Fields | undefined {
  const rest: Record<string, Json> = {}
  for (const [name, value] of Object.entries(payload)) {
    const path = prefix + name
    if (placed.has(path) || value === null || value === undefined) continue
    const isOpened = [...placed].some(known => known.startsWith(`${path}.`))
    const left = isOpened && isFields(value) ? leftOver(value, placed, `${path}.`) : value
    if (left !== undefined) rest[name] = left
  }
  return Object.keys(rest).length === 0 ? undefined : rest
}
