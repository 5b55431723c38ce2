import type { Sqlite } from '../store/database/sqlite-types.ts'
import type { ExportTable } from './export-tables.ts'
import { createFingerprint } from './fingerprint.ts'
import type { TargetFile } from './manifest.ts'
import { createParquetFile } from './parquet-file.ts'
import { nextTurn, type Partition, type PartitionReading, readPartitions, type Sink } from './partitions.ts'
import { createRowReader, type RowReader } from './row-queries.ts'
import { filePath, type Target } from './target.ts'

/** Updates the files of one table to its rows at the instant of the export. Only partitions that differ are written. */

export interface TableWork extends PartitionReading {
  db: Sqlite
  target: Target
  createdBy: string
  /** Partitions of earlier months are neither read nor touched. */
  sinceMonth: string | undefined
  /** Writes every partition without comparing. */
  full: boolean
}

/** @returns the files of the table */
export async function exportTable(work: TableWork, table: ExportTable) {
  const { target, full, signal } = work
  // Signals only arrive between two turns of the event loop.
  await nextTurn()
  if (signal.aborted) throw signal.reason
  const sinceMonth = table.rows.time ? work.sinceMonth : undefined
  const present = target.files(table.folder)
  const isInRange = ({ month }: TargetFile) =>
    sinceMonth === undefined || (month !== null && month >= sinceMonth)
  const before = new Map(present.filter(isInRange).map(file => [file.path, file]))
  const untouched = present.filter(file => !isInRange(file))
  const reader = createRowReader(work.db, table)
  const reading = { ...work, table, sinceMonth, reader, hasOthers: untouched.length > 0 }

  const written: TargetFile[] = []
  const verified: TargetFile[] = []
  if (full || present.length === 0) {
    written.push(...(await readAll(reading, month => fileFor(reading, month))).values())
  } else {
    for (const [month, mark] of await readAll(reading, () => createFingerprint(table.columns))) {
      const file = before.get(filePath(table, month))
      if (file && file.fingerprint === mark.fingerprint && file.rows === mark.rows) verified.push(file)
      else written.push(await writePartition(reading, month))
    }
  }
  const current = new Set([...verified, ...written].map(({ path }) => path))
  return {
    written,
    /** Those that compared equal. */
    verified,
    /** Those of earlier months, which were not checked. */
    untouched,
    /** Paths of files that are no longer part of the table. They are removed after the manifest is written. */
    stale: [...before.keys()].filter(path => !current.has(path)),
  }
}

interface TableRead extends TableWork {
  table: ExportTable
  reader: RowReader
  /** Whether the table keeps files that are not read. */
  hasOthers: boolean
}

/** Reads every partition into a sink. An empty table has one empty partition, so that readers find the table. */
async function readAll<Result>(
  reading: TableRead,
  open: (month: Partition) => Sink<Result>,
): Promise<Map<Partition, Result>> {
  const { reader, sinceMonth, hasOthers } = reading
  const results = await readPartitions(reading, reader.from(sinceMonth), open)
  if (results.size === 0 && !hasOthers) results.set(null, open(null).finish())
  return results
}

async function writePartition(reading: TableRead, month: Partition): Promise<TargetFile> {
  const open = () => fileFor(reading, month)
  const files = await readPartitions(reading, reading.reader.of(month), open)
  return files.get(month) ?? open().finish()
}

function fileFor({ target, table, createdBy }: TableRead, month: Partition): Sink<TargetFile> {
  const path = filePath(table, month)
  const { file, end, abandon } = target.beginFile(path)
  const { add, finish } = createParquetFile({ file, table, createdBy })
  return {
    add,
    finish() {
      const { fingerprint, rows, bytes } = finish()
      end()
      return { path, month, rows, bytes, fingerprint }
    },
    abandon,
  }
}
