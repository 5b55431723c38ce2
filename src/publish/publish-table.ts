import { randomUUID } from 'node:crypto'
import type { Clock } from '../base/clock.ts'
import { EXIT_STATUS, StopError } from '../base/errors.ts'
import { createFingerprint, type Mark } from '../export/fingerprint.ts'
import { createParquetFile, fileChecksum } from '../export/parquet-file.ts'
import {
  nextTurn,
  type Partition,
  type PartitionReading,
  readPartitions,
  type Sink,
} from '../export/partitions.ts'
import type { Sqlite } from '../store/database/sqlite-types.ts'
import type { PartsToCompare } from './comparison.ts'
import {
  type EvolvedSchema,
  evolvedSchema,
  ICEBERG_PARQUET_TYPES,
  type PartitionSpec,
  partitionSpec,
  partitionValue,
} from './iceberg/iceberg-schema.ts'
import { type DataFile, encodeManifest, encodeManifestList } from './iceberg/manifest.ts'
import {
  afterCommit,
  currentSnapshot,
  newTable,
  nextInstant,
  type TableSnapshot,
} from './iceberg/metadata.ts'
import { metadataAddress, metadataFolder, type TableVersion, writeMetadata } from './metadata-file.ts'
import { PARTS_PROPERTY, type PartNote, type PublishedPart, type PublishedState } from './published-state.ts'
import { type PublishedTable, TABLE_PROPERTY } from './published-tables.ts'
import type { PartReader } from './row-ranges.ts'
import type { Storage } from './storage/storage.ts'
import { ERASED_PROPERTY } from './unneeded-files.ts'

/**
 * Publishes one table. Its rows are divided into parts, months or ranges of keys, each of which is one data file. Only
 * parts whose digest differs are written. The commit creates one file, `vK.metadata.json`, which exists completely or
 * not at all; until then readers see the earlier rows.
 */

export interface TablePublishing extends PartitionReading {
  db: Sqlite
  storage: Storage
  clock: Clock
  publication: number
  createdBy: string
  /** The earlier snapshots of the table that stay. */
  kept: ReadonlySet<number>
  /** When content of the warehouse was last purged; empty when it never was. */
  purgedAt: string
  toCompare: PartsToCompare
  /** Properties of the table, and of the snapshot. */
  properties: Readonly<Record<string, string>>
  /** Properties of the table alone: large ones, since each kept snapshot would repeat them. */
  tableProperties: Readonly<Record<string, string>>
}

/** `publish --json` prints it, without the metadata. */
export interface TablePublication extends TableVersion {
  /** The name of the table in the warehouse. */
  table: string
  /** The snapshot that readers of this publication see. */
  snapshotId: number
  rows: number
  bytes: number
  files: number
  filesWritten: number
  rowsWritten: number
  bytesWritten: number
}

/** A table whose files are written. In a target that is not a folder, they may still be uploading. */
export interface WrittenTable {
  bytesWritten: number
  /** Whether `version-hint.text` names the version that `commit` returns. */
  isHinted: boolean
  /** Commits the files, so that readers see them, as soon as `turn` has resolved. @throws the error of `turn` */
  commit(turn: Promise<unknown>): Promise<TablePublication>
}

export async function writeTable(
  work: TablePublishing,
  table: PublishedTable,
  before: PublishedState | undefined,
): Promise<WrittenTable> {
  // Signals only arrive between two turns of the event loop.
  await nextTurn()
  if (work.signal.aborted) throw work.signal.reason
  const evolved = evolve(table, before)
  const spec = partitionSpec(evolved.schema, table.partition)
  const writing: TableWriting = { ...work, table, evolved, spec }
  const parts = before ? await changedParts(writing, before) : await allParts(writing)
  const written = parts.filter(({ file }) => file.addedBy === work.publication)
  const bytesWritten = byteCount(written)
  if (before && !hasChanged(before, parts, evolved))
    return {
      bytesWritten,
      isHinted: before.isHinted,
      async commit(turn) {
        await turn
        return publicationOf(table, before, parts, [])
      },
    }
  return {
    bytesWritten,
    isHinted: false,
    commit: async turn =>
      publicationOf(table, await commit(writing, { before, parts }, turn), parts, written),
  }
}

/** The schema of the table. Columns of the target keep their field ids. */
export function evolve({ written }: PublishedTable, before: PublishedState | undefined): EvolvedSchema {
  return evolvedSchema(
    written.columns,
    before?.metadata.schemas ?? [],
    before?.metadata['last-column-id'] ?? 0,
  )
}

