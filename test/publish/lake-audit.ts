import { asyncBufferFromFile, parquetMetadataAsync } from 'hyparquet'
import { avroMetadata, avroRead } from 'icebird'
import { expect } from 'vitest'
import type { TableMetadata, TableSnapshot } from '../../src/publish/iceberg/metadata.ts'
import {
  asOf,
  bytesAt,
  entriesOf,
  fieldsOf,
  type LakeEntry,
  metadataOf,
  objectsIn,
  placeOf,
} from './lake-reader.ts'
import { filesIn, type Lake } from './publishing.ts'

/** Checks a complete target by the rules of Iceberg's specification, format version 2. */
export async function auditLake(lake: Lake, tables = tablesIn(lake)): Promise<void> {
  const named = new Set<string>()
  for (const table of tables) for (const path of await auditTable(lake, table)) named.add(path)
  const present = filesIn(lake.folder).filter(path => tables.includes(tableOf(path)))
  expect(present, 'no file lies around').toEqual([...named].toSorted())
}

const tableOf = (path: string): string => path.split('/')[0] ?? ''

const tablesIn = ({ folder }: Lake): string[] => [...new Set(filesIn(folder).map(tableOf))]

/** Returns the paths of all files that the table needs. */
async function auditTable(lake: Lake, table: string): Promise<string[]> {
  const metadata = await metadataOf(lake, table)
  const version = bytesAt(lake, `${lake.url}/${table}/metadata/version-hint.text`).toString()
  auditMetadata(metadata)
  const addresses = [
    `${lake.url}/${table}/metadata/version-hint.text`,
    `${lake.url}/${table}/metadata/v${version}.metadata.json`,
    ...metadata['metadata-log'].map(entry => entry['metadata-file']),
  ]
  for (const snapshot of metadata.snapshots)
    addresses.push(...(await auditSnapshot(lake, metadata, snapshot)))
  return [...new Set(addresses)].map(address => {
    expect(bytesAt(lake, address).length, address).toBeGreaterThan(0)
    return address.slice(lake.url.length + 1)
  })
}

function auditMetadata(metadata: TableMetadata): void {
  const { snapshots, refs, location } = metadata
  const ids = snapshots.map(one => one['snapshot-id'])
  const current = metadata['current-snapshot-id']
  expect(metadata['format-version']).toBe(2)
  expect(ids.at(-1), location).toBe(current)
  expect(metadata['last-sequence-number']).toBe(snapshots.at(-1)?.['sequence-number'])
  isAscending(snapshots.map(one => one['sequence-number']))
  isAscending(
    snapshots.map(one => one['timestamp-ms']),
    { allowsEqual: true },
  )
  for (const { 'parent-snapshot-id': parent, 'snapshot-id': id } of snapshots)
    if (parent !== undefined) expect(ids.indexOf(parent), location).toBe(ids.indexOf(id) - 1)
  const tags = ids.map(id => [`publication-${id}`, { 'snapshot-id': id, type: 'tag' }])
  expect(refs).toEqual(Object.fromEntries([['main', { 'snapshot-id': current, type: 'branch' }], ...tags]))
  const log = metadata['snapshot-log']
  expect(log.at(-1)?.['snapshot-id']).toBe(current)
  expect(ids, location).toEqual(expect.arrayContaining(log.map(entry => entry['snapshot-id'])))
  isAscending(
    log.map(entry => entry['timestamp-ms']),
    { allowsEqual: true },
  )
  isAscending(
    [...metadata['metadata-log'].map(entry => entry['timestamp-ms']), metadata['last-updated-ms']],
    {
      allowsEqual: true,
    },
  )
  auditSchemas(metadata)
}

function auditSchemas({ schemas, 'last-column-id': last, snapshots }: TableMetadata): void {
  const types = new Map<number, string>()
  for (const { fields } of schemas) {
    expect(new Set(fields.map(({ id }) => id)).size).toBe(fields.length)
    for (const { id, type, required } of fields) {
      expect(required).toBe(false)
      expect(id).toBeLessThanOrEqual(last)
      expect(types.get(id) ?? type, 'an id keeps its type').toBe(type)
      types.set(id, type)
    }
  }
  const ids = schemas.map(schema => schema['schema-id'])
  expect(new Set(ids).size).toBe(ids.length)
  for (const snapshot of snapshots) expect(ids).toContain(snapshot['schema-id'])
}

function isAscending(values: readonly number[], { allowsEqual = false } = {}): void {
  for (const [place, value] of values.entries()) {
    const before = values[place - 1] ?? Number.NEGATIVE_INFINITY
    expect(allowsEqual ? value >= before : value > before, values.join(', ')).toBe(true)
  }
}

