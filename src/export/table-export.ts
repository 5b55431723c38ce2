import type { Clock } from '../clock.ts'
import type { Sqlite } from '../store/database/sqlite-types.ts'
import { createFingerprint, type Mark } from './fingerprint.ts'
import type { TargetFile } from './manifest.ts'
import { createParquetFile } from './parquet-file.ts'
import type { StoredCell } from './parquet-types.ts'
import { createRowReader, type RowReader } from './rows.ts'
import type { ExportTable } from './tables.ts'
import { filePath, type Target } from './target.ts'

/** Updates the files of one table to its rows at the instant of the export. Only partitions that differ are written. */

export interface TableWork {
  db: Sqlite
  target: Target
  clock: Clock
  /** File mode. */
  mode: number
  createdBy: string
  /** Partitions of earlier months are neither read nor touched. */
  sinceMonth: string | undefined
  /** Writes every partition without comparing. */
  full: boolean
  /** Stops between two rows and throws the signal's reason. */
  signal: AbortSignal
  /** Called from time to time with the number of rows read since the last call. */
  onRows(rows: number): void
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

/** A month; null for rows without a time, undefined where the table has no time. */
type Partition = string | null | undefined

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
  const reading = { ...work, table, sinceMonth, reader, hasOthers: untouched.length > 0 }

  const kept = new Map<Partition, TargetFile>()
  let written = new Map<Partition, TargetFile>()
  if (full || present.length === 0) {
    written = await readAll(reading, month => fileFor(reading, month))
  } else {
    for (const [month, mark] of await readAll(reading, () => digestOf(table))) {
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

interface Sink<Result> {
  add(cells: readonly StoredCell[]): void
  finish(): Result
  abandon(): void
}

function digestOf({ columns }: ExportTable): Sink<Mark> {
  const fingerprint = createFingerprint(columns)
  return {
    add: fingerprint.add,
    finish: () => ({ fingerprint: fingerprint.value(), rows: fingerprint.rows() }),
    abandon: () => undefined,
  }
}

function fileFor({ target, table, mode, createdBy }: TableRead, month: Partition): Sink<TargetFile> {
  const path = filePath(table.folder, month)
  const file = createParquetFile({ path: target.prepare(path), mode, table, createdBy })
  return {
    add: file.add,
    finish() {
      const mark = file.finish()
      target.replace(path)
      return { path, month, ...mark }
    },
    abandon() {
      file.abandon()
      target.discard(path)
    },
  }
}

/** The clock is checked after this number of rows, and the event loop gets a turn when `TURN_MS` have passed. */
const CHECK_ROWS = 500
const TURN_MS = 50

const nextTurn = () => new Promise<void>(resolve => setImmediate(resolve))

/** Passes rows to one sink per partition. A partition's rows are consecutive; the last cell of a row is its month. */
async function readPartitions<Result>(
  { table, clock, signal, onRows }: TableRead,
  rows: Iterable<StoredCell[]>,
  open: (month: Partition) => Sink<Result>,
): Promise<Map<Partition, Result>> {
  const results = new Map<Partition, Result>()
  let current: { month: Partition; sink: Sink<Result> } | undefined
  let read = 0
  let turnedAt = clock.elapsed()
  try {
    for (const row of rows) {
      const last = row.pop() as string | null
      const month = table.rows.time ? last : undefined
      if (!current || current.month !== month) {
        if (current) results.set(current.month, current.sink.finish())
        current = { month, sink: open(month) }
      }
      current.sink.add(row)
      read += 1
      if (read % CHECK_ROWS !== 0 || clock.elapsed() - turnedAt < TURN_MS) continue
      onRows(read)
      read = 0
      await nextTurn()
      if (signal.aborted) throw signal.reason
      turnedAt = clock.elapsed()
    }
    if (current) results.set(current.month, current.sink.finish())
    onRows(read)
    return results
  } catch (error) {
    current?.sink.abandon()
    throw error
  }
}
