import type { SchemaElement } from 'hyparquet-writer'
import { canonicalInstant, isDay } from '../instant.ts'
import type { ColumnKind } from '../resource.ts'
import { NUMBER } from '../store/crm-columns.ts'
import type { ExportColumn } from './tables.ts'

/** How each kind of column stands in a Parquet file. Pure. */

/**
 * What a column holds. The last four are for values that people type into a CRM: a number as the nearest double, every
 * digit of a number that no double keeps, an instant among other texts, and a day whatever time of day follows it.
 */
export type ExportKind = ColumnKind | 'number' | 'digits' | 'instant' | 'day'

/** As the database gives it: every whole number is a bigint, so that none loses a digit. */
export type StoredCell = string | number | bigint | null

export type ParquetCell = string | number | bigint | boolean | null

export interface ParquetType {
  /** What the manifest calls it. */
  name: string
  element: Omit<SchemaElement, 'name'>
  /** Undefined for what is no value of this type. */
  convert(cell: string | number | bigint): ParquetCell | undefined
}

/**
 * Old and new annotations stand side by side, since readers look for one or the other. JSON is plain text: some
 * readers take columns annotated as JSON for bytes.
 */
const STRING: ParquetType = {
  name: 'STRING',
  element: { type: 'BYTE_ARRAY', converted_type: 'UTF8', logical_type: { type: 'STRING' } },
  convert: cell => (typeof cell === 'string' ? cell : String(cell)),
}

const DAY_MS = 86_400_000

const DOUBLE = { name: 'DOUBLE', element: { type: 'DOUBLE' } } as const

const TIMESTAMP = {
  name: 'TIMESTAMP(MILLIS, UTC)',
  element: {
    type: 'INT64',
    converted_type: 'TIMESTAMP_MILLIS',
    logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MILLIS' },
  },
} as const

const DATE = {
  name: 'DATE',
  element: { type: 'INT32', converted_type: 'DATE', logical_type: { type: 'DATE' } },
} as const

const daysOf = (text: string): number | undefined =>
  isDay(text) ? Date.parse(`${text}T00:00:00.000Z`) / DAY_MS : undefined

export const PARQUET_TYPES: Readonly<Record<ExportKind, ParquetType>> = {
  text: STRING,
  json: STRING,
  integer: {
    name: 'INT64',
    element: { type: 'INT64' },
    convert: cell => (typeof cell === 'bigint' ? cell : undefined),
  },
  real: {
    ...DOUBLE,
    convert: cell => (typeof cell === 'string' ? undefined : Number(cell)),
  },
  number: {
    ...DOUBLE,
    convert: cell => (typeof cell !== 'string' || NUMBER.test(cell) ? finite(Number(cell)) : undefined),
  },
  digits: {
    ...STRING,
    // The warehouse has as text what no double keeps.
    convert: cell => (typeof cell === 'string' && NUMBER.test(cell) ? cell : undefined),
  },
  boolean: {
    name: 'BOOLEAN',
    element: { type: 'BOOLEAN' },
    convert: cell => (typeof cell === 'bigint' ? cell !== 0n : undefined),
  },
  timestamp: {
    ...TIMESTAMP,
    convert: cell => {
      const ms = typeof cell === 'string' ? Date.parse(cell) : Number.NaN
      return Number.isNaN(ms) ? undefined : BigInt(ms)
    },
  },
  instant: {
    ...TIMESTAMP,
    convert: cell => {
      const isInstant = typeof cell === 'string' && canonicalInstant(cell) === cell
      return isInstant ? BigInt(Date.parse(cell)) : undefined
    },
  },
  date: {
    ...DATE,
    convert: cell => (typeof cell === 'string' ? daysOf(cell) : undefined),
  },
  day: {
    ...DATE,
    convert: cell => (typeof cell === 'string' && DAY.test(cell) ? daysOf(cell.slice(0, 10)) : undefined),
  },
}

const DAY = /^\d{4}-\d{2}-\d{2}(?:[T ]|$)/

const finite = (value: number): number | undefined => (Number.isFinite(value) ? value : undefined)

/** Every column may be empty: what is never NULL today may be so for a reader of tomorrow's files. */
export function parquetSchema(columns: readonly ExportColumn[]): SchemaElement[] {
  const elements = columns.map(
    ({ name, kind }): SchemaElement => ({
      name,
      repetition_type: 'OPTIONAL',
      ...PARQUET_TYPES[kind].element,
    }),
  )
  return [{ name: 'root', num_children: columns.length }, ...elements]
}
