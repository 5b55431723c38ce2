import { hintPath, metadataPath, type TableVersion } from './metadata-file.ts'
import { damaged, type PublishedTarget, pathIn, readSnapshotFiles } from './published-state.ts'
import type { Storage } from './storage/storage.ts'

/** Removes files of the target that no reader needs. Only the process that holds the target may do so. */

/**
 * Removes the files of a table that no kept snapshot names: those of expired snapshots and of interrupted publications.
 * Returns their number. Not for use while the table is being published.
 */
export async function sweepTable(storage: Storage, table: TableVersion): Promise<number> {
  const { folder, version } = table
  const needed = await neededFiles(storage, table)
  needed.add(metadataPath(folder, version)).add(hintPath(folder))
  return removeAll(
    storage,
    (await storage.list(`${folder}/`)).filter(path => !needed.has(path)),
  )
}

async function neededFiles(storage: Storage, { folder, metadata }: TableVersion): Promise<Set<string>> {
  const addresses = metadata['metadata-log'].map(entry => entry['metadata-file'])
  try {
    for (const snapshot of metadata.snapshots) {
      const { manifests, files } = await readSnapshotFiles(storage, snapshot['manifest-list'])
      addresses.push(snapshot['manifest-list'], ...manifests, ...files.map(({ path }) => path))
    }
  } catch (error) {
    throw damaged(storage, folder, error)
  }
  return new Set(addresses.map(address => pathIn(storage, address)))
}

/**
 * Removes what interrupted publications wrote and did not commit. It is done before a publication writes, so that
 * repeated interruptions, such as those of a full disk, do not add up. Returns the number of files.
 */
export function removeUncommitted(storage: Storage, { paths, tables }: PublishedTarget): Promise<number> {
  const uncommitted = paths.filter(path => {
    const [, folder = '', publication] = UNCOMMITTED.exec(path) ?? []
    const last = tables.get(folder)?.metadata['last-sequence-number'] ?? 0
    return publication !== undefined && Number(publication) > last
  })
  return removeAll(storage, uncommitted)
}

/** Files have the number of the publication that wrote them. */
const UNCOMMITTED = /^([^/]+)\/(?:data|metadata)\/(\d+)-[^/]+\.(?:parquet|avro)$/

async function removeAll(storage: Storage, paths: readonly string[]): Promise<number> {
  for (const path of paths) await storage.remove(path)
  return paths.length
}