function hasChanged(
  { parts, metadata }: PublishedState,
  now: readonly PublishedPart[],
  { schema }: EvolvedSchema,
): boolean {
  const isSame =
    now.length === parts.length && now.every(({ file }, place) => file.path === parts[place]?.file.path)
  return !isSame || metadata['current-schema-id'] !== schema['schema-id']
}

interface TableWriting extends TablePublishing {
  table: PublishedTable
  evolved: EvolvedSchema
  spec: PartitionSpec
}

/** Writes every part of a table that was never published. */
async function allParts(writing: TableWriting): Promise<PublishedPart[]> {
  const reader = writing.table.reader(writing.db, [])
  return [...(await readPartitions(writing, reader.rows('all'), part => fileSink(writing, part))).values()]
}

/** Writes the parts that differ from the target. */
async function changedParts(
  writing: TableWriting,
  { metadata, parts: known }: PublishedState,
): Promise<readonly PublishedPart[]> {
  const { db, table, evolved } = writing
  const reader = table.reader(
    db,
    known.map(({ part }) => part),
  )
  const isSameSchema = metadata['current-schema-id'] === evolved.schema['schema-id']
  const toCompare = isSameSchema ? writing.toCompare : 'all'
  const compared = await compareParts(writing, { reader, known, toCompare })
  const names = compared.map(({ part }) => part)
  const now: PublishedPart[] = []
  for (const one of compared)
    now.push(one.same ?? (await writePart(writing, reader, { part: one.part, names, mark: one.mark })))
  return now
}

/**
 * A part of the table in the warehouse. `same`: the published part, if its rows are equal. `mark`: the digest to
 * publish.
 */
type ComparedPart =
  | { part: Partition; same: PublishedPart }
  | { part: Partition; same: undefined; mark: Mark }

/**
 * Compares the digests of the parts in `toCompare`. Other parts count as the same.
 * @returns all parts that have rows, in their order
 */
async function compareParts(
  writing: TableWriting,
  {
    reader,
    known,
    toCompare,
  }: { reader: PartReader; known: readonly PublishedPart[]; toCompare: PartsToCompare },
): Promise<readonly ComparedPart[]> {
  // The rows of a part whose file is missing have to be written again.
  const isComplete = !known.some(({ isMissing }) => isMissing)
  const parts = toCompare === 'all' || !isComplete ? 'all' : reader.noted(toCompare)
  if (parts.length === 0) return known.map(same => ({ part: same.part, same }))
  const { columns } = writing.table.read
  const marks = await readPartitions(writing, reader.rows(parts), () => createFingerprint(columns))
  const kept = parts === 'all' ? [] : known.filter(({ part }) => !parts.includes(part))
  const earlier = new Map(known.map(one => [one.part, one]))
  const compared = [...marks].map(([part, mark]): ComparedPart => {
    const before = earlier.get(part)
    const isSame = before?.digest === mark.fingerprint && !before.isMissing
    return isSame ? { part, same: before } : { part, same: undefined, mark }
  })
  return [...kept.map(same => ({ part: same.part, same })), ...compared].toSorted((one, other) =>
    reader.compare(one.part, other.part),
  )
}

async function writePart(
  writing: TableWriting,
  reader: PartReader,
  { part, names, mark }: { part: Partition; names: readonly Partition[]; mark: Mark },
): Promise<PublishedPart> {
  const rows = reader.of(part, names)
  const written = (await readPartitions(writing, rows, () => fileSink(writing, part))).get(part)
  // A view may depend on the clock. In a table of one part, no row can be lost between two parts.
  if (written && (written.digest === mark.fingerprint || names.length === 1)) return written
  throw new StopError(`A part of ${writing.table.read.name} was read twice with different rows`, {
    code: 'publish-unstable',
    hint: 'This is a fault of parley. The target still has the earlier rows.',
    exitStatus: EXIT_STATUS.fault,
  })
}

/**
 * Writes a part to a new file. The name has the number of the publication and is never used again, so a file of an
 * interrupted publication stays unreferenced.
 */
