import type { Clock } from '../../clock.ts'
import { EXIT_STATUS, StopError } from '../../errors.ts'
import { createFingerprint } from '../../export/fingerprint.ts'
import type { StoredCell } from '../../export/parquet-types.ts'
import { sourcesOf } from '../../export/tables.ts'
import type { Sqlite } from '../../store/database/sqlite-types.ts'
import { compareParts } from '../compare-parts.ts'
import type { PublishedTable } from '../tables.ts'
import type { Looking } from '../where-to-look.ts'
import type { ClickHouseConnection } from './connection.ts'
import type { ClickHouseDialect } from './dialect.ts'
import type { RecordedPart } from './known-parts.ts'
import type { TableLayout } from './layout.ts'
import { createRowBinary } from './row-binary.ts'
import { createRowsChecksum } from './rows-checksum.ts'
import { countParts, recordChecksums } from './state.ts'
import type { ChecksumRow, PartRow } from './state-tables.ts'
import { type DatabasePlace, tableIn } from './statements.ts'

/**
 * Brings the rows of one published table to the server: the parts whose digest differs, as new rows with the number of
 * the publication. Readers do not see them before the publication is complete.
 */

export interface TableToWrite {
  db: Sqlite
  connection: ClickHouseConnection
  place: DatabasePlace
  dialect: ClickHouseDialect
  clock: Clock
  publication: number
  signal: AbortSignal
  onRows(rows: number): void
}

export interface TablePlan {
  layout: TableLayout
  /** The parts that the server has, in their order. */
  known: readonly RecordedPart[]
  lookAt: Looking
}

/** Returns all parts in their order, as the publication shows them. */
export async function writeTable(
  work: TableToWrite,
  table: PublishedTable,
  plan: TablePlan,
): Promise<PartRow[]> {
  const isNew = plan.known.length === 0
  const checksums: ChecksumRow[] = []
  const onChecksum = (row: ChecksumRow) => void checksums.push(row)
  const writing = { ...work, onChecksum }
  const parts = isNew ? await writeAll(writing, table, plan) : await writeChanges(writing, table, plan)
  await checkCounts(
    work,
    plan.layout,
    parts.filter(({ written_in }) => written_in === work.publication),
  )
  await recordChecksums(work.connection, work.place, checksums)
  return parts.map((part, position) => ({ ...part, position }))
}

type WrittenPart = Omit<PartRow, 'position'>

interface ChecksummedWriting extends TableToWrite {
  onChecksum(row: ChecksumRow): void
}

/** Reads each row once: nothing can be compared. */
function writeAll(
  work: ChecksummedWriting,
  table: PublishedTable,
  { layout }: TablePlan,
): Promise<WrittenPart[]> {
  return writeRows(work, { table, layout, rows: table.reader(work.db, []).rows('all') })
}

async function writeChanges(
  work: ChecksummedWriting,
  table: PublishedTable,
  { layout, known, lookAt }: TablePlan,
): Promise<WrittenPart[]> {
  const { db, publication } = work
  const reader = table.reader(
    db,
    known.map(({ part }) => part),
  )
  const compared = await compareParts(work, table, { reader, known, lookAt })
  const names = compared.map(({ part }) => part)
  const parts: WrittenPart[] = []
  for (const one of compared) {
    if (one.same) {
      parts.push({ ...one.same.row, publication })
      continue
    }
    const [written] = await writeRows(work, { table, layout, rows: reader.of(one.part, names) })
    // A view such as sync_status depends on the clock. In a table of one part, no row can be lost between two parts.
    if (!written || (written.digest !== one.mark.fingerprint && names.length > 1)) throw unstable(table)
    parts.push(written)
  }
  return parts
}

interface RowsToWrite {
  table: PublishedTable
  layout: TableLayout
  /** The last cell of each row is its part. The rows of a part are consecutive. */
  rows: Iterable<StoredCell[]>
}

/** Bytes of an INSERT. The server keeps as many in memory. */
const INSERT_BYTES = 16 * 2 ** 20

/** Returns the parts that had rows. */
async function writeRows(
  work: ChecksummedWriting,
  { table, layout, rows }: RowsToWrite,
): Promise<WrittenPart[]> {
  const parts: WrittenPart[] = []
  let current: PartWriter | undefined
  for (const row of rows) {
    const part = (row.pop() as string | null) ?? ''
    if (current?.part !== part) {
      if (current) parts.push(await current.end())
      current = createPartWriter(work, { table, layout, part })
    }
    current.add(row)
    if (current.isFull()) await current.flush()
  }
  if (current) parts.push(await current.end())
  return parts
}

