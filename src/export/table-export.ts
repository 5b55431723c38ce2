import type { Clock } from '../clock.ts'
import type { Sqlite } from '../store/database/sqlite-types.ts'
import { createFingerprint, type Mark } from './fingerprint.ts'
import type { TargetFile } from './manifest.ts'
import { createParquetFile } from './parquet-file.ts'
import type { StoredCell } from './parquet-types.ts'
import { createRowReader, type MonthRange, type RowReader } from './rows.ts'
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
  const reading = { ...work, table, sinceMonth, reader: createRowReader(work.db, table) }

  const kept = new Map<Partition, TargetFile>()
  const written = new Map<Partition, TargetFile>()
  if (full || present.length === 0) {
    for (const file of await writeEverything(reading)) written.set(file.month, file)
    if (written.size + untouched.length === 0) written.set(null, await writeRowsWithoutTime(reading))
  } else {
    const { unchanged, changed } = comparison(await currentMarks(reading, untouched.length > 0), before)
    for (const file of unchanged) kept.set(file.month, file)
    for (const file of await writeChanged(reading, changed)) written.set(file.month, file)
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
}

async function writeEverything(reading: TableRead): Promise<TargetFile[]> {
  const { reader, sinceMonth } = reading
  const files = await writeRows(reading, { from: sinceMonth })
  if (!reading.table.rows.time || sinceMonth !== undefined) return files
  return rowsOf(files) < reader.count() ? [...files, await writeRowsWithoutTime(reading)] : files
}

const rowsOf = (marks: Iterable<Mark>): number => [...marks].reduce((sum, { rows }) => sum + rows, 0)

/** The mark that each partition should have. An empty table has one empty partition, so that readers find the table. */
async function currentMarks(reading: TableRead, hasOthers: boolean): Promise<Map<Partition, Mark>> {
  const { reader, sinceMonth, table } = reading
  const digest = () => {
    const fingerprint = createFingerprint(table.columns)
    return {
      add: fingerprint.add,
      finish: (): Mark => ({ fingerprint: fingerprint.value(), rows: fingerprint.rows() }),
      abandon: () => undefined,
    }
  }
  const marks = await writePartitions(reading, reader.withTime({ from: sinceMonth }), digest)
  const { time } = table.rows
  if (!time && marks.size === 0) marks.set(undefined, digest().finish())
  const mayLackSome = time && sinceMonth === undefined
  if (mayLackSome && (marks.size === 0 || rowsOf(marks.values()) < reader.count())) {
    const timeless = await writePartitions(reading, reader.withoutTime(), digest)
    marks.set(null, timeless.get(null) ?? digest().finish())
  }
  if (marks.size === 0 && !hasOthers) marks.set(null, digest().finish())
  return marks
}

function comparison(marks: ReadonlyMap<Partition, Mark>, before: ReadonlyMap<Partition, TargetFile>) {
  const unchanged: TargetFile[] = []
  const changed: Partition[] = []
  for (const [month, mark] of marks) {
    const file = before.get(month)
    if (file && file.fingerprint === mark.fingerprint && file.rows === mark.rows) unchanged.push(file)
    else changed.push(month)
  }
  return { unchanged, changed: { months: changed, all: [...marks.keys()] } }
}

/** Consecutive changed months are read by one query. */
async function writeChanged(
  reading: TableRead,
  { months, all }: { months: readonly Partition[]; all: readonly Partition[] },
): Promise<TargetFile[]> {
  const files: TargetFile[] = []
  for (const range of rangesOf(months, all)) files.push(...(await writeRows(reading, range)))
  if (months.includes(undefined)) files.push(...(await writeRows(reading, {})))
  if (months.includes(null)) files.push(await writeRowsWithoutTime(reading))
  return files
}

/** Ranges of months that follow each other in `all`, which is in the order of time. Pure. */
export function rangesOf(months: readonly Partition[], all: readonly Partition[]): Required<MonthRange>[] {
  const ranges: { from: string; to: string }[] = []
  let last: { from: string; to: string } | undefined
  for (const month of all) {
    if (typeof month !== 'string' || !months.includes(month)) last = undefined
    else if (last) last.to = month
    else {
      last = { from: month, to: month }
      ranges.push(last)
    }
  }
  return ranges
}

/** One file per month with rows. A table without a time gets exactly one file, which may be empty. */
async function writeRows(reading: TableRead, range: MonthRange): Promise<TargetFile[]> {
  const open = (month: Partition) => fileFor(reading, month)
  const files = await writePartitions(reading, reading.reader.withTime(range), open)
  if (!reading.table.rows.time && files.size === 0) return [open(undefined).finish()]
  return [...files.values()]
}

async function writeRowsWithoutTime(reading: TableRead): Promise<TargetFile> {
  const open = (month: Partition) => fileFor(reading, month)
  const files = await writePartitions(reading, reading.reader.withoutTime(), open)
  return files.get(null) ?? open(null).finish()
}

interface Sink<Result> {
  add(cells: readonly StoredCell[]): void
  finish(): Result
  abandon(): void
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

/** Writes rows to one sink per partition. A partition's rows are consecutive; the last cell of a row is its month. */
async function writePartitions<Result>(
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