function fileSink(writing: TableWriting, part: Partition): Sink<PublishedPart> {
  const { storage, table, evolved, publication, createdBy } = writing
  const { read, written, partition } = table
  const name = `${read.folder}/data/${publication}-${randomUUID()}.parquet`
  const fieldIds = evolved.schema.fields.map(({ id }) => id)
  const upload = storage.beginFile(name)
  const file = createParquetFile({
    file: upload.file,
    table: written,
    digested: read.columns,
    createdBy,
    types: ICEBERG_PARQUET_TYPES,
    fieldIds,
  })
  return {
    add: written === read ? file.add : cells => file.add([...cells, part]),
    finish() {
      const { rows, bytes, nulls, fingerprint: digest, sha256 } = file.finish()
      const dataFile: DataFile = {
        path: `${storage.location}/${name}`,
        partition: partition && partitionValue(part, partition.transform),
        rows,
        bytes,
        nulls: new Map(fieldIds.map((id, place) => [id, nulls[place] ?? 0])),
        addedBy: publication,
      }
      upload.end({ bytes, sha256 })
      return { part, digest, checksum: fileChecksum(sha256), file: dataFile, isMissing: false }
    },
    abandon: upload.abandon,
  }
}

async function commit(
  writing: TableWriting,
  { before, parts }: { before: PublishedState | undefined; parts: readonly PublishedPart[] },
  turn: Promise<unknown>,
): Promise<TableVersion> {
  const { storage, kept, evolved, spec, table, properties, tableProperties, purgedAt } = writing
  const { folder } = table.read
  const base =
    before?.metadata ??
    newTable({
      uuid: randomUUID(),
      location: `${storage.location}/${folder}`,
      evolved,
      spec,
      properties: { [ERASED_PROPERTY]: purgedAt },
    })
  const files = parts.map(({ file }) => file)
  const parent = before && currentSnapshot(before.metadata)?.['snapshot-id']
  const [manifestList] = await Promise.all([writeManifests(writing, files, parent), storage.uploaded()])
  const notes: PartNote[] = parts.map(({ part, digest, checksum, file }) => [
    part,
    digest,
    file.path,
    checksum,
  ])
  const metadata = afterCommit(base, {
    snapshot: snapshotOf(writing, {
      files,
      manifestList,
      parent,
      at: nextInstant(base, writing.clock.now()),
    }),
    evolved,
    properties: {
      ...properties,
      ...tableProperties,
      [TABLE_PROPERTY]: table.read.name,
      [PARTS_PROPERTY]: JSON.stringify(notes),
    },
    kept,
    replaces: before && metadataAddress(storage, folder, before.version),
  })
  const committed = { folder, metadata, version: (before?.version ?? 0) + 1 }
  await turn
  await writeMetadata(storage, committed)
  return committed
}

/** @returns the address of the manifest list */
async function writeManifests(
  { storage, table, evolved, spec, publication }: TableWriting,
  files: readonly DataFile[],
  parent: number | undefined,
): Promise<string> {
  const { folder } = table.read
  const named = (name: string) => `${metadataFolder(folder)}/${publication}-${randomUUID()}-${name}.avro`
  const context = { schema: evolved.schema, spec, snapshotId: publication }
  const manifest = await encodeManifest(files, context)
  const [manifestPath, listPath] = [named('manifest'), named('snapshot')]
  const listed = { path: `${storage.location}/${manifestPath}`, bytes: manifest.length }
  const list = await encodeManifestList(listed, files, context, parent)
  await Promise.all([storage.write(manifestPath, manifest), storage.write(listPath, list)])
  return `${storage.location}/${listPath}`
}

function snapshotOf(
  { publication, properties, evolved }: TableWriting,
  {
    files,
    manifestList,
    parent,
    at,
  }: { files: readonly DataFile[]; manifestList: string; parent: number | undefined; at: number },
): TableSnapshot {
  const rows = files.reduce((sum, file) => sum + file.rows, 0)
  return {
    'snapshot-id': publication,
    ...(parent !== undefined && { 'parent-snapshot-id': parent }),
    'sequence-number': publication,
    'timestamp-ms': at,
    'manifest-list': manifestList,
    summary: {
      operation: 'overwrite',
      'total-records': String(rows),
      'total-data-files': String(files.length),
      ...properties,
    },
    'schema-id': evolved.schema['schema-id'],
  }
}

function publicationOf(
  { read }: PublishedTable,
  { folder, metadata, version }: TableVersion,
  parts: readonly PublishedPart[],
  written: readonly PublishedPart[],
): TablePublication {
  return {
    table: read.name,
    folder,
    metadata,
    version,
    snapshotId: metadata['current-snapshot-id'],
    rows: rowCount(parts),
    bytes: byteCount(parts),
    files: parts.length,
    filesWritten: written.length,
    rowsWritten: rowCount(written),
    bytesWritten: byteCount(written),
  }
}

const rowCount = (parts: readonly PublishedPart[]): number =>
  parts.reduce((total, { file }) => total + file.rows, 0)

const byteCount = (parts: readonly PublishedPart[]): number =>
  parts.reduce((total, { file }) => total + file.bytes, 0)
