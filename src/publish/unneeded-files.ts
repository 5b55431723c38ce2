import type { Clock } from '../base/clock.ts'
import { afterExpiry, currentSnapshot, type TableSnapshot } from './iceberg/metadata.ts'
import { inParallel } from './in-parallel.ts'
import {
  folderOfFile,
  hintPath,
  metadataAddress,
  metadataPath,
  metadataVersion,
  type TableVersion,
  writeHint,
  writeMetadataIfAbsent,
} from './metadata-file.ts'
import {
  damaged,
  type PublishedState,
  type PublishedTarget,
  pathIn,
  readSnapshotFiles,
} from './published-state.ts'
import type { Storage } from './storage/storage.ts'

/**
 * Expires snapshots and removes files of the target that no reader needs. Until a publication is complete, the snapshots
 * of the last complete one stay, since readers may use them.
 */

/**
 * The property with the instant of the last purge of the warehouse whose content is gone from the table. Targets of
 * earlier versions lack it, so that purged keys in their metadata go at the next publication.
 */
export const ERASED_PROPERTY = 'parley.erased-at'

/** Whether earlier files of a table may have content that was purged. @param purgedAt as in `Expiry` */
export const isErasureDue = ({ metadata }: Pick<TableVersion, 'metadata'>, purgedAt: string): boolean =>
  (metadata.properties[ERASED_PROPERTY] ?? '') !== purgedAt

export interface Expiry {
  storage: Storage
  clock: Clock
  /** The snapshots that kept publications show. */
  kept: ReadonlySet<number>
  /** When content of the warehouse was last purged; empty when it never was. */
  purgedAt: string
}

/**
 * Expires the snapshots that are not kept. After a purge, only the current snapshot and its metadata stay: earlier ones
 * may hold purged content, even if the purge changed no row of this table, since the row may have changed before.
 */
export async function expireSnapshots(
  { storage, clock, kept, purgedAt }: Expiry,
  table: TableVersion,
): Promise<TableVersion> {
  const { folder, metadata, version } = table
  const isErasing = isErasureDue(table, purgedAt)
  const staying = isErasing ? new Set<number>() : kept
  const expired = afterExpiry(metadata, {
    kept: staying,
    properties: { [ERASED_PROPERTY]: purgedAt },
    at: clock.now(),
    replaces: isErasing ? undefined : metadataAddress(storage, folder, version),
  })
  if (!isErasing && expired.snapshots.length === metadata.snapshots.length) return table
  const next = { folder, metadata: expired, version: version + 1 }
  if (!(await writeMetadataIfAbsent(storage, next))) return table
  await writeHint(storage, next)
  return next
}

/**
 * Removes the files of a table that no kept snapshot names: those of expired snapshots and of interrupted publications.
 * Only the process that published the table may call this, after its last commit to the table. No commit can name these
 * files any more: an expired snapshot named them, or their publication was interrupted or stopped. Without a lock, as on
 * S3, a later publication may be in progress. Its files are left to it: they were not there when this publication began,
 * or have a higher number.
 * @param target what the target had when the publication began
 * @param publication the number of the publication that removes them
 * @returns the removed paths
 */
export async function removeUnneeded(
  storage: Storage,
  target: PublishedTarget,
  table: TableVersion,
  publication: number,
): Promise<readonly string[]> {
  const { folder, version } = table
  const present = target.paths.filter(path => path.startsWith(`${folder}/`))
  const firstOwn = 1 + Math.max(0, ...present.map(path => metadataVersion(path) ?? 0))
  for (let own = firstOwn; own < version; own += 1) present.push(metadataPath(folder, own))
  const needed = await filesOfTable(storage, table, { present, before: target.tables.get(folder) })
  const isUnneeded = (path: string) => !needed.has(path) && (publicationOf(path) ?? 0) <= publication
  return removeAll(storage, present.filter(isUnneeded))
}

/**
 * The present files that the table needs. A file name has the number of the publication that wrote the file, which is
 * also the id of the snapshot that added it. If that snapshot is kept, the file is needed. If not, the next kept
 * snapshot decides, since no later one names a file that an earlier one dropped. So few manifest lists are read.
 * @param before the table as it was read when the publication began
 */
async function filesOfTable(
  storage: Storage,
  { folder, metadata, version }: TableVersion,
  { present, before }: { present: readonly string[]; before: PublishedState | undefined },
): Promise<Set<string>> {
  const logged = metadata['metadata-log'].map(entry => pathIn(storage, entry['metadata-file']))
  const needed = new Set([metadataPath(folder, version), hintPath(folder), ...logged])
  const kept = metadata.snapshots.toSorted((one, other) => one['snapshot-id'] - other['snapshot-id'])
  const next = new Set<TableSnapshot>()
  for (const path of present) {
    const number = publicationOf(path)
    const after = number === undefined ? undefined : kept.find(({ 'snapshot-id': id }) => id >= number)
    if (after === undefined) continue
    if (after['snapshot-id'] === number) needed.add(path)
    else next.add(after)
  }
  const known = before && currentSnapshot(before.metadata)?.['manifest-list']
  try {
    const files = await inParallel(next, MOST_REQUESTS, async ({ 'manifest-list': list }) =>
      before !== undefined && list === known
        ? before.parts.map(({ file }) => file)
        : (await readSnapshotFiles(storage, list)).files,
    )
    for (const { path } of files.flat()) needed.add(pathIn(storage, path))
  } catch (error) {
    throw damaged(storage, folder, error)
  }
  return needed
}

/**
 * Removes the files that interrupted publications wrote and did not commit. This is done before a publication writes,
 * so that repeated interruptions, such as by a full disk, do not add up. Without a lock, a publication that this one has
 * stopped may still create a table that the target does not have yet. So of such a table only the data files are
 * removed, which are written again where they are missing (`isMissing`). Its manifests, which have no rows, wait for
 * `removeUnneeded`.
 * @param publication the number of the publication that has begun
 * @returns the removed paths
 */
export async function removeUncommitted(
  storage: Storage,
  { paths, tables }: PublishedTarget,
  publication: number,
): Promise<readonly string[]> {
  const isUncommitted = (path: string) => {
    const number = publicationOf(path) ?? 0
    const last = tables.get(folderOfFile(path))?.metadata['last-sequence-number']
    const mayBeNamed = !storage.isLocked && last === undefined && !path.endsWith('.parquet')
    return number > (last ?? 0) && number <= publication && !mayBeNamed
  }
  return removeAll(storage, paths.filter(isUncommitted))
}

/** The publication number in the name of a data file or a manifest; undefined for other files. */
export function publicationOf(path: string): number | undefined {
  const number = /^[^/]+\/(?:data|metadata)\/(\d+)-[^/]+\.(?:parquet|avro)$/.exec(path)?.[1]
  return number === undefined ? undefined : Number(number)
}

/** A file is removed before the file that names it, so that an interrupted removal can be continued. */
const REMOVAL_ORDER = ['.parquet', '-manifest.avro', '-snapshot.avro']

function removalRank(path: string): number {
  const rank = REMOVAL_ORDER.findIndex(end => path.endsWith(end))
  return rank < 0 ? REMOVAL_ORDER.length : rank
}

async function removeAll(storage: Storage, paths: readonly string[]): Promise<readonly string[]> {
  for (let rank = 0; rank <= REMOVAL_ORDER.length; rank += 1) {
    const some = paths.filter(path => removalRank(path) === rank)
    await inParallel(some, MOST_REQUESTS, path => storage.remove(path))
  }
  return paths
}

/** Requests in progress for one table. */
const MOST_REQUESTS = 8
