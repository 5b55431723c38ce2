import { createFingerprint, type Mark } from '../../export/fingerprint.ts'
import { type Partition, type PartitionReading, readPartitions } from '../../export/partitions.ts'
import type { Sqlite } from '../../store/database/sqlite-types.ts'
import { type PurgedContentTest, purgedContentTest } from '../../store/deletions/purged-content.ts'
import { countText } from '../../terminal/wording.ts'
import type { IcebergSchema } from '../iceberg/iceberg-schema.ts'
import { hintPath, metadataPath, readMetadata } from '../metadata-file.ts'
import { purgedAtIn } from '../publish.ts'
import { type PublishedPart, type PublishedState, pathIn } from '../published-state.ts'
import type { PublishedTable } from '../published-tables.ts'
import { rangesOfLostKeys } from '../row-ranges.ts'
import type { TargetReader } from '../storage/target-reader.ts'
import { isErasureDue } from '../unneeded-files.ts'
import type { FoundFault } from './fault.ts'
import { type NamedFiles, namedFiles } from './named-files.ts'
import { erasedRows, fileFaults } from './verify-file.ts'

/**
 * Checks one table of a target: every file that a snapshot names, and the parts (months or ranges of keys) against the
 * warehouse. In a file that no snapshot names, only purged content is a fault: an interrupted publication has left the
 * file, or one in progress is writing it.
 */

export interface TableCheck extends PartitionReading {
  storage: TargetReader
  /** The warehouse, and its table with this folder, if there still is one. Undefined: the target is checked alone. */
  warehouse: { db: Sqlite; table: PublishedTable | undefined } | undefined
  /** The snapshot that the last complete publication shows. */
  shown: number | undefined
  /** The paths of all files of the table. */
  present: readonly string[]
}

export interface TableVerification {
  folder: string
  /** `rows`, `bytes` and `files` are those of the last complete publication. */
  rows: number
  bytes: number
  files: number
  /** Files that only earlier snapshots name. They are checked too. */
  earlier_files: number
  /** Files that no snapshot names, manifests and metadata included. */
  unnamed_files: number
  /** Parts that differ because the warehouse has changed since. The next publication that has the table writes them. */
  parts_changed: number
}

export interface TableFindings {
  verification: TableVerification
  faults: readonly FoundFault[]
}

/** @param state undefined for a table of which the target has only files that no publication has committed */
export async function verifyTable(
  check: TableCheck,
  folder: string,
  state: PublishedState | undefined,
): Promise<TableFindings> {
  const { files, shownPaths, paths, parts, faults } = state ? await namedFiles(check, state) : nothingNamed()
  const tests = purgedContentTests(check)
  for (const named of files) {
    const purgedContent = tests(named.schema)
    const [part, file] = [named.note?.[0] ?? null, pathIn(check.storage, named.file.path)]
    for (const fault of await fileFaults({ ...check, purgedContent }, named))
      faults.push({ table: folder, part, file, ...fault })
  }
  const unnamed = check.present.filter(path => !paths.has(path))
  faults.push(...(await unnamedFaults(check, folder, unnamed)))
  if (state) faults.push(...erasedNames(check, state, parts), ...(await hintFaults(check, state)))
  const current = files.filter(({ file }) => shownPaths.has(file.path))
  const sum = (figure: 'rows' | 'bytes') => current.reduce((total, { file }) => total + file[figure], 0)
  return {
    verification: {
      folder,
      rows: sum('rows'),
      bytes: sum('bytes'),
      files: current.length,
      earlier_files: files.length - current.length,
      unnamed_files: unnamed.length,
      parts_changed: state ? await changedParts(check, state) : 0,
    },
    faults,
  }
}

const nothingNamed = (): NamedFiles => ({
  files: [],
  shownPaths: new Set(),
  paths: new Set(),
  parts: new Set(),
  faults: [],
})

/**
 * The hint may name an earlier version while a publication is in progress, and after it was interrupted. That version must
 * show what the last complete publication shows.
 */
