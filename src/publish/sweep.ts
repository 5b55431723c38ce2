import { errorCode } from '../error-code.ts'
import type { TableMetadata, TableSnapshot } from './iceberg/metadata.ts'
import { inParallel } from './in-parallel.ts'
import {
  hintPath,
  metadataFolder,
  metadataPath,
  metadataVersion,
  type TableVersion,
} from './metadata-file.ts'
import { damaged, type PublishedTarget, pathIn, readSnapshotFiles } from './published-state.ts'
import type { Storage } from './storage/storage.ts'

/** Removes files of the target that no reader needs. */

/**
 * Removes the files of a table that no kept snapshot names: those of expired snapshots and of interrupted publications.
 * Returns their number. The process that has published the table may call it, once it does not publish the table.
 *
 * Without a lock, as on S3, another process may be publishing at the same time, and its new files are not named by any
 * snapshot yet. So three rules hold:
 * - If another process has published the table since, that process sweeps it.
 * - Files that an expired snapshot named, and earlier versions of the metadata, are removed at once, since they may hold
 *   content that was purged. No publication in progress needs them: it fails, or continues from our version.
 * - Other files, which no snapshot ever named, are removed once they are settled: on S3 after a day. A publication whose
 *   upload of one table takes longer than that must be the only one for its target.
 */
export async function sweepTable(storage: Storage, table: TableVersion): Promise<number> {
  const { folder, metadata, version } = table
  const listed = await storage.list(folder)
  if (listed.some(path => (metadataVersion(path) ?? 0) > version)) return 0
  const needed = await filesOfTable(storage, table)
  needed.add(metadataPath(folder, version)).add(hintPath(folder))
  const unneeded = listed.filter(path => !needed.has(path))
  if (unneeded.length === 0) return 0
  const settled = new Set(await storage.settled(folder))
  const released = unneeded.every(path => settled.has(path))
    ? new Set<string>()
    : await filesOfExpired(storage, metadata, new Set(listed))
  const stale = unneeded.filter(
    path => settled.has(path) || released.has(path) || metadataVersion(path) !== undefined,
  )
  return removeAll(storage, stale)
}

/**
 * Whether a table has metadata or manifests that it does not need, by their names alone. A sweep that was interrupted
 * leaves some of them, since it removes data files first. Data files of interrupted publications are not seen.
 */
export function hasStaleFiles(
  paths: readonly string[],
  { folder, metadata, version }: TableVersion,
): boolean {
  const kept = new Set(metadata.snapshots.map(snapshot => snapshot['snapshot-id']))
  const oldest = version - metadata['metadata-log'].length
  const inside = paths.filter(path => path.startsWith(`${metadataFolder(folder)}/`))
  const manifests = inside.filter(path => path.endsWith('.avro'))
  return (
    manifests.length > MANIFESTS_OF_SNAPSHOT * kept.size ||
    manifests.some(path => !kept.has(Number(/\/(\d+)-[^/]+$/.exec(path)?.[1]))) ||
    inside.some(path => (metadataVersion(path) ?? version) < oldest) ||
    // Left by a write of the hint or the metadata that was interrupted.
    inside.some(path => !/\.avro$|\.metadata\.json$/.test(path) && path !== hintPath(folder))
  )
}

/** A manifest, and the list of manifests. */
const MANIFESTS_OF_SNAPSHOT = 2

async function filesOfTable(storage: Storage, { folder, metadata }: TableVersion): Promise<Set<string>> {
  const files = metadata['metadata-log'].map(entry => pathIn(storage, entry['metadata-file']))
  try {
    files.push(...(await filesOfSnapshots(storage, metadata.snapshots.map(listOf))))
  } catch (error) {
    throw damaged(storage, folder, error)
  }
  return new Set(files)
}

/** The files of the snapshots that earlier versions of the metadata name and this one does not. */
async function filesOfExpired(
  storage: Storage,
  metadata: TableMetadata,
  listed: ReadonlySet<string>,
): Promise<Set<string>> {
  const kept = new Set(metadata.snapshots.map(listOf))
  const earlier = await Promise.all(
    metadata['metadata-log'].map(async ({ 'metadata-file': address }) => {
      const bytes = await storage.read(pathIn(storage, address))
      return bytes
        ? (JSON.parse(String(bytes)) as Pick<TableMetadata, 'snapshots'>).snapshots.map(listOf)
        : []
    }),
  )
  const expired = new Set(earlier.flat().filter(list => !kept.has(list) && listed.has(pathIn(storage, list))))
  const files = await inParallel(expired, MOST_REQUESTS, list => filesLeftOf(storage, list))
  return new Set(files.flat())
}

const listOf = (snapshot: TableSnapshot): string => snapshot['manifest-list']

async function filesOfSnapshots(storage: Storage, lists: readonly string[]): Promise<string[]> {
  const files = await inParallel(lists, MOST_REQUESTS, list => filesOfSnapshot(storage, list))
  return files.flat()
}

/** A sweep that was interrupted has removed the data files before the manifest, and the manifest before the list. */
async function filesLeftOf(storage: Storage, manifestList: string): Promise<string[]> {
  try {
    return await filesOfSnapshot(storage, manifestList)
  } catch (error) {
    if (errorCode(error) !== undefined) throw error
    return [pathIn(storage, manifestList)]
  }
}

async function filesOfSnapshot(storage: Storage, manifestList: string): Promise<string[]> {
  const { manifests, files } = await readSnapshotFiles(storage, manifestList)
  return [manifestList, ...manifests, ...files.map(({ path }) => path)].map(address =>
    pathIn(storage, address),
  )
}

/**
 * Removes what interrupted publications wrote and did not commit, once it is settled. It is done before a publication
 * writes, so that repeated interruptions, such as those of a full disk, do not add up. Returns the number of files.
 */
export async function removeUncommitted(
  storage: Storage,
  { paths, tables }: PublishedTarget,
): Promise<number> {
  const uncommitted = paths.filter(path => {
    const [, folder = '', publication] = UNCOMMITTED.exec(path) ?? []
    const last = tables.get(folder)?.metadata['last-sequence-number'] ?? 0
    return publication !== undefined && Number(publication) > last
  })
  if (uncommitted.length === 0) return 0
  const settled = new Set(await storage.settled(''))
  return removeAll(
    storage,
    uncommitted.filter(path => settled.has(path)),
  )
}

/** Files have the number of the publication that wrote them. */
const UNCOMMITTED = /^([^/]+)\/(?:data|metadata)\/(\d+)-[^/]+\.(?:parquet|avro)$/

/** A file is removed before the one that names it, so that an interrupted sweep can be continued. */
const REMOVAL_ORDER = ['.parquet', '-manifest.avro', '-snapshot.avro']

function removalRank(path: string): number {
  const rank = REMOVAL_ORDER.findIndex(end => path.endsWith(end))
  return rank < 0 ? REMOVAL_ORDER.length : rank
}

async function removeAll(storage: Storage, paths: readonly string[]): Promise<number> {
  for (let rank = 0; rank <= REMOVAL_ORDER.length; rank += 1) {
    const some = paths.filter(path => removalRank(path) === rank)
    await inParallel(some, MOST_REQUESTS, path => storage.remove(path))
  }
  return paths.length
}

/** Requests in progress for one table. */
const MOST_REQUESTS = 8