interface PartWriter {
  part: string
  add(cells: readonly StoredCell[]): void
  /** Whether the rows since the last `flush` are enough for an INSERT. */
  isFull(): boolean
  flush(): Promise<void>
  end(): Promise<WrittenPart>
}

function createPartWriter(
  { connection, place, dialect, publication, onRows, onChecksum }: ChecksummedWriting,
  { table, layout, part }: Omit<RowsToWrite, 'rows'> & { part: string },
): PartWriter {
  const fingerprint = createFingerprint(table.read.columns)
  const encoder = createRowEncoder(table, { dialect, part, publication })
  const into = `INSERT INTO ${tableIn(place, layout.name)} FORMAT RowBinary`
  let bytes = 0
  let reported = 0
  const flush = async () => {
    const data = encoder.take()
    if (data.length === 0) return
    await connection.insert(into, data)
    bytes += data.length
    onRows(fingerprint.rows() - reported)
    reported = fingerprint.rows()
  }
  return {
    part,
    flush,
    isFull: () => encoder.size() >= INSERT_BYTES,
    add(cells) {
      fingerprint.add(cells)
      encoder.add(cells)
    },
    async end() {
      await flush()
      onChecksum({ written_in: publication, source: layout.name, part, checksum: encoder.checksum() })
      return {
        publication,
        source: layout.name,
        part,
        written_in: publication,
        digest: fingerprint.value(),
        rows: fingerprint.rows(),
        bytes,
      }
    },
  }
}

interface RowEncoder {
  /** The cells are in the order of `sourcesOf(read.columns)`. */
  add(cells: readonly StoredCell[]): void
  size(): number
  take(): Buffer
  /** Of all rows since the beginning. */
  checksum(): string
}

function createRowEncoder(
  { read, written }: PublishedTable,
  { dialect, part, publication }: { dialect: ClickHouseDialect; part: string; publication: number },
): RowEncoder {
  const sources = sourcesOf(read.columns)
  const columns = read.columns.map(column => ({
    ...column,
    place: sources.indexOf(column.source ?? column.name),
    type: dialect.types[column.kind],
  }))
  // The month of the row's owner.
  const hasPartColumn = written !== read
  const number = BigInt(publication)
  const out = createRowBinary()
  const checksum = createRowsChecksum()
  return {
    size: out.size,
    take: out.take,
    checksum: checksum.value,
    add(cells) {
      const start = out.size()
      for (const { name, place, type, mayMisfit } of columns) {
        const cell = cells[place] ?? null
        const value = cell === null ? null : type.convert(cell)
        if (value === undefined && !mayMisfit) throw misfit(read.name, name)
        out.isNull(value == null)
        if (value != null) type.put(out, value)
      }
      if (hasPartColumn) {
        out.isNull(part === '')
        if (part !== '') out.text(part)
      }
      out.text(part)
      out.int64(number)
      checksum.add(out.from(start))
    },
  }
}

/** A server that lost or doubled rows must not show them. */
async function checkCounts(
  { connection, place, publication }: TableToWrite,
  { name }: TableLayout,
  written: readonly WrittenPart[],
): Promise<void> {
  if (written.length === 0) return
  const counted = await countParts(connection, place, [name], publication)
  const stored = new Map(counted.map(({ part, rows }) => [part, rows]))
  const wrong = written.find(({ part, rows }) => stored.get(part) !== rows)
  if (wrong === undefined) return
  throw new StopError(
    `${connection.name} has ${stored.get(wrong.part) ?? 0} rows of a part of ${name}, but ${wrong.rows} were sent`,
    {
      code: 'publish-count',
      hint: 'Check the log of the server. Run parley publish again; it writes the part again. Readers still see the last publication.',
      exitStatus: EXIT_STATUS.databaseUnavailable,
    },
  )
}

function unstable({ read }: PublishedTable): StopError {
  return new StopError(`A part of ${read.name} was read twice with different rows`, {
    code: 'publish-unstable',
    hint: 'This is a fault of parley. Readers still see the earlier rows.',
    exitStatus: EXIT_STATUS.fault,
  })
}

function misfit(table: string, column: string): StopError {
  return new StopError(`${table}.${column} has a value that does not fit its type`, {
    code: 'publish-unfit',
    hint: 'parley does not write such values: check which other program wrote to the database.',
    exitStatus: EXIT_STATUS.databaseUnavailable,
  })
}