async function auditSnapshot(
  lake: Lake,
  metadata: TableMetadata,
  snapshot: TableSnapshot,
): Promise<string[]> {
  const [listed, ...others] = avroRecords(bytesAt(lake, snapshot['manifest-list']))
  expect(others).toEqual([])
  const manifest = String(listed?.['manifest_path'])
  expect(Number(listed?.['manifest_length'])).toBe(bytesAt(lake, manifest).length)
  const at = asOf(metadata, snapshot['snapshot-id'])
  const entries = await entriesOf(at)
  auditList(listed ?? {}, snapshot, entries)
  expect(snapshot.summary['total-data-files']).toBe(String(entries.length))
  for (const entry of entries) await auditFile(lake, at, entry)
  return [snapshot['manifest-list'], manifest, ...entries.map(({ data_file }) => data_file.file_path)]
}

function avroRecords(bytes: Buffer): Record<string, unknown>[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  const reader = { view, offset: 0 }
  return avroRead({ reader, ...avroMetadata(reader) })
}

function auditList(
  listed: Record<string, unknown>,
  snapshot: TableSnapshot,
  entries: readonly LakeEntry[],
): void {
  const id = BigInt(snapshot['snapshot-id'])
  const rows = (of: readonly LakeEntry[]) =>
    of.reduce((sum, { data_file }) => sum + data_file.record_count, 0n)
  const added = entries.filter(({ status }) => status === 1)
  const existing = entries.filter(({ status }) => status === 0)
  for (const { snapshot_id, status, sequence_number: sequence } of entries) {
    expect(snapshot_id === id).toBe(status === 1)
    expect(sequence).toBe(snapshot_id)
  }
  expect(listed).toMatchObject({
    content: 0,
    added_snapshot_id: id,
    sequence_number: BigInt(snapshot['sequence-number']),
    min_sequence_number: [id, ...entries.map(entry => entry.sequence_number)].reduce((least, one) =>
      one < least ? one : least,
    ),
    added_files_count: added.length,
    existing_files_count: existing.length,
    deleted_files_count: 0,
    added_rows_count: rows(added),
    existing_rows_count: rows(existing),
    deleted_rows_count: 0n,
  })
  expect(snapshot.summary['total-records']).toBe(String(rows(entries)))
}

async function auditFile(lake: Lake, metadata: TableMetadata, { data_file: of }: LakeEntry): Promise<void> {
  expect(bytesAt(lake, of.file_path).length).toBe(Number(of.file_size_in_bytes))
  const file = await asyncBufferFromFile(placeOf(lake, of.file_path))
  const { schema } = await parquetMetadataAsync(file)
  const rows = await objectsIn(file)
  expect(rows.length).toBe(Number(of.record_count))
  const [, ...elements] = schema
  const known = metadata.schemas.flatMap(({ fields }) => fields)
  for (const { field_id, name } of elements)
    expect(known.find(({ id }) => id === field_id)?.name, of.file_path).toBe(name)
  const counts = (list: LakeEntry['data_file']['value_counts']) =>
    new Map(list.map(({ key, value }) => [key, Number(value)]))
  const expected = fieldsOf(metadata).map(({ id }) => {
    const name = elements.find(element => element.field_id === id)?.name
    return {
      id,
      nulls: rows.filter(row => name === undefined || row[name] == null).length,
      has: name !== undefined,
    }
  })
  const present = expected.filter(({ has }) => has)
  expect(counts(of.null_value_counts)).toEqual(new Map(present.map(({ id, nulls }) => [id, nulls])))
  expect(counts(of.value_counts)).toEqual(new Map(present.map(({ id }) => [id, rows.length])))
  auditPartition(metadata, of, rows)
}

function auditPartition(
  metadata: TableMetadata,
  { partition }: LakeEntry['data_file'],
  rows: readonly Record<string, unknown>[],
): void {
  const [field, ...others] = metadata['partition-specs'][0]?.fields ?? []
  expect(others).toEqual([])
  if (!field) return void expect(partition).toEqual({})
  const source = fieldsOf(metadata).find(({ id }) => id === field['source-id'])?.name ?? ''
  const value = Object.values(partition)[0] ?? null
  for (const { [source]: cell } of rows) {
    const month = cell instanceof Date ? (cell.getUTCFullYear() - 1970) * 12 + cell.getUTCMonth() : cell
    expect(month ?? null, source).toBe(value)
  }
}
