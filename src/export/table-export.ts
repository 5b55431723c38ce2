import type { Clock } from '../clock.ts'
import type { Sqlite } from '../store/open.ts'
import { createFingerprint, type Mark } from './fingerprint.ts'
import { createParquetFile } from './parquet-file.ts'
import type { StoredCell } from './parquet-types.ts'
import { createRowReader, type MonthRange, type RowReader } from './rows.ts'
import type { ExportTable } from './tables.ts'
import { partOf, type Target, type TargetFile } from './target.ts'

/** Brings the files of one table up to date with the rows of one instant. */

export interface TableWork {
  db: Sqlite
  target: Target
  clock: Clock
  /** Of files. */
  mode: number
  createdBy: string
  /** Partitions of earlier months are neither read nor touched. */
  sinceMonth: string | undefined
  /** Everything is written, whatever stands there. */
  full: boolean
  /** Ends it between two rows: its reason is thrown. */
  signal: AbortSignal
  /** Told now and then how many rows were read since it was told last. */
  onRows(rows: number): void
}

export interface TableOutcome {
  /** All that the table now consists of, the earliest month first. */
  files: readonly TargetFile[]
  /** Of these, what was written, what was found to be true, and what was not looked at. */
  written: ReadonlySet<string>
  verified: ReadonlySet<string>
  /** What is no part of the table any more, and is to be removed once the manifest says so. */
  stale: readonly string[]
}

/** A month; null for rows without a time, undefined where the table has no time. */
type Partition = string | null | undefined

export async function exportTable(work: TableWork, table: ExportTable): Promise<TableOutcome> {
  const { target, full, signal } = work
  // Signals arrive between two turns of the event loop only.
  await nextTurn()
  if (signal.aborted) throw signal.reason
  const sinceMonth = table.rows.time ? work.sinceMonth : undefined
  const present = target.files(table.folder)
  const isOurs = ({ month }: TargetFile) =>
    sinceMonth === undefined || (typeof month === 'string' && month >= sinceMonth)
  const before = new Map(present.filter(isOurs).map(file => [file.month, file]))
  const untouched = present.filter(file => !isOurs(file))
  const reading = { ...work, table, sinceMonth, reader: createRowReader(work.db, table) }

  const kept = new Map<Partition, TargetFile>()
  const written = new Map<Partition, TargetFile>()
  if (full || present.length === 0) {
    for (const file of await writeEverything(reading)) written.set(file.month, file)
    if (written.size + untouched.length === 0) written.set(null, await writeTimeless(reading))
  } else {
    const { unchanged, changed } = compared(await survey(reading, untouched.length > 0), before)
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

interface Reading extends TableWork {
  table: ExportTable
  reader: RowReader
}

async function writeEverything(reading: Reading): Promise<TargetFile[]> {
  const { reader, sinceMonth } = reading
  const files = await writeRows(reading, { from: sinceMonth })
  if (!reading.table.rows.time || sinceMonth !== undefined) return files
  return rowsOf(files) < reader.count() ? [...files, await writeTimeless(reading)] : files
}

const rowsOf = (marks: Iterable<Mark>): number => [...marks].reduce((sum, { rows }) => sum + rows, 0)

/** What each partition would have to say. A table without rows has one that is empty, so that readers find it. */
async function survey(reading: Reading, hasOthers: boolean): Promise<Map<Partition, Mark>> {
  const { reader, sinceMonth, table } = reading
  const digest = () => {
    const fingerprint = createFingerprint(table.columns)
    return {
      add: fingerprint.add,
      finish: (): Mark => ({ fingerprint: fingerprint.value(), rows: fingerprint.rows() }),
      abandon: () => undefined,
    }
  }
  const marks = await intoPartitions(reading, reader.timed({ from: sinceMonth }), digest)
  const { time } = table.rows
  if (!time && marks.size === 0) marks.set(undefined, digest().finish())
  const mayLackSome = time && sinceMonth === undefined
  if (mayLackSome && (marks.size === 0 || rowsOf(marks.values()) < reader.count())) {
    const timeless = await intoPartitions(reading, reader.timeless(), digest)
    marks.set(null, timeless.get(null) ?? digest().finish())
  }
  if (marks.size === 0 && !hasOthers) marks.set(null, digest().finish())
  return marks
}

function compared(marks: ReadonlyMap<Partition, Mark>, before: ReadonlyMap<Partition, TargetFile>) {
  const unchanged: TargetFile[] = []
  const changed: Partition[] = []
  for (const [month, mark] of marks) {
    const file = before.get(month)
    if (file && file.fingerprint === mark.fingerprint && file.rows === mark.rows) unchanged.push(file)
    else changed.push(month)
  }
  return { unchanged, changed: { months: changed, all: [...marks.keys()] } }
}

/** Changed months that follow upon each other are read in one go. */
async function writeChanged(
  reading: Reading,
  { months, all }: { months: readonly Partition[]; all: readonly Partition[] },
): Promise<TargetFile[]> {
  const files: TargetFile[] = []
  for (const range of rangesOf(months, all)) files.push(...(await writeRows(reading, range)))
  if (months.includes(undefined)) files.push(...(await writeRows(reading, {})))
  if (months.includes(null)) files.push(await writeTimeless(reading))
  return files
}

/** Pure. `all` is in the order of time. */
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

/** One file for each month that has rows; for a table without times one file, be it empty. */
async function writeRows(reading: Reading, range: MonthRange): Promise<TargetFile[]> {
  const open = (month: Partition) => fileFor(reading, month)
  const files = await intoPartitions(reading, reading.reader.timed(range), open)
  if (!reading.table.rows.time && files.size === 0) return [open(undefined).finish()]
  return [...files.values()]
}

async function writeTimeless(reading: Reading): Promise<TargetFile> {
  const open = (month: Partition) => fileFor(reading, month)
  const files = await intoPartitions(reading, reading.reader.timeless(), open)
  return files.get(null) ?? open(null).finish()
}

interface Sink<Result> {
  add(cells: readonly StoredCell[]): void
  finish(): Result
  abandon(): void
}

function fileFor({ target, table, mode, createdBy }: Reading, month: Partition): Sink<TargetFile> {
  const path = partOf(table.folder, month)
  const file = createParquetFile({ path: target.beside(path), mode, table, createdBy })
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

/** Rows between two looks at the clock, and how long the event loop is held at most where rows are small. */
const LOOK_ROWS = 500
const TURN_MS = 50

const nextTurn = () => new Promise<void>(resolve => setImmediate(resolve))

/** Each partition's rows come one after the other; the last cell of a row says which it is of. */
async function intoPartitions<Result>(
  { table, clock, signal, onRows }: Reading,
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
      if (read % LOOK_ROWS !== 0 || clock.elapsed() - turnedAt < TURN_MS) continue
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
