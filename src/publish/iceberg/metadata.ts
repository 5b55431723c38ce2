import type { EvolvedSchema, IcebergSchema, PartitionSpec } from './iceberg-schema.ts'

/**
 * The metadata of a table: `vK.metadata.json`, by Iceberg's specification, format version 2. A commit writes the next
 * version. The number of a publication is the id and the sequence number of the snapshot that it adds. Pure.
 */
export interface TableMetadata {
  'format-version': 2
  'table-uuid': string
  location: string
  'last-sequence-number': number
  'last-updated-ms': number
  'last-column-id': number
  'current-schema-id': number
  schemas: readonly IcebergSchema[]
  'default-spec-id': number
  'partition-specs': readonly PartitionSpec[]
  'last-partition-id': number
  'default-sort-order-id': 0
  'sort-orders': readonly [{ 'order-id': 0; fields: readonly [] }]
  properties: Readonly<Record<string, string>>
  'current-snapshot-id': number
  refs: Readonly<Record<string, SnapshotRef>>
  snapshots: readonly TableSnapshot[]
  'snapshot-log': readonly { 'timestamp-ms': number; 'snapshot-id': number }[]
  'metadata-log': readonly { 'timestamp-ms': number; 'metadata-file': string }[]
}

interface SnapshotRef {
  'snapshot-id': number
  type: 'branch' | 'tag'
}

export interface TableSnapshot {
  'snapshot-id': number
  'parent-snapshot-id'?: number
  'sequence-number': number
  'timestamp-ms': number
  'manifest-list': string
  summary: Readonly<Record<string, string>> & { operation: 'append' | 'overwrite' }
  'schema-id': number
}

/** `current-snapshot-id` of a table without a snapshot. */
const NO_SNAPSHOT = -1

/** `last-partition-id` of a table without partition fields. */
const NO_PARTITION_ID = 999

export interface NewTable {
  uuid: string
  /** The folder of the table, as readers find it. */
  location: string
  evolved: EvolvedSchema
  spec: PartitionSpec
  properties: Readonly<Record<string, string>>
}

export function newTable({ uuid, location, evolved, spec, properties }: NewTable): TableMetadata {
  return {
    'format-version': 2,
    'table-uuid': uuid,
    location,
    'last-sequence-number': 0,
    'last-updated-ms': 0,
    'last-column-id': evolved.lastColumnId,
    'current-schema-id': evolved.schema['schema-id'],
    schemas: [evolved.schema],
    'default-spec-id': spec['spec-id'],
    'partition-specs': [spec],
    'last-partition-id': Math.max(NO_PARTITION_ID, ...spec.fields.map(field => field['field-id'])),
    'default-sort-order-id': 0,
    'sort-orders': [{ 'order-id': 0, fields: [] }],
    properties,
    'current-snapshot-id': NO_SNAPSHOT,
    refs: {},
    snapshots: [],
    'snapshot-log': [],
    'metadata-log': [],
  }
}

export interface MetadataChange {
  /** The highest publication number that is taken. Default: that of the table. */
  number?: number | undefined
  at: number
  /** The address of the metadata that this one replaces; undefined when no earlier metadata stays. */
  replaces: string | undefined
}

export interface TableExpiry extends MetadataChange {
  /** The snapshots that stay, apart from the current one. */
  kept: ReadonlySet<number>
  properties: Readonly<Record<string, string>>
}

export interface TableCommit extends Omit<TableExpiry, 'number' | 'at'> {
  snapshot: TableSnapshot
  evolved: EvolvedSchema
}

export function afterCommit(
  table: TableMetadata,
  { snapshot, evolved, ...expiry }: TableCommit,
): TableMetadata {
  const { 'snapshot-id': id, 'sequence-number': number, 'timestamp-ms': at } = snapshot
  const committed: TableMetadata = {
    ...table,
    'last-column-id': evolved.lastColumnId,
    'current-schema-id': evolved.schema['schema-id'],
    schemas: withSchema(table.schemas, evolved.schema),
    'current-snapshot-id': id,
    snapshots: [...table.snapshots, snapshot],
    'snapshot-log': [...table['snapshot-log'], { 'timestamp-ms': at, 'snapshot-id': id }],
  }
  return afterExpiry(committed, { ...expiry, number, at })
}

/** The metadata after all but the current and the kept snapshots have expired. The rows stay. */
export function afterExpiry(
  table: TableMetadata,
  { kept, properties, ...change }: TableExpiry,
): TableMetadata {
  const expired = { ...nextMetadata(table, change), properties: { ...table.properties, ...properties } }
  return withSnapshots(expired, kept)
}

/** How many earlier metadata files stay, as readers may just be using them. */
const EARLIER_METADATA = 5

/** New metadata with the same rows and snapshots. */
export function nextMetadata(
  table: TableMetadata,
  { number = table['last-sequence-number'], at, replaces }: MetadataChange,
): TableMetadata {
  const { 'metadata-log': log, 'last-updated-ms': last } = table
  const earlier = replaces === undefined ? [] : [...log, { 'timestamp-ms': last, 'metadata-file': replaces }]
  return {
    ...table,
    'last-sequence-number': number,
    'last-updated-ms': nextInstant(table, at),
    'metadata-log': earlier.slice(-EARLIER_METADATA),
  }
}

function withSnapshots(table: TableMetadata, ids: ReadonlySet<number>): TableMetadata {
  const current = table['current-snapshot-id']
  const isKept = (id: number) => id === current || ids.has(id)
  const kept = table.snapshots.filter(one => isKept(one['snapshot-id']))
  const log = table['snapshot-log']
  return {
    ...table,
    refs: Object.fromEntries([
      ['main', { 'snapshot-id': current, type: 'branch' }],
      ...kept.map(one => [tagOf(one['snapshot-id']), { 'snapshot-id': one['snapshot-id'], type: 'tag' }]),
    ]),
    snapshots: kept.map(one => withoutLostParent(one, isKept)),
    // By the specification, entries before that of an expired snapshot would be wrong.
    'snapshot-log': log.slice(log.findLastIndex(entry => !isKept(entry['snapshot-id'])) + 1),
  }
}

/** The instant for the next metadata, never before the last one: readers refuse that, and a clock may be set back. */
export const nextInstant = (table: TableMetadata, now: number): number =>
  Math.max(now, table['last-updated-ms'])

/** The tag of the snapshot that a publication added. */
const tagOf = (publication: number): string => `publication-${publication}`

function withSchema(schemas: readonly IcebergSchema[], schema: IcebergSchema): readonly IcebergSchema[] {
  return schemas.some(one => one['schema-id'] === schema['schema-id']) ? schemas : [...schemas, schema]
}

function withoutLostParent(snapshot: TableSnapshot, isKept: (id: number) => boolean): TableSnapshot {
  const { 'parent-snapshot-id': parent, ...rest } = snapshot
  return parent === undefined || isKept(parent) ? snapshot : rest
}

export function currentSnapshot(table: TableMetadata): TableSnapshot | undefined {
  return table.snapshots.find(one => one['snapshot-id'] === table['current-snapshot-id'])
}
