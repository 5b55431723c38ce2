import type { SchemaElement } from 'hyparquet-writer'
import type { ColumnKind } from '../resource.ts'
import type { ExportColumn } from './tables.ts'

/** How each kind of column stands in a Parquet file. Pure. */

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

export const PARQUET_TYPES: Readonly<Record<ColumnKind, ParquetType>> = {
  text: STRING,
  json: STRING,
  integer: {
    name: 'INT64',
    element: { type: 'INT64' },
    convert: cell => (typeof cell === 'bigint' ? cell : undefined),
  },
  real: {
    name: 'DOUBLE',
    element: { type: 'DOUBLE' },
    convert: cell => (typeof cell === 'string' ? undefined : Number(cell)),
  },
  boolean: {
    name: 'BOOLEAN',
    element: { type: 'BOOLEAN' },
    convert: cell => (typeof cell === 'bigint' ? cell !== 0n : undefined),
  },
  timestamp: {
    name: 'TIMESTAMP(MILLIS, UTC)',
    element: {
      type: 'INT64',
      converted_type: 'TIMESTAMP_MILLIS',
      logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MILLIS' },
    },
    convert: cell => {
      const ms = typeof cell === 'string' ? Date.parse(cell) : Number.NaN
      return Number.isNaN(ms) ? undefined : BigInt(ms)
    },
  },
  date: {
    name: 'DATE',
    element: { type: 'INT32', converted_type: 'DATE', logical_type: { type: 'DATE' } },
    convert: cell => {
      const days = typeof cell === 'string' ? Date.parse(`${cell}T00:00:00.000Z`) / DAY_MS : Number.NaN
      return Number.isInteger(days) ? days : undefined
    },
  },
}

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
