import { DAY_MS } from '../../clock.ts'
import { type ExportKind, PARQUET_TYPES, type ParquetCell } from '../../export/parquet-types.ts'
import type { RowBinary } from './row-binary.ts'

/**
 * What a version of the server knows. There are two dialects, so that both can be tested: releases since 22.3 have
 * types for days and for instants with fractions of a second; older ones get these values as text. Pure.
 */

export interface ClickHouseDialect {
  /** Whether views can be replaced in one step, have comments, and keys may be NULL. */
  isModern: boolean
  types: Readonly<Record<ExportKind, ClickHouseType>>
}

export interface ClickHouseType {
  /** In SQL, without `Nullable`. */
  name: string
  /** Undefined when the value does not fit the kind of the column; null when only ClickHouse cannot represent it. */
  convert(cell: string | number | bigint): ParquetCell | undefined
  put(out: RowBinary, value: ParquetCell): void
}

/** @param version such as `26.7.2.1` */
export function dialectOf(version: string): ClickHouseDialect {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  return major > 22 || (major === 22 && minor >= 3) ? MODERN : CLASSIC
}

const putText = (out: RowBinary, value: ParquetCell) => out.text(String(value))

function textOf(kind: ExportKind): ClickHouseType {
  return { name: 'String', convert: PARQUET_TYPES[kind].convert, put: putText }
}

const doubleOf = (kind: ExportKind): ClickHouseType => ({
  name: 'Float64',
  convert: PARQUET_TYPES[kind].convert,
  put: (out, value) => out.float64(Number(value)),
})

const booleanAs = (name: string): ClickHouseType => ({
  name,
  convert: PARQUET_TYPES.boolean.convert,
  put: (out, value) => out.byte(value ? 1 : 0),
})

const SAME_IN_ALL = {
  text: textOf('text'),
  json: textOf('json'),
  digits: textOf('digits'),
  integer: {
    name: 'Int64',
    convert: PARQUET_TYPES.integer.convert,
    put: (out: RowBinary, value: ParquetCell) => out.int64(BigInt(value ?? 0)),
  },
  real: doubleOf('real'),
  number: doubleOf('number'),
}

/** Text that fits the kind, as the warehouse has it. */
const asWritten = (kind: 'timestamp' | 'instant'): ClickHouseType => ({
  name: 'String',
  convert: cell => (PARQUET_TYPES[kind].convert(cell) === undefined ? undefined : String(cell)),
  put: putText,
})

/** The days that ClickHouse has, in milliseconds since 1970: from 1900-01-01 to 2299-12-31. */
const FIRST_MS = Date.UTC(1900, 0, 1)
const END_MS = Date.UTC(2300, 0, 1)

const isInRange = (ms: number): boolean => ms >= FIRST_MS && ms < END_MS

const instantOf = (kind: 'timestamp' | 'instant'): ClickHouseType => ({
  name: "DateTime64(6, 'UTC')",
  convert(cell) {
    const ms = PARQUET_TYPES[kind].convert(cell)
    return ms === undefined || isInRange(Number(ms)) ? ms : null
  },
  put: (out, value) => out.int64(BigInt(value ?? 0) * 1000n),
})

const daysOf = (kind: 'date' | 'day', cell: string | number | bigint): number | undefined => {
  const days = PARQUET_TYPES[kind].convert(cell)
  return days === undefined ? undefined : Number(days)
}

const dayOf = (kind: 'date' | 'day'): ClickHouseType => ({
  name: 'Date32',
  convert(cell) {
    const days = daysOf(kind, cell)
    return days === undefined || isInRange(days * DAY_MS) ? days : null
  },
  put: (out, value) => out.int32(Number(value)),
})

const dayAsText = (kind: 'date' | 'day'): ClickHouseType => ({
  name: 'String',
  convert: cell => (daysOf(kind, cell) === undefined ? undefined : String(cell).slice(0, 10)),
  put: putText,
})

const MODERN: ClickHouseDialect = {
  isModern: true,
  types: {
    ...SAME_IN_ALL,
    boolean: booleanAs('Bool'),
    timestamp: instantOf('timestamp'),
    instant: instantOf('instant'),
    date: dayOf('date'),
    day: dayOf('day'),
  },
}

const CLASSIC: ClickHouseDialect = {
  isModern: false,
  types: {
    ...SAME_IN_ALL,
    boolean: booleanAs('UInt8'),
    timestamp: asWritten('timestamp'),
    instant: asWritten('instant'),
    date: dayAsText('date'),
    day: dayAsText('day'),
  },
}
