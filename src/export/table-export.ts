import type { Sqlite } from '../store/database/sqlite-types.ts'
import type { ExportTable } from './export-tables.ts'
import { createFingerprint, type Mark } from './fingerprint.ts'
import type { TargetFile } from './manifest.ts'
import { createParquetFile } from './parquet-file.ts'
import { nextTurn, type Partition, type PartitionReading, readPartitions, type Sink } from './partitions.ts'
import { createRowReader, type RowReader } from './row-queries.ts'
import { filePath, type Target } from './target.ts'

/** Updates the files of one table to its rows at the instant of the export. Only partitions that differ are written. */

export interface TableWork extends PartitionReading {
  db: Sqlite
  target: Target
  /** File mode. */
  mode: number
  createdBy: string
  /** Partitions of earlier months are neither read nor touched. */
  sinceMonth: string | undefined
  /** Writes every partition without comparing. */
  full: boolean
}

export interface TableOutcome {
  /** All files of the table, earliest month first. */
  files: readonly TargetFile[]
  /** Paths of the files that were written. */
  written: ReadonlySet<string>
  /** Paths of the files that compared equal. Files in neither set were not checked. */
  verified: ReadonlySet<string>
  /** Paths of files that are no longer part of the table. They are removed after the manifest is written. */
  stale: readonly string[]
}

export async function exportTable(work: TableWork, table: ExportTable): Promise<TableOutcome> {
  const { target, full, signal } = work
  // Signals only arrive between two turns of the event loop.
  await nextTurn()
  if (signal.aborted) throw signal.reason
  const sinceMonth = table.rows.time ? work.sinceMonth : undefined
  const present = target.files(table.folder)
  const isInRange = ({ month }: TargetFile) =>
    sinceMonth === undefined || (typeof month === 'string' && month >= sinceMonth)
  const before = new Map(present.filter(isInRange).map(file => [file.month, file]))
  const untouched = present.filter(file => !isInRange(file))
  const reader = createRowReader(work.db, table)
  const reading = {
    ...work,
    table,
    sinceMonth,
    reader,
    hasOthers: untouched.length > 0,
    isPartitioned: table.rows.time !== undefined,
  }

  const kept = new Map<Partition, TargetFile>()
  let written = new Map<Partition, TargetFile>()
  if (full || present.length === 0) {
    written = await readAll(reading, month => fileFor(reading, month))
  } else {
    for (const [month, mark] of await readAll(reading, () => createFingerprint(table.columns))) {
      const file = before.get(month)
      if (file && file.fingerprint === mark.fingerprint && file.rows === mark.rows) kept.set(month, file)
      else written.set(month, await writePartition(reading, month))
    }
  }
  const files = [...untouched, ...kept.values(), ...written.values()]
  return {
    files: files.toSorted((a, b) => (a.path < b.path ? -1 : 1)),
    written: new Set([...written.values()].map(({ path }) => path)),
    verified: new Set([...kept.values()].map(({ path }) => path)),
    stale: [...before.values()]
      .filter(({ month }) => !kept.has(month) && !written.has(month))
      .map(({ path }) => path),
  }
}

interface TableRead extends TableWork {
  isPartitioned: boolean
  table: ExportTable
  reader: RowReader
  /** Whether the table keeps files that are not read. */
  hasOthers: boolean
}

/** Reads every partition into a sink. An empty table has one empty partition, so that readers find the table. */
async function readAll<Result extends Mark>(
  reading: TableRead,
  open: (month: Partition) => Sink<Result>,
): Promise<Map<Partition, Result>> {
  const { reader, sinceMonth, table, hasOthers } = reading
  const results = await readPartitions(reading, reader.withTime({ from: sinceMonth }), open)
  const mayLackSome = () => sinceMonth === undefined && rowsOf(results.values()) < reader.count()
  const isEmpty = () => results.size === 0 && !hasOthers
  const { time } = table.rows
  if (time && (isEmpty() || mayLackSome())) {
    const timeless = await readPartitions(reading, reader.withoutTime(), open)
    for (const [month, result] of timeless) results.set(month, result)
  }
  const onlyPartition = time ? null : undefined
  if (isEmpty()) results.set(onlyPartition, open(onlyPartition).finish())
  return results
}

const rowsOf = (marks: Iterable<Mark>): number => [...marks].reduce((sum, { rows }) => sum + rows, 0)

async function writePartition(reading: TableRead, month: Partition): Promise<TargetFile> {
  const { reader } = reading
  const rows = month === null ? reader.withoutTime() : reader.withTime({ from: month, to: month })
  const open = () => fileFor(reading, month)
  const files = await readPartitions(reading, rows, open)
  return files.get(month) ?? open().finish()
}

function fileFor({ target, table, mode, createdBy }: TableRead, month: Partition): Sink<TargetFile> {
  const path = filePath(table.folder, month)
  const file = createParquetFile({ path: target.prepare(path), mode, table, createdBy })
  return {
    add: file.add,
    finish() {
      const { fingerprint, rows, bytes } = file.finish()
      target.replace(path)
      return { path, month, fingerprint, rows, bytes }
    },
    abandon() {
      file.abandon()
      target.discard(path)
    },
  }
}
