import type { Partition } from '../../export/partitions.ts'
import type { TableMetadata } from '../iceberg/metadata.ts'
import { hintPath, metadataPath, readMetadata } from '../metadata-file.ts'
import {
  type PartNote,
  type PublishedState,
  partNotes,
  pathIn,
  readSnapshotFiles,
} from '../published-state.ts'
import type { TargetReader } from '../storage/target-reader.ts'
import type { FoundFault } from './fault.ts'
import type { NamedFile } from './verify-file.ts'

/** Finds the files that the snapshots of a table name, and what is noted about them. */

export interface NamedFiles {
  /** Each named data file once. */
  files: NamedFile[]
  /** The addresses of the data files of the last complete publication. */
  shownPaths: ReadonlySet<string>
  /** The paths of `files`, the metadata, the hint and the manifests. */
  paths: ReadonlySet<string>
  /** The parts that this version of the metadata and the earlier ones name. */
  parts: ReadonlySet<Partition>
  /** Missing snapshots, and snapshots whose files cannot be found. */
  faults: FoundFault[]
}

export async function namedFiles(
  { storage, shown }: { storage: TargetReader; shown: number | undefined },
  { folder, metadata, version }: PublishedState,
): Promise<NamedFiles> {
  const notes = await notesByFile(storage, metadata)
  const files = new Map<string, NamedFile>()
  const shownPaths = new Set<string>()
  const addresses = metadata['metadata-log'].map(entry => entry['metadata-file'])
  const faults: FoundFault[] = []
  const lost = (file: string, message: string) =>
    faults.push({ table: folder, part: null, file, kind: 'snapshot', message })
  if (shown !== undefined && !metadata.snapshots.some(one => one['snapshot-id'] === shown))
    lost(`${folder}/metadata`, `The snapshot ${shown} of the last publication is missing`)
  for (const snapshot of metadata.snapshots.toReversed()) {
    const { 'snapshot-id': id, 'manifest-list': list, 'schema-id': schemaId } = snapshot
    const schema = metadata.schemas.find(one => one['schema-id'] === schemaId)
    addresses.push(list)
    try {
      if (schema === undefined) throw new Error(`The schema ${schemaId} is missing`)
      const found = await readSnapshotFiles(storage, list)
      addresses.push(...found.manifests)
      for (const file of found.files) {
        if (!files.has(file.path)) files.set(file.path, { file, schema, note: notes.get(file.path) })
        if (id === shown) shownPaths.add(file.path)
      }
    } catch (error) {
      lost(pathIn(storage, list), `The files of snapshot ${id} cannot be found: ${reasonOf(error)}`)
    }
  }
  const paths = [...addresses, ...files.keys()].map(address => pathIn(storage, address))
  return {
    files: [...files.values()],
    shownPaths,
    paths: new Set([...paths, metadataPath(folder, version), hintPath(folder)]),
    parts: new Set([...notes.values()].map(([part]) => part)),
    faults,
  }
}

const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** What this version of the metadata, and the earlier ones that were kept, note about files. */
async function notesByFile(
  storage: TargetReader,
  metadata: TableMetadata,
): Promise<ReadonlyMap<string, PartNote>> {
  const notes = new Map<string, PartNote>()
  for (const { 'metadata-file': address } of metadata['metadata-log']) {
    const earlier = await readMetadata(storage, pathIn(storage, address))
    for (const note of earlier ? partNotes(earlier.metadata) : []) notes.set(note[2], note)
  }
  for (const note of partNotes(metadata)) notes.set(note[2], note)
  return notes
}
