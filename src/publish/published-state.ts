import { EXIT_STATUS, errorCode, StopError } from '../base/errors.ts'
import { shellWord } from '../base/safe-text.ts'
import type { Partition } from '../export/partitions.ts'
import { type DataFile, decodeManifest, decodeManifestList } from './iceberg/manifest.ts'
import { currentSnapshot, type TableMetadata } from './iceberg/metadata.ts'
import { inParallel } from './in-parallel.ts'
import {
  folderOfFile,
  isHinted,
  metadataPath,
  metadataVersion,
  parsed,
  readMetadata,
  type TableVersion,
} from './metadata-file.ts'
import { readDecoded, type TargetReader } from './storage/target-reader.ts'

/** What a target holds. */
export interface PublishedTarget {
  /** The paths of all objects of the target. */
  paths: readonly string[]
  /** The tables, by their folders. */
  tables: ReadonlyMap<string, PublishedState>
}

/** What a target holds of one table. */
export interface PublishedState extends TableVersion {
  /** Whether `version-hint.text` names this version. */
  isHinted: boolean
  /** The live files, in the order of their parts. */
  parts: readonly PublishedPart[]
}

export interface PublishedPart {
  /** Each part is one file. */
  part: Partition
  digest: string
  /** The checksum of the file's bytes. */
  checksum: string
  file: DataFile
  /** The file is not in the target, so the part has to be written again. */
  isMissing: boolean
}

/** The property in which a table keeps the digests of its parts, in the order of the parts. */
export const PARTS_PROPERTY = 'parley.parts'

/** An entry of `PARTS_PROPERTY`. */
export type PartNote = readonly [part: Partition, digest: string, file: string, checksum: string]

/** How many tables are read at a time. */
const MOST_READS = 32

/**
 * @throws StopError (exit status 64) when the tables were published for another location, 73 when the target is damaged
 */
export async function readTarget(storage: TargetReader): Promise<PublishedTarget> {
  const paths = await storage.list('')
  const versions = new Map<string, number>()
  for (const path of paths) {
    const [folder, version] = [folderOfFile(path), metadataVersion(path)]
    if (version !== undefined) versions.set(folder, Math.max(versions.get(folder) ?? 0, version))
  }
  const present = new Set(paths)
  const tables = await inParallel(versions, MOST_READS, async ([folder, version]) => {
    return [folder, await readTable(storage, { folder, version, present })] as const
  })
  return { paths, tables: new Map(tables) }
}

async function readTable(
  storage: TargetReader,
  { folder, version, present }: { folder: string; version: number; present: ReadonlySet<string> },
): Promise<PublishedState> {
  try {
    const path = metadataPath(folder, version)
    const [read, hinted] = await Promise.all([
      readMetadata(storage, path),
      isHinted(storage, folder, version),
    ])
    if (read === undefined) throw new Error(`${path} is missing`)
    const { metadata } = read
    if (metadata.location !== `${storage.location}/${folder}`) throw elsewhere(storage, metadata, folder)
    return { folder, metadata, version, parts: await readParts(storage, metadata, present), isHinted: hinted }
  } catch (error) {
    throw damaged(storage, folder, error)
  }
}

async function readParts(
  storage: TargetReader,
  metadata: TableMetadata,
  present: ReadonlySet<string>,
): Promise<PublishedPart[]> {
  const snapshot = currentSnapshot(metadata)
  // The first publication has begun, and is not complete.
  if (metadata.snapshots.length === 0) return []
  if (snapshot === undefined) throw new Error('The current snapshot is missing')
  const { files } = await readSnapshotFiles(storage, snapshot['manifest-list'])
  const byPath = new Map(files.map(file => [file.path, file]))
  return partNotes(metadata).map(([part, digest, path, checksum]) => {
    const file = byPath.get(path)
    if (file === undefined) throw new Error(`${path} is in no manifest`)
    return { part, digest, checksum, file, isMissing: !present.has(pathIn(storage, path)) }
  })
}

/** What the metadata notes about the files of its current snapshot. @throws Error when the note is damaged */
export const partNotes = ({ properties }: Pick<TableMetadata, 'properties'>): readonly PartNote[] =>
  parsed<readonly PartNote[]>(properties[PARTS_PROPERTY] ?? '', PARTS_PROPERTY)

export interface SnapshotFiles {
  /** The addresses of the manifests, as readers find them. */
  manifests: readonly string[]
  files: readonly DataFile[]
}

/** @throws Error when a file is missing or cannot be decoded */
export async function readSnapshotFiles(storage: TargetReader, manifestList: string): Promise<SnapshotFiles> {
  const listed = await decoded(storage, pathIn(storage, manifestList), decodeManifestList)
  const files = await Promise.all(
    listed.map(({ path, bytes: size }) =>
      decoded(storage, pathIn(storage, path), bytes => {
        if (bytes.length !== size) throw new Error(`${path} has ${bytes.length} bytes instead of ${size}`)
        return decodeManifest(bytes)
      }),
    ),
  )
  return { manifests: listed.map(({ path }) => path), files: files.flat() }
}

async function decoded<Value>(
  storage: TargetReader,
  path: string,
  decode: (bytes: Buffer) => Value | Promise<Value>,
): Promise<Value> {
  const value = await readDecoded(storage, path, decode)
  if (value === undefined) throw new Error(`${path} is missing`)
  return value
}

/** The path in the target of a file that metadata names by its address. */
export function pathIn({ location }: Pick<TargetReader, 'location'>, address: string): string {
  if (address.startsWith(`${location}/`)) return address.slice(location.length + 1)
  throw new Error(`${address} is not below ${location}`)
}

function elsewhere({ name, location }: TargetReader, metadata: TableMetadata, folder: string): StopError {
  const earlier = metadata.location.slice(0, -folder.length - 1)
  return new StopError(`The tables in ${name} name their files below ${earlier}, not ${location}`, {
    code: 'publish-location',
    hint: `Iceberg tables cannot move: readers would look for files at the earlier place. Add --location ${shellWord(earlier)} if it is still right, or publish to an empty folder or prefix. Nothing was changed.`,
    exitStatus: EXIT_STATUS.usage,
  })
}

/** The StopError for a damaged table. A cause with a code, such as a missing permission, is returned unchanged. */
export function damaged({ name }: Pick<TargetReader, 'name'>, folder: string, cause: unknown): unknown {
  if (errorCode(cause) !== undefined) return cause
  const reason = cause instanceof Error ? cause.message : String(cause)
  return new StopError(`The table ${folder} in ${name} is damaged: ${reason}`, {
    code: 'publish-damaged',
    hint: 'Publish to an empty folder or prefix, or restore the files.',
    cause,
    exitStatus: EXIT_STATUS.databaseUnavailable,
  })
}
