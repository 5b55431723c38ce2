import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { type AsyncBuffer, asyncBufferFromFile, parquetMetadataAsync, parquetReadObjects } from 'hyparquet'
import { icebergManifests, icebergMetadata, icebergRead } from 'icebird'
import type { TableMetadata } from '../../src/publish/iceberg/metadata.ts'
import type { PublicationRow } from '../../src/publish/publications.ts'
import type { Lake } from './publishing.ts'

/** Reads a target as others do: icebird finds the files and reads them; hyparquet reads them by field id. */

export type LakeCell = string | number | bigint | boolean | null
export type LakeRow = Readonly<Record<string, LakeCell>>

/** An entry of a manifest, as icebird decodes it. */
export interface LakeEntry {
  status: number
  snapshot_id: bigint
  sequence_number: bigint
  file_sequence_number: bigint
  data_file: {
    content: number
    file_path: string
    file_format: string
    partition: Readonly<Record<string, number | string | undefined>>
    record_count: bigint
    file_size_in_bytes: bigint
    value_counts: readonly { key: number; value: bigint }[]
    null_value_counts: readonly { key: number; value: bigint }[]
  }
}

type IcebirdMetadata = Awaited<ReturnType<typeof icebergMetadata>>

/** The metadata that `version-hint.text` names. */
export async function metadataOf({ url }: Lake, table: string): Promise<TableMetadata> {
  return (await icebergMetadata({ tableUrl: `${url}/${table}` })) as unknown as TableMetadata
}

/** The metadata as if a snapshot were the current one, with its schema. */
export function asOf(metadata: TableMetadata, snapshotId: number): TableMetadata {
  const snapshot = metadata.snapshots.find(one => one['snapshot-id'] === snapshotId)
  if (!snapshot) throw new Error(`Snapshot ${snapshotId} of ${metadata.location} is gone`)
  return { ...metadata, 'current-snapshot-id': snapshotId, 'current-schema-id': snapshot['schema-id'] }
}

export async function entriesOf(metadata: TableMetadata): Promise<LakeEntry[]> {
  const manifests = await icebergManifests(metadata as unknown as IcebirdMetadata)
  return manifests.flatMap(({ entries }) => entries) as unknown as LakeEntry[]
}

export const fieldsOf = (metadata: TableMetadata) => {
  const schema = metadata.schemas.find(one => one['schema-id'] === metadata['current-schema-id'])
  if (!schema) throw new Error(`${metadata.location} has no current schema`)
  return schema.fields
}

/** Where a file of the target is on this machine. */
export function placeOf({ folder, url }: Lake, address: string): string {
  if (!address.startsWith(`${url}/`)) throw new Error(`${address} is outside the target`)
  return join(folder, address.slice(url.length + 1))
}

/** The rows of a Parquet file. */
export const objectsIn = (file: AsyncBuffer) =>
  parquetReadObjects({ file, compressors: { GZIP: page => gunzipSync(page) } })

/** The rows of a table by the ids of its fields; those of a snapshot where one is given. */
export async function rowsOf(lake: Lake, table: string, snapshotId?: number): Promise<LakeRow[]> {
  const newest = await metadataOf(lake, table)
  const metadata = snapshotId === undefined ? newest : asOf(newest, snapshotId)
  const rows: LakeRow[] = []
  for (const { data_file } of await entriesOf(metadata)) {
    const file = await asyncBufferFromFile(placeOf(lake, data_file.file_path))
    const { schema } = await parquetMetadataAsync(file)
    const names = new Map(schema.map(({ field_id, name }) => [field_id, name]))
    for (const row of await objectsIn(file)) {
      rows.push(
        Object.fromEntries(
          fieldsOf(metadata).map(({ id, name, type }) => [name, plain(row[names.get(id) ?? ''], type)]),
        ),
      )
    }
  }
  return rows
}

/** The rows of a table as icebird reads them. It looks for files by plain column names only. */
export async function rowsByIcebird(lake: Lake, table: string): Promise<LakeRow[]> {
  const metadata = await metadataOf(lake, table)
  if ((await entriesOf(metadata)).length === 0) return []
  const types = new Map(fieldsOf(metadata).map(({ name, type }) => [name, type]))
  const rows = await icebergRead({ tableUrl: `${lake.url}/${table}` })
  return rows.map(row =>
    Object.fromEntries(Object.entries(row).map(([name, cell]) => [name, plain(cell, types.get(name))])),
  )
}

export const hasPlainNames = (metadata: TableMetadata): boolean =>
  fieldsOf(metadata).every(({ name }) => /^[A-Za-z_]\w*$/.test(name))

function plain(cell: unknown, type: string | undefined): LakeCell {
  if (cell == null) return null
  if (cell instanceof Date) return type === 'date' ? cell.toISOString().slice(0, 10) : cell.toISOString()
  if (['string', 'number', 'bigint', 'boolean'].includes(typeof cell)) return cell as LakeCell
  throw new Error(`A reader gives a value of an unexpected kind: ${String(cell)}`)
}

/** The rows of the table `publications`, earliest first. */
export async function publicationsIn(lake: Lake): Promise<PublicationRow[]> {
  const rows = await rowsByIcebird(lake, 'publications')
  return rows
    .map(({ publication, snapshots, ...row }) => ({
      ...(row as unknown as PublicationRow),
      publication: Number(publication),
      snapshots: JSON.parse(String(snapshots)),
    }))
    .toSorted((one, other) => one.publication - other.publication)
}

/** The files with the live rows of a table, as paths in the target. */
export async function liveFiles(lake: Lake, table: string): Promise<string[]> {
  const entries = await entriesOf(await metadataOf(lake, table))
  return entries.map(({ data_file }) => data_file.file_path.slice(lake.url.length + 1))
}

export const bytesAt = (lake: Lake, address: string): Buffer => readFileSync(placeOf(lake, address))