async function hintFaults(
  { storage, shown }: TableCheck,
  { folder, version, isHinted }: PublishedState,
): Promise<FoundFault[]> {
  if (isHinted || shown === undefined) return []
  const file = hintPath(folder)
  const fault = (found: string): FoundFault[] => [
    {
      table: folder,
      part: null,
      file,
      kind: 'hint',
      message: `${found}, so readers do not find version ${version}`,
    },
  ]
  const hint = await storage.read(file)
  if (hint === undefined) return fault('The file is missing')
  const hinted = Number(String(hint))
  if (!(hinted > 0)) return fault('The file names no version')
  const read = await readMetadata(storage, metadataPath(folder, hinted)).catch(() => undefined)
  if (read === undefined) return fault(`The file names version ${hinted}, which cannot be read`)
  return read.metadata['current-snapshot-id'] >= shown
    ? []
    : fault(`The file names the earlier version ${hinted}`)
}

/** Names of ranges are keys, which may have been purged. The erasure that follows a purge removes those without a row. */
function erasedNames(
  { warehouse }: TableCheck,
  state: PublishedState,
  parts: ReadonlySet<Partition>,
): FoundFault[] {
  const { db, table } = warehouse ?? {}
  if (db === undefined || table === undefined || !isErasureDue(state, purgedAtIn(db))) return []
  const lost = rangesOfLostKeys(db, table.read, [...parts]).length
  if (lost === 0) return []
  const message = `The metadata names ${countText(lost, 'part')} after a row that is gone, and rows were purged since`
  const file = metadataPath(state.folder, state.version)
  return [{ table: state.folder, part: null, file, kind: 'erased', message }]
}

async function unnamedFaults(
  check: TableCheck,
  folder: string,
  paths: readonly string[],
): Promise<FoundFault[]> {
  const { db, table } = check.warehouse ?? {}
  if (db === undefined || table === undefined) return []
  const { columns } = table.written
  const purgedContent = (names: readonly string[]) => purgedContentTest(db, table.read.name, names)
  // Without a purge, nothing needs to be read.
  if (purgedContent(columns.map(({ name }) => name)) === undefined) return []
  const faults: FoundFault[] = []
  for (const file of paths.filter(path => path.endsWith('.parquet'))) {
    const rows = await erasedRows(check, { path: file, columns, purgedContent })
    if (rows === 0) continue
    faults.push({
      table: folder,
      part: null,
      file,
      kind: 'leftover',
      message: `${countText(rows, 'row')} with content that was purged, in a file that no snapshot names`,
    })
  }
  return faults
}

/** The tests by schema: an earlier schema may have fewer columns. */
function purgedContentTests({
  warehouse,
}: TableCheck): (schema: IcebergSchema) => PurgedContentTest | undefined {
  const tests = new Map<IcebergSchema, PurgedContentTest | undefined>()
  const { db, table } = warehouse ?? {}
  return schema => {
    if (db === undefined || table === undefined) return undefined
    const names = schema.fields.map(({ name }) => name)
    if (!tests.has(schema)) tests.set(schema, purgedContentTest(db, table.read.name, names))
    return tests.get(schema)
  }
}

/** How many parts of the table and of the warehouse differ. */
async function changedParts(check: TableCheck, { metadata, parts }: PublishedState): Promise<number> {
  const { warehouse, shown } = check
  if (metadata['current-snapshot-id'] !== shown) return parts.length
  if (warehouse === undefined) return 0
  const { db, table } = warehouse
  if (table === undefined) return parts.length
  const reader = table.reader(
    db,
    parts.map(({ part }) => part),
  )
  const now = await readPartitions(check, reader.rows('all'), () => createFingerprint(table.read.columns))
  return differences(parts, now)
}

/**
 * How many parts differ. Equal digests mean the same rows in the same number.
 * @param now the parts of the warehouse
 */
export function differences(
  parts: readonly Pick<PublishedPart, 'part' | 'digest'>[],
  now: ReadonlyMap<Partition, Mark>,
): number {
  const changed = parts.filter(({ part, digest }) => now.get(part)?.fingerprint !== digest)
  const published = new Set(parts.map(({ part }) => part))
  return changed.length + [...now.keys()].filter(part => !published.has(part)).length
}
