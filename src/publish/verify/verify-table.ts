import type { Mark } from '../../export/fingerprint.ts'
import type { Partition, PartitionReading } from '../../export/partitions.ts'
import type { Sqlite } from '../../store/database/sqlite-types.ts'
import { type PurgedContentTest, purgedContentTest } from '../../store/deletions/purged-content.ts'
import type { IcebergSchema } from '../iceberg/schema.ts'
import { readPartDigests } from '../part-digests.ts'
import { type PublishedPart, type PublishedState, pathIn } from '../published-state.ts'
import type { TargetReader } from '../storage/target-reader.ts'
import type { PublishedTable } from '../tables.ts'
import { hintFor, type VerifyFault } from './fault.ts'
import { namedFiles } from './named-files.ts'
import { fileFaults } from './verify-file.ts'

/** Checks one table of a target: every file that a snapshot names, and its parts against the warehouse. */

export interface TableCheck extends PartitionReading {
  storage: TargetReader
  /** The warehouse, and its table of this folder, if it still has one. Undefined: the target is checked alone. */
  warehouse: { db: Sqlite; table: PublishedTable | undefined } | undefined
  /** The snapshot that the last complete publication shows. */
  shown: number | undefined
}

export interface TableVerification {
  folder: string
  /** Of the last complete publication. */
  rows: number
  bytes: number
  files: number
  /** Files that only earlier snapshots name. They are checked too. */
  earlier_files: number
  /** Parts that differ from the warehouse: they changed since, and the next publication writes them. */
  parts_changed: number
}

export interface TableFindings {
  verification: TableVerification
  faults: readonly VerifyFault[]
}

export async function verifyTable(check: TableCheck, state: PublishedState): Promise<TableFindings> {
  const { storage, shown } = check
  const { folder } = state
  const { files, shownPaths, faults } = await namedFiles(check, state)
  const tests = purgedContentTests(check)
  for (const named of files) {
    const purgedContent = tests(named.schema)
    for (const { kind, message } of await fileFaults({ ...check, purgedContent }, named)) {
      const part = named.note?.[0] ?? null
      const file = pathIn(storage, named.file.path)
      faults.push({ table: folder, part, file, kind, message, hint: hintFor(kind, storage.name) })
    }
  }
  const current = files.filter(({ file }) => shownPaths.has(file.path))
  const sum = (figure: 'rows' | 'bytes') => current.reduce((total, { file }) => total + file[figure], 0)
  const isShown = state.metadata['current-snapshot-id'] === shown
  const changed = isShown ? await changedParts(check, state) : state.parts.length
  return {
    verification: {
      folder,
      rows: sum('rows'),
      bytes: sum('bytes'),
      files: current.length,
      earlier_files: files.length - current.length,
      parts_changed: changed,
    },
    faults,
  }
}

/** The test of a schema, whose columns may be fewer than those of today. */
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
async function changedParts(check: TableCheck, { parts }: PublishedState): Promise<number> {
  const { warehouse } = check
  if (warehouse === undefined) return 0
  const { db, table } = warehouse
  if (table === undefined) return parts.length
  const reader = table.reader(
    db,
    parts.map(({ part }) => part),
  )
  return differences(parts, await readPartDigests(check, table, reader.rows('all')))
}

/** How many parts differ. Equal digests mean equal rows, and as many of them. */
export function differences(
  parts: readonly Pick<PublishedPart, 'part' | 'digest'>[],
  warehouse: ReadonlyMap<Partition, Mark>,
): number {
  const now = new Map([...warehouse].map(([part, mark]) => [part ?? null, mark]))
  const changed = parts.filter(({ part, digest }) => now.get(part)?.fingerprint !== digest)
  const published = new Set(parts.map(({ part }) => part))
  return changed.length + [...now.keys()].filter(part => !published.has(part)).length
}
