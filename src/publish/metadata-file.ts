import { EXIT_STATUS, StopError } from '../base/errors.ts'
import type { TableMetadata } from './iceberg/metadata.ts'
import type { Storage } from './storage/storage.ts'
import { readDecoded, type TargetReader } from './storage/target-reader.ts'

/**
 * The files `vK.metadata.json` of a table, and `version-hint.text`, by which readers find the newest version. A commit
 * creates the next version. A process that is killed before it writes the hint leaves an earlier hint, whose version
 * readers can still use.
 */

export interface TableVersion {
  /** The folder of the table, relative to the target. */
  folder: string
  metadata: TableMetadata
  /** K of `vK.metadata.json`. */
  version: number
}

/** The folder of the table that a file belongs to. */
export const folderOfFile = (path: string): string => path.slice(0, Math.max(0, path.indexOf('/')))

export const metadataFolder = (folder: string): string => `${folder}/metadata`

export const metadataPath = (folder: string, version: number): string =>
  `${metadataFolder(folder)}/v${version}.metadata.json`

/** @returns K of `vK.metadata.json`; undefined for other files */
export function metadataVersion(path: string): number | undefined {
  const version = /^[^/]+\/metadata\/v(\d+)\.metadata\.json$/.exec(path)?.[1]
  return version === undefined ? undefined : Number(version)
}

export const hintPath = (folder: string): string => `${metadataFolder(folder)}/version-hint.text`

/** The address of the metadata for readers. */
export const metadataAddress = ({ location }: TargetReader, folder: string, version: number): string =>
  `${location}/${metadataPath(folder, version)}`

/** Reads a version, also as text. @returns undefined where there is no such file @throws Error as `parsed` */
export const readMetadata = (target: Pick<TargetReader, 'read'>, path: string) =>
  readDecoded(target, path, bytes => {
    const text = String(bytes)
    return { metadata: parsed<TableMetadata>(text, path), text }
  })

/** Throws without the parser's message, which would quote a piece of the text, such as the key of a row. */
export function parsed<Value>(text: string, name: string): Value {
  try {
    return JSON.parse(text) as Value
  } catch {
    throw new Error(`${name} is not valid JSON`)
  }
}

/**
 * Commits a version. The caller writes the hint afterwards.
 * @throws StopError (exit status 75) when another process has written the version
 */
export async function writeMetadata(storage: Storage, table: TableVersion): Promise<void> {
  if (!(await writeMetadataIfAbsent(storage, table))) throw overtaken(storage)
}

/** Commits as `writeMetadata` does. @returns false when another process has written the version */
export function writeMetadataIfAbsent(
  storage: Storage,
  { folder, metadata, version }: TableVersion,
): Promise<boolean> {
  const bytes = Buffer.from(JSON.stringify(metadata))
  return storage.writeIfAbsent(metadataPath(folder, version), bytes)
}

/** Whether the hint names this version; after an interruption it may name an earlier one. */
export async function isHinted(storage: TargetReader, folder: string, version: number): Promise<boolean> {
  return String(await storage.read(hintPath(folder))) === String(version)
}

export const writeHint = (
  storage: Storage,
  { folder, version }: Pick<TableVersion, 'folder' | 'version'>,
): Promise<void> => storage.replace(hintPath(folder), Buffer.from(String(version)))

const OVERTAKEN = 'publish-overtaken'

export const isOvertaken = (error: unknown): boolean => error instanceof StopError && error.code === OVERTAKEN

export function overtaken({ name }: Pick<Storage, 'name'>): StopError {
  return new StopError(`Another process has published to ${name} meanwhile`, {
    code: OVERTAKEN,
    hint: 'Let only one parley publish to a target. Run parley publish again; it continues with what was published.',
    exitStatus: EXIT_STATUS.unfinished,
  })
}
