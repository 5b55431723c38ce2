import type { IcebergSchema } from './iceberg-schema.ts'

/** How the files of a table are divided. Pure. */

/** `month` of an instant, `identity` of a text such as `2026-03`. */
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

/** A partition value as bytes, for the summary of a manifest in its list. */
export function boundBytes(value: number | string): Buffer {
  if (typeof value === 'string') return Buffer.from(value, 'utf8')
  const bytes = Buffer.alloc(4)
  bytes.writeInt32LE(value)
  return bytes
}
