import type { SchemaElement } from 'hyparquet-writer'
import { DAY_MS } from '../base/clock.ts'
import { canonicalInstant, isDay } from '../base/instant.ts'
import type { ColumnKind } from '../declare/table.ts'
import { NUMBER } from '../store/crm/columns.ts'
import type { StoredCell } from '../store/database/sqlite-types.ts'

/** The Parquet type of each kind of column. Pure. */

/**
 * The last four kinds are for values that people type into a CRM:
 * - `number`: the nearest double;
 * - `digits`: a number, as text, if a double would lose some of its digits;
 * - `instant`: a date-time; any other text does not fit;
 * - `day`: a date, optionally followed by a time of day, which is ignored.
 */
export type ExportKind = ColumnKind | 'number' | 'digits' | 'instant' | 'day'

export type ParquetCell = string | number | bigint | boolean | null

export interface ParquetType {
  /** Name of the type in the manifest. */
  name: string
  element: Omit<SchemaElement, 'name'>
  /** @returns undefined when the value does not fit the type */
  convert(cell: string | number | bigint): FileValue | undefined
  /** The cell that a value of a file stands for. Days count from 1970, as in the file. */
  restore(value: FileValue): StoredCell
  /**
   * Whether `restore` certainly gives this cell back, so that it need not be converted. Undefined: every cell is
   * converted.
   */
  isExact?(cell: string | number | bigint): boolean
}

export type FileValue = Exclude<ParquetCell, null>

/**
 * The cell that a reader of the file gets back. Cells that look alike in the file become equal: 1 and 1.0 in a column
 * of doubles, or two texts that do not fit a number.
 */
export function keptCell({
  kind,
  mayMisfit,
}: {
  kind: ExportKind
  mayMisfit?: boolean | undefined
}): (cell: StoredCell) => StoredCell {
  const { convert, restore, isExact } = PARQUET_TYPES[kind]
  return cell => {
    if (cell === null || isExact?.(cell)) return cell
    const value = convert(cell)
    if (value === undefined) return mayMisfit ? null : cell
    return restore(value)
  }
}

/**
 * Text, declared in both ways of Parquet (`converted_type` is the older one), since some readers know only one. JSON
 * columns have this type too: if a column is declared as JSON, some readers return bytes.
 */
const STRING: ParquetType = {
  name: 'STRING',
  element: { type: 'BYTE_ARRAY', converted_type: 'UTF8', logical_type: { type: 'STRING' } },
  convert: cell => (typeof cell === 'string' ? cell : String(cell)),
  restore: String,
  isExact: cell => typeof cell === 'string',
}

const DOUBLE = {
  name: 'DOUBLE',
  element: { type: 'DOUBLE' },
  restore: Number,
  isExact: (cell: string | number | bigint) => typeof cell === 'number',
} as const

const TIMESTAMP = {
  name: 'TIMESTAMP(MILLIS, UTC)',
  element: {
    type: 'INT64',
    converted_type: 'TIMESTAMP_MILLIS',
    logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MILLIS' },
  },
  restore: (value: FileValue) => new Date(Number(value)).toISOString(),
} as const

const DATE = {
  name: 'DATE',
  element: { type: 'INT32', converted_type: 'DATE', logical_type: { type: 'DATE' } },
  restore: (value: FileValue) => new Date(Number(value) * DAY_MS).toISOString().slice(0, 10),
} as const

/** The lengths of `2026-03-04T05:06:07.123Z`, the form of the warehouse, and of `2026-03-04`. */
const INSTANT_LENGTH = 24
const DAY_LENGTH = 10

const daysOf = (text: string): number | undefined =>
  isDay(text) ? Date.parse(`${text}T00:00:00.000Z`) / DAY_MS : undefined

export const PARQUET_TYPES: Readonly<Record<ExportKind, ParquetType>> = {
  text: STRING,
  json: STRING,
  integer: {
    name: 'INT64',
    element: { type: 'INT64' },
    convert: cell => (typeof cell === 'bigint' ? cell : undefined),
    restore: value => (typeof value === 'bigint' ? value : null),
    isExact: cell => typeof cell === 'bigint',
  },
  real: {
    ...DOUBLE,
    convert: cell => (typeof cell === 'string' ? undefined : Number(cell)),
  },
  number: {
    ...DOUBLE,
    convert: cell => (typeof cell !== 'string' || NUMBER.test(cell) ? finite(Number(cell)) : undefined),
    isExact: Number.isFinite,
  },
  digits: {
    ...STRING,
    // The warehouse stores a number as text when a double would lose digits.
    convert: cell => (typeof cell === 'string' && NUMBER.test(cell) ? cell : undefined),
    // Texts that are no number are not in the file.
    isExact: () => false,
  },
  boolean: {
    name: 'BOOLEAN',
    element: { type: 'BOOLEAN' },
    convert: cell => (typeof cell === 'bigint' ? cell !== 0n : undefined),
    restore: value => (value ? 1n : 0n),
  },
  timestamp: {
    ...TIMESTAMP,
    convert: cell => {
      const ms = typeof cell === 'string' ? Date.parse(cell) : Number.NaN
      return Number.isNaN(ms) ? undefined : BigInt(ms)
    },
    isExact: cell => typeof cell === 'string' && cell.length === INSTANT_LENGTH,
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
    isExact: cell => typeof cell === 'string' && cell.length === DAY_LENGTH,
  },
  day: {
    ...DATE,
    convert: cell => (typeof cell === 'string' && DAY.test(cell) ? daysOf(cell.slice(0, 10)) : undefined),
  },
}

const DAY = /^\d{4}-\d{2}-\d{2}(?:[T ]|$)/

const finite = (value: number): number | undefined => (Number.isFinite(value) ? value : undefined)

/** Every column is optional, so that the schema stays the same when a column becomes nullable. */
export function parquetSchema(
  columns: readonly { name: string; kind: ExportKind }[],
  types: Readonly<Record<ExportKind, ParquetType>>,
  fieldIds: readonly number[] = [],
): SchemaElement[] {
  const elements = columns.map(({ name, kind }, place): SchemaElement => {
    const id = fieldIds[place]
    const field = id === undefined ? {} : { field_id: id }
    return { name, repetition_type: 'OPTIONAL', ...types[kind].element, ...field }
  })
  return [{ name: 'root', num_children: columns.length }, ...elements]
}
