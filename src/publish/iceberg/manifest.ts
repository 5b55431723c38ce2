import { type AvroSchema, decodeAvroFile, encodeAvroFile } from './avro-file.ts'
import type { IcebergSchema, PartitionField, PartitionSpec } from './iceberg-schema.ts'

/**
 * Manifests: the Avro files that name the data files of a snapshot. Field ids and names are those of Iceberg's
 * specification, format version 2.
 */

export interface DataFile {
  /** The address, as readers find it. */
  path: string
  /** The value of the partition; undefined in a table that is not partitioned. */
  partition: number | string | null | undefined
  rows: number
  bytes: number
  /** The NULLs of each column, by field id. */
  nulls: ReadonlyMap<number, number>
  /** The publication that added the file: the id and the sequence number of its snapshot. */
  addedBy: number
}

interface ManifestEntry {
  status: number
  snapshot_id: number
  sequence_number: number | null
  file_sequence_number: number | null
  data_file: {
    content: number
    file_path: string
    file_format: string
    partition: Record<string, number | string | null>
    record_count: number
    file_size_in_bytes: number
    value_counts: readonly KeyValue[] | null
    null_value_counts: readonly KeyValue[] | null
  }
}

interface KeyValue {
  key: number
  value: number
}

const EXISTING = 0
const ADDED = 1
/** Content of a manifest and of a file: rows, not deletes. */
const DATA = 0

const AVRO_TYPES = { month: 'int', identity: 'string' } as const

const optional = (type: AvroSchema): AvroSchema => ['null', type]

function countsById(name: string, key: number, value: number) {
  return optional({
    type: 'array',
    logicalType: 'map',
    items: {
      type: 'record',
      name,
      fields: [
        { name: 'key', type: 'int', 'field-id': key },
        { name: 'value', type: 'long', 'field-id': value },
      ],
    },
  })
}

function entrySchema({ fields }: PartitionSpec): AvroSchema {
  const partition: AvroSchema = {
    type: 'record',
    name: 'r102',
    fields: fields.map(({ name, transform, 'field-id': id }) => ({
      name: avroName(name),
      type: optional(AVRO_TYPES[transform]),
      default: null,
      'field-id': id,
    })),
  }
  const dataFile = {
    type: 'record',
    name: 'r2',
    fields: [
      { name: 'content', type: 'int', 'field-id': 134 },
      { name: 'file_path', type: 'string', 'field-id': 100 },
      { name: 'file_format', type: 'string', 'field-id': 101 },
      { name: 'partition', type: partition, 'field-id': 102 },
      { name: 'record_count', type: 'long', 'field-id': 103 },
      { name: 'file_size_in_bytes', type: 'long', 'field-id': 104 },
      { name: 'value_counts', type: countsById('k119_v120', 119, 120), default: null, 'field-id': 109 },
      { name: 'null_value_counts', type: countsById('k121_v122', 121, 122), default: null, 'field-id': 110 },
    ],
  }
  return {
    type: 'record',
    name: 'manifest_entry',
    fields: [
      { name: 'status', type: 'int', 'field-id': 0 },
      { name: 'snapshot_id', type: optional('long'), default: null, 'field-id': 1 },
      { name: 'sequence_number', type: optional('long'), default: null, 'field-id': 3 },
      { name: 'file_sequence_number', type: optional('long'), default: null, 'field-id': 4 },
      { name: 'data_file', type: dataFile, 'field-id': 2 },
    ],
  }
}

/** Avro allows fewer characters in a name than Iceberg. Readers go by the field id. */
const avroName = (name: string): string => name.replaceAll(/[^A-Za-z0-9_]/g, '_').replace(/^(?=\d)/, '_')

export interface ManifestContext {
  schema: IcebergSchema
  spec: PartitionSpec
  /** The snapshot that the manifest is written for, and the sequence number. */
  snapshotId: number
}

/** The bytes of a manifest with all live files of a snapshot. */
export function encodeManifest(files: readonly DataFile[], context: ManifestContext): Promise<Buffer> {
  const { schema, spec } = context
  return encodeAvroFile(
    entrySchema(spec),
    files.map(file => entryOf(file, context)),
    {
      schema: JSON.stringify(schema),
      'schema-id': String(schema['schema-id']),
      'partition-spec': JSON.stringify(spec.fields),
      'partition-spec-id': String(spec['spec-id']),
      'format-version': '2',
      content: 'data',
    },
  )
}

function entryOf(file: DataFile, { spec, schema, snapshotId }: ManifestContext): ManifestEntry {
  const { path, partition = null, rows, bytes, nulls, addedBy } = file
  const isNew = addedBy === snapshotId
  const [field] = spec.fields
  const counts = schema.fields.filter(({ id }) => nulls.has(id)).map(({ id }) => id)
  return {
    status: isNew ? ADDED : EXISTING,
    snapshot_id: addedBy,
    // Null: a new entry inherits the sequence number of its snapshot.
    sequence_number: isNew ? null : addedBy,
    file_sequence_number: isNew ? null : addedBy,
    data_file: {
      content: DATA,
      file_path: path,
      file_format: 'PARQUET',
      partition: field === undefined ? {} : { [avroName(field.name)]: partition },
      record_count: rows,
      file_size_in_bytes: bytes,
      value_counts: counts.map(key => ({ key, value: rows })),
      null_value_counts: counts.map(key => ({ key, value: nulls.get(key) ?? 0 })),
    },
  }
}

