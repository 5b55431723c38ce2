import { safeText } from '../../base/safe-text.ts'
import type { ExportColumn } from '../../export/export-tables.ts'
import {
  type ExportKind,
  type FileValue,
  PARQUET_TYPES,
  type ParquetType,
} from '../../export/parquet-types.ts'
import { createUniqueNames } from '../../store/crm/columns.ts'

/**
 * The schema of an Iceberg table: the field id and the type of each column, and the column by which the files are
 * partitioned. A column keeps its id, so files of earlier schemas stay readable. An id never changes its type. Pure.
 */

export type IcebergType = 'string' | 'long' | 'double' | 'boolean' | 'timestamptz' | 'date'

export interface IcebergField {
  id: number
  name: string
  /** Always false: some readers refuse required columns without further statistics. */
  required: false
  type: IcebergType
  doc?: string
}

export interface IcebergSchema {
  type: 'struct'
  'schema-id': number
  fields: readonly IcebergField[]
}

const TYPES: Readonly<Record<ExportKind, IcebergType>> = {
  text: 'string',
  json: 'string',
  digits: 'string',
  integer: 'long',
  real: 'double',
  number: 'double',
  boolean: 'boolean',
  timestamp: 'timestamptz',
  instant: 'timestamptz',
  date: 'date',
  day: 'date',
}

/** Iceberg stores instants in microseconds. */
const MICROSECONDS = {
  type: 'INT64',
  converted_type: 'TIMESTAMP_MICROS',
  logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MICROS' },
} as const

export const ICEBERG_PARQUET_TYPES: Readonly<Record<ExportKind, ParquetType>> = {
  ...PARQUET_TYPES,
  timestamp: inMicroseconds(PARQUET_TYPES.timestamp),
  instant: inMicroseconds(PARQUET_TYPES.instant),
}

function inMicroseconds({ convert, restore }: ParquetType): ParquetType {
  return {
    name: 'TIMESTAMP(MICROS, UTC)',
    element: MICROSECONDS,
    // parley writes no digits below the millisecond, so a value that has some must not equal a cell of the warehouse.
    restore: value => (isWholeMillisecond(value) ? restore(value / 1000n) : `${value} µs`),
    convert: cell => {
      const milliseconds = convert(cell)
      return typeof milliseconds === 'bigint' ? milliseconds * 1000n : milliseconds
    },
  }
}

const isWholeMillisecond = (value: FileValue): value is bigint =>
  typeof value === 'bigint' && value % 1000n === 0n

/** Columns that engines add to each table. Engines cannot read a table that has another column of that name. */
const RESERVED: readonly string[] = [
  // Iceberg's metadata columns, in Spark.
  ...['_file', '_pos', '_deleted', '_spec_id', '_partition', '_row_id', '_last_updated_sequence_number'],
  // Trino.
  ...['$path', '$partition', '$file_modified_time'],
]

const IS_RESERVED = createUniqueNames(RESERVED).has

/**
 * The names of columns for readers, in their order. Names that engines reserve get a number, and control characters are
 * replaced. Pure.
 */
export function namesForReaders(names: readonly string[]): string[] {
  const isPlain = (name: string) => !IS_RESERVED(name) && safeText(name) === name
  const taken = createUniqueNames([...RESERVED, ...names.filter(isPlain)])
  return names.map(name => (isPlain(name) ? name : taken.take(safeText(name))))
}

export interface EvolvedSchema {
  schema: IcebergSchema
  /** The highest field id that was ever given. */
  lastColumnId: number
}

/**
 * The schema for these columns. A column keeps its id of an earlier schema if the type is the same. If the fields equal
 * those of an earlier schema, that schema is returned.
 */
export function evolvedSchema(
  columns: readonly ExportColumn[],
  earlier: readonly IcebergSchema[],
  lastColumnId: number,
): EvolvedSchema {
  const ids = new Map(
    earlier.flatMap(({ fields }) => fields.map(({ name, type, id }) => [`${name} ${type}`, id])),
  )
  let last = lastColumnId
  const fields = columns.map(({ name, kind, doc = '' }): IcebergField => {
    const type = TYPES[kind]
    const id = ids.get(`${name} ${type}`) ?? ++last
    return { id, name, required: false, type, ...(doc !== '' && { doc }) }
  })
  const known = earlier.find(schema => JSON.stringify(schema.fields) === JSON.stringify(fields))
  if (known) return { schema: known, lastColumnId: last }
  const schemaId = Math.max(-1, ...earlier.map(schema => schema['schema-id'])) + 1
  return { schema: { type: 'struct', 'schema-id': schemaId, fields }, lastColumnId: last }
}

const KINDS: Readonly<Record<IcebergType, ExportKind>> = {
  string: 'text',
  long: 'integer',
  double: 'real',
  boolean: 'boolean',
  timestamptz: 'timestamp',
  date: 'date',
}

/** Columns from which `evolvedSchema` makes these fields again. */
export function columnsWithFields(fields: readonly IcebergField[]): ExportColumn[] {
  return fields.map(({ name, type, doc = '' }) => ({ name, kind: KINDS[type], doc }))
}

/** `transform`: `month` for an instant, `identity` for a text such as `2026-03`. */
export interface PartitionField {
  'source-id': number
  'field-id': number
  name: string
  transform: 'month' | 'identity'
}

export interface PartitionSpec {
  'spec-id': number
  fields: readonly PartitionField[]
}

/** Ids of partition fields begin here, by Iceberg's specification. */
const FIRST_PARTITION_ID = 1000

/** The column of the partition; undefined for a table that is not partitioned. */
export interface PartitionColumn {
  name: string
  transform: PartitionField['transform']
}

export function partitionSpec({ fields }: IcebergSchema, column: PartitionColumn | undefined): PartitionSpec {
  if (column === undefined) return { 'spec-id': 0, fields: [] }
  const source = fields.find(({ name }) => name === column.name)
  if (source === undefined) throw new Error(`the partition column ${column.name} is missing`)
  const name = column.transform === 'month' ? `${column.name}_month` : column.name
  const field = { 'source-id': source.id, 'field-id': FIRST_PARTITION_ID, name, transform: column.transform }
  return { 'spec-id': 0, fields: [field] }
}

/**
 * The value of a month such as `2026-03` in a manifest: months since 1970 for the transform `month`, the text itself for
 * `identity`. Null stands for rows without a time.
 */
export function partitionValue(
  month: string | null,
  transform: PartitionField['transform'],
): number | string | null {
  if (month === null || transform === 'identity') return month
  const [year = 0, of = 1] = month.split('-').map(Number)
  return (year - 1970) * 12 + of - 1
}
