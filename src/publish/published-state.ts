import { EXIT_STATUS, StopError } from '../errors.ts'
import { type DataFile, decodeManifest, decodeManifestList } from './iceberg/manifest.ts'
import { currentSnapshot, type TableMetadata } from './iceberg/metadata.ts'
import type { Storage } from './storage/storage.ts'

/** What a target holds of one table. */
export interface PublishedState {
  metadata: TableMetadata
  /** The version of the metadata: K of `vK.metadata.json`. */
  version: number
  /** The live files, in the order of their parts. */
  parts: readonly PublishedPart[]
}

export interface PublishedPart {
  /** A month, null for rows without a time, or the name of a range. */
  part: string | null
  digest: string
  file: DataFile
}

/** The property in which a table keeps the digests of its parts, in the order of the parts. */
export const PARTS_PROPERTY = 'parley.parts'

/** An entry of the property. */
export type PartNote = readonly [part: string | null, digest: string, file: string]

export const metadataFolder = (folder: string): string => `${folder}/metadata`

export const metadataPath = (folder: string, version: number): string =>
  `${metadataFolder(folder)}/v${version}.metadata.json`

/** Undefined for other files. */
export function metadataVersion(path: string): number | undefined {
  const version = /\/v(\d+)\.metadata\.json$/.exec(path)?.[1]
  return version === undefined ? undefined : Number(version)
}

export const hintPath = (folder: string): string => `${metadataFolder(folder)}/version-hint.text`

/** Undefined for a table that was never published. @throws StopError 73 when the target is damaged */
export async function readPublished(storage: Storage, folder: string): Promise<PublishedState | undefined> {
  const paths = await storage.list(metadataFolder(folder))
  const versions = paths.flatMap(path => metadataVersion(path) ?? [])
  if (versions.length === 0) return undefined
  const version = Math.max(...versions)
  const metadata = await readMetadata(storage, metadataPath(folder, version))
  return { metadata, version, parts: await readParts(storage, metadata) }
}

async function readMetadata(storage: Storage, path: string): Promise<TableMetadata> {
  try {
    return JSON.parse(String(await required(storage, path)))
  } catch (error) {
    throw damaged(storage, path, error)
  }
}

async function readParts(storage: Storage, metadata: TableMetadata): Promise<PublishedPart[]> {
  const snapshot = currentSnapshot(metadata)
  if (snapshot === undefined) return []
  const path = snapshot['manifest-list']
  try {
    const files = new Map((await readSnapshotFiles(storage, path)).files.map(file => [file.path, file]))
    const notes: readonly PartNote[] = JSON.parse(metadata.properties[PARTS_PROPERTY] ?? '[]')
    return notes.flatMap(([part, digest, name]) => {
      const file = files.get(name)
      return file ? [{ part, digest, file }] : []
    })
  } catch (error) {
    throw damaged(storage, path, error)
  }
}

export interface SnapshotFiles {
  /** Addresses, as readers find them. */
  manifests: readonly string[]
  files: readonly DataFile[]
}

/** @throws Error when a file is missing or cannot be decoded */
export async function readSnapshotFiles(storage: Storage, manifestList: string): Promise<SnapshotFiles> {
  const listed = await decodeManifestList(await required(storage, pathIn(storage, manifestList)))
  const files = await Promise.all(
    listed.map(async ({ path, sequence }) =>
      decodeManifest(await required(storage, pathIn(storage, path)), sequence),
    ),
  )
  return { manifests: listed.map(({ path }) => path), files: files.flat() }
}

async function required(storage: Storage, path: string): Promise<Buffer> {
  const bytes = await storage.read(path)
  if (bytes === undefined) throw new Error(`${path} is missing`)
  return bytes
}

/** The path in the target of a file that metadata names by its location. */
export function pathIn({ location }: Pick<Storage, 'location'>, address: string): string {
  if (address.startsWith(`${location}/`)) return address.slice(location.length + 1)
  throw new Error(`${address} is not below ${location}`)
}

function damaged({ name }: Storage, path: string, cause: unknown): StopError {
  return new StopError(`The target ${name} is damaged: ${path} cannot be read`, {
    code: 'publish-damaged',
    hint: 'Publish to an empty folder or prefix, or restore the file. If publish.location was changed, set the earlier value.',
    cause,
    exitStatus: EXIT_STATUS.databaseUnavailable,
  })
}
