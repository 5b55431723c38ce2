import { EXIT_STATUS, StopError } from '../../base/errors.ts'
import type { TableMetadata } from '../iceberg/metadata.ts'
import { hintPath, metadataPath, readMetadata } from '../metadata-file.ts'
import { earlierPublications, PUBLICATIONS, type PublicationRow } from '../publications.ts'
import type { TargetReader } from '../storage/target-reader.ts'

/**
 * Finds what a target shows: the tables of its last complete publication. A table may be ahead of it when the next
 * publication is in progress or was interrupted. Then an earlier version of the table's metadata is the right one. Its
 * file exists, since only a complete publication is followed by a removal of files.
 */

export interface CompletePublication extends PublicationRow {
  /** The tag of the table `publications`, which changes with every publication. */
  tag: string
  /** Where the tables say that their files are. */
  location: string
}

/** One version of the metadata of a table. */
export interface ShownTable {
  /** Differs for each version, and for a table that was published again from the start. */
  tag: string
  /** The address of the metadata file, as readers find it. */
  address: string
  /** The text of the metadata file. */
  metadata: string
}

type MetadataReader = Pick<TargetReader, 'read'>

/**
 * @returns undefined when the target has no complete publication yet
 * @throws StopError (exit status 73) when the target cannot be read
 */
export async function readLastPublication(target: MetadataReader): Promise<CompletePublication | undefined> {
  let newest: StoredVersion | undefined
  let next = await readHintedVersion(target, PUBLICATIONS)
  // A newer version may exist: the hint is written after its version.
  while (next) {
    newest = next
    next = await readVersion(target, PUBLICATIONS, newest.version + 1)
  }
  const row = earlierPublications(newest).at(-1)
  const location = newest?.metadata.location.slice(0, -`/${PUBLICATIONS}`.length) ?? ''
  return newest && row && { ...row, tag: tagOf(newest), location }
}

/** The tables of a publication, by their folders, which are their names for readers. */
export const foldersOfPublication = ({ snapshots }: PublicationRow): readonly string[] =>
  [...Object.keys(snapshots), PUBLICATIONS].toSorted()

/**
 * The newest metadata of a table whose current snapshot is that of the publication. Undefined when the publication has
 * no such table, or when its metadata was removed because a later publication is complete.
 * @throws StopError (exit status 73) when the target cannot be read
 */
export async function readShownTable(
  target: MetadataReader,
  { snapshots, publication, location }: CompletePublication,
  folder: string,
): Promise<ShownTable | undefined> {
  const wanted = new Map(Object.entries({ ...snapshots, [PUBLICATIONS]: publication })).get(folder)
  if (wanted === undefined) return undefined
  let found = await readHintedVersion(target, folder)
  let direction = 0
  while (found) {
    // The ids of snapshots grow with the versions.
    const step = Math.sign(wanted - found.metadata['current-snapshot-id'])
    if (step === 0) {
      const address = `${location}/${metadataPath(folder, found.version)}`
      return { tag: tagOf(found), address, metadata: found.text }
    }
    if (step === -direction) return undefined
    direction = step
    found = await readVersion(target, folder, found.version + step)
  }
  return undefined
}

const tagOf = ({ version, metadata }: StoredVersion): string => `${metadata['table-uuid']}-${version}`

interface StoredVersion {
  version: number
  metadata: TableMetadata
  text: string
}

/**
 * Reads the version that the hint names. Storage may send only the first digits of a hint. If their version is missing,
 * the hint is read again; from an earlier version the callers go on.
 */
async function readHintedVersion(target: MetadataReader, folder: string): Promise<StoredVersion | undefined> {
  const read = async () => {
    const hint = String((await target.read(hintPath(folder))) ?? '')
    // The first version can exist without a hint.
    return readVersion(target, folder, /^\d{1,15}$/.test(hint) ? Number(hint) : 1)
  }
  return (await read()) ?? (await read())
}

async function readVersion(
  target: MetadataReader,
  folder: string,
  version: number,
): Promise<StoredVersion | undefined> {
  const path = metadataPath(folder, version)
  try {
    const read = await readMetadata(target, path)
    return read && { version, ...read }
  } catch (error) {
    if (error instanceof StopError) throw error
    throw new StopError(`${path} in the target of the publications is not valid JSON`, {
      code: 'publish-damaged',
      hint: 'Publish to an empty folder or prefix, or restore the file.',
      exitStatus: EXIT_STATUS.databaseUnavailable,
    })
  }
}