export async function decodeManifest(bytes: Buffer): Promise<DataFile[]> {
  const entries = await decodeAvroFile<ManifestEntry>(bytes)
  return entries.map(({ snapshot_id: addedBy, data_file: file }) => ({
    path: file.file_path,
    partition: Object.values(file.partition)[0],
    rows: file.record_count,
    bytes: file.file_size_in_bytes,
    nulls: new Map(file.null_value_counts?.map(({ key, value }) => [key, value])),
    addedBy,
  }))
}

const MANIFEST_LIST: AvroSchema = {
  type: 'record',
  name: 'manifest_file',
  fields: [
    { name: 'manifest_path', type: 'string', 'field-id': 500 },
    { name: 'manifest_length', type: 'long', 'field-id': 501 },
    { name: 'partition_spec_id', type: 'int', 'field-id': 502 },
    { name: 'content', type: 'int', 'field-id': 517 },
    { name: 'sequence_number', type: 'long', 'field-id': 515 },
    { name: 'min_sequence_number', type: 'long', 'field-id': 516 },
    { name: 'added_snapshot_id', type: 'long', 'field-id': 503 },
    { name: 'added_files_count', type: 'int', 'field-id': 504 },
    { name: 'existing_files_count', type: 'int', 'field-id': 505 },
    { name: 'deleted_files_count', type: 'int', 'field-id': 506 },
    { name: 'added_rows_count', type: 'long', 'field-id': 512 },
    { name: 'existing_rows_count', type: 'long', 'field-id': 513 },
    { name: 'deleted_rows_count', type: 'long', 'field-id': 514 },
    {
      name: 'partitions',
      type: optional({
        type: 'array',
        'element-id': 508,
        items: {
          type: 'record',
          name: 'r508',
          fields: [
            { name: 'contains_null', type: 'boolean', 'field-id': 509 },
            { name: 'contains_nan', type: optional('boolean'), default: null, 'field-id': 518 },
            { name: 'lower_bound', type: optional('bytes'), default: null, 'field-id': 510 },
            { name: 'upper_bound', type: optional('bytes'), default: null, 'field-id': 511 },
          ],
        },
      }),
      default: null,
      'field-id': 507,
    },
  ],
}

export interface ListedManifest {
  path: string
  bytes: number
}

/** The bytes of a snapshot's manifest list, which names one manifest. */
export function encodeManifestList(
  { path, bytes }: ListedManifest,
  files: readonly DataFile[],
  { spec, snapshotId }: ManifestContext,
  parentId: number | undefined,
): Promise<Buffer> {
  const added = files.filter(({ addedBy }) => addedBy === snapshotId)
  const existing = files.filter(({ addedBy }) => addedBy !== snapshotId)
  const rowsOf = (some: readonly DataFile[]) => some.reduce((sum, { rows }) => sum + rows, 0)
  const record = {
    manifest_path: path,
    manifest_length: bytes,
    partition_spec_id: spec['spec-id'],
    content: DATA,
    sequence_number: snapshotId,
    min_sequence_number: Math.min(snapshotId, ...existing.map(({ addedBy }) => addedBy)),
    added_snapshot_id: snapshotId,
    added_files_count: added.length,
    existing_files_count: existing.length,
    deleted_files_count: 0,
    added_rows_count: rowsOf(added),
    existing_rows_count: rowsOf(existing),
    deleted_rows_count: 0,
    partitions: spec.fields.map(field => partitionSummary(files, field)),
  }
  return encodeAvroFile(MANIFEST_LIST, [record], {
    'snapshot-id': String(snapshotId),
    'parent-snapshot-id': String(parentId ?? null),
    'sequence-number': String(snapshotId),
    'format-version': '2',
  })
}

/** @throws Error when the list is incomplete */
export async function decodeManifestList(bytes: Buffer): Promise<ListedManifest[]> {
  const records = await decodeAvroFile<{ manifest_path: string; manifest_length: number }>(bytes)
  if (records.length === 0) throw new Error('The list of manifests is incomplete')
  return records.map(record => ({ path: record.manifest_path, bytes: record.manifest_length }))
}

function partitionSummary(files: readonly DataFile[], { transform }: PartitionField) {
  const values = files.flatMap(({ partition }) => (partition == null ? [] : [partition]))
  const sorted =
    transform === 'month' ? values.sort((one, other) => Number(one) - Number(other)) : values.sort()
  const bound = (value: number | string | undefined) => (value === undefined ? null : boundBytes(value))
  return {
    contains_null: files.some(({ partition }) => partition == null),
    contains_nan: null,
    lower_bound: bound(sorted[0]),
    upper_bound: bound(sorted.at(-1)),
  }
}

/** A partition value as bytes, for the summary of a manifest in its list. */
function boundBytes(value: number | string): Buffer {
  if (typeof value === 'string') return Buffer.from(value, 'utf8')
  const bytes = Buffer.alloc(4)
  bytes.writeInt32LE(value)
  return bytes
}
