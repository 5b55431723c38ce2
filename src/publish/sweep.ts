import type { TableMetadata } from './iceberg/metadata.ts'
import { metadataPath, pathIn, readSnapshotFiles } from './published-state.ts'
import type { Storage } from './storage/storage.ts'

/**
 * Removes the files of a table that no kept snapshot names: those of expired snapshots and of interrupted publications.
 * Returns their number. Only the process that holds the target may call it, and not while it publishes the table.
 */
export async function sweepTable(
  storage: Storage,
  { folder, metadata, version }: { folder: string; metadata: TableMetadata; version: number },
): Promise<number> {
  const needed = await neededFiles(storage, metadata)
  needed.add(metadataPath(folder, version)).add(`${folder}/metadata/version-hint.text`)
  const stale = (await storage.list(folder)).filter(path => !needed.has(path))
  for (const path of stale) await storage.remove(path)
  return stale.length
}

async function neededFiles(storage: Storage, metadata: TableMetadata): Promise<Set<string>> {
  const addresses = metadata['metadata-log'].map(entry => entry['metadata-file'])
  for (const snapshot of metadata.snapshots) {
    const { manifests, files } = await readSnapshotFiles(storage, snapshot['manifest-list'])
    addresses.push(snapshot['manifest-list'], ...manifests, ...files.map(({ path }) => path))
  }
  return new Set(addresses.map(address => pathIn(storage, address)))
}
