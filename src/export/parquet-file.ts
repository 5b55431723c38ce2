import { createHash } from 'node:crypto'
import { writeSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import { ByteWriter, type ColumnSource, ParquetWriter } from 'hyparquet-writer'
import { EXIT_STATUS, StopError } from '../base/errors.ts'
import type { StoredCell } from '../store/database/sqlite-types.ts'
import { type ExportColumn, type ExportTable, sourcesOf } from './export-tables.ts'
import { createFingerprint, MARK_KEY, markText } from './fingerprint.ts'
import {
  type ExportKind,
  PARQUET_TYPES,
  type ParquetCell,
  type ParquetType,
  parquetSchema,
} from './parquet-types.ts'

/** The checksum that is noted about a file: 32 hexadecimal digits. */
export const fileChecksum = (sha256: string): string => sha256.slice(0, 32)

export interface ParquetFileOptions {
  /** The descriptor of a new file. */
  file: number
  table: ExportTable
  /** The columns that the fingerprint covers. Default: all. */
  digested?: readonly ExportColumn[]
  createdBy: string
  /** Default: `PARQUET_TYPES`. */
  types?: Readonly<Record<ExportKind, ParquetType>>
  /** The field id of each column, in their order, for table formats that find columns by id. */
  fieldIds?: readonly number[]
}

/** Higher levels take more time than they save bytes; the figures are in DECISIONS.md. */
const GZIP_LEVEL = 4

/** A row group ends at this number of rows or of characters. */
const GROUP_ROWS = 20_000
const GROUP_CHARACTERS = 4_000_000
/** Row groups may have this many characters per column. With fewer, the footer would use more memory than the cells. */
const COLUMN_CHARACTERS = 8_000

/** Approximate memory of a cell, in characters. */
function charactersOf(cell: StoredCell): number {
  if (typeof cell === 'string') return cell.length
  return cell === null ? 2 : 8
}

/**
 * Writes a Parquet file. At most one row group is in memory. `finish` writes the last row group, the mark and the footer.
 */
export function createParquetFile({
  file,
  table,
  digested = table.columns,
  createdBy,
  types = PARQUET_TYPES,
  fieldIds,
}: ParquetFileOptions) {
  const { columns } = table
  const sources = sourcesOf(columns)
  const read = columns.map(column => ({
    ...column,
    place: sources.indexOf(column.source ?? column.name),
    convert: types[column.kind].convert,
  }))
  const fingerprint = createFingerprint(digested)
  const { bytes, digest } = bytesOf(file)
  const kvMetadata: { key: string; value: string }[] = []
  const writer = new ParquetWriter({
    writer: bytes,
    schema: parquetSchema(columns, types, fieldIds),
    kvMetadata,
    createdBy,
    codec: 'GZIP',
    compressors: { GZIP: page => gzipSync(page, { level: GZIP_LEVEL }) },
  })
  const maxCharacters = Math.max(GROUP_CHARACTERS, columns.length * COLUMN_CHARACTERS)
  const nulls = columns.map(() => 0)
  let group: ParquetCell[][] = columns.map(() => [])
  let rows = 0
  let characters = 0

  const flush = () => {
    if (rows === 0) return
    writer.write({ columnData: group.map(columnData), rowGroupSize: rows })
    group = columns.map(() => [])
    rows = 0
    characters = 0
  }
  const columnData = (data: ParquetCell[], index: number): ColumnSource => ({
    name: columns[index]?.name ?? '',
    data,
    ...COLUMN_OPTIONS[columns[index]?.kind ?? 'text'],
    ...(data.some(isLong) ? { statistics: false } : {}),
  })

  return {
    add(cells: readonly StoredCell[]) {
      fingerprint.add(cells)
      for (const [index, { name, place, convert, mayMisfit }] of read.entries()) {
        const cell = cells[place] ?? null
        const value = cell === null ? null : convert(cell)
        if (value === undefined && !mayMisfit) throw misfitError(table.name, name)
        group[index]?.push(value ?? null)
        if (value == null) nulls[index] = (nulls[index] ?? 0) + 1
        characters += charactersOf(cell)
      }
      rows += 1
      if (rows >= GROUP_ROWS || characters >= maxCharacters) flush()
    },
    finish() {
      flush()
      const mark = fingerprint.finish()
      kvMetadata.push({ key: MARK_KEY, value: markText({ ...mark, folder: table.folder }) })
      writer.finish()
      return {
        ...mark,
        bytes: bytes.offset,
        /** Of the file's bytes, in hex. */
        sha256: digest(),
        /** By column, in the order of the table: how many cells are NULL in the file. */
        nulls,
      }
    },
  }
}

/** Longest text for statistics: the minimum and maximum of every row group stay in memory until the file ends. */
const MAX_STATISTICS_LENGTH = 1000

const isLong = (cell: ParquetCell): boolean => typeof cell === 'string' && cell.length > MAX_STATISTICS_LENGTH

/** Some readers only support plain booleans. Statistics of JSON texts are useless and would fill the footer. */
const COLUMN_OPTIONS: Readonly<Partial<Record<string, Partial<ColumnSource>>>> = {
  boolean: { encoding: 'PLAIN' },
  json: { statistics: false },
}

function misfitError(table: string, column: string): StopError {
  return new StopError(`${table}.${column} has a value that does not fit its type`, {
    code: 'export-unfit',
    hint: 'Find the value in the database. If another program wrote it, correct it there, else report a fault of parley. --tables exports without this table.',
    exitStatus: EXIT_STATUS.databaseUnavailable,
  })
}

/** Bytes to collect before they are written to the file. */
const CHUNK_BYTES = 1 << 20
/**
 * The first size of the buffer. Most files are small, and clearing a megabyte takes longer than writing a small file.
 */
const FIRST_BYTES = 1 << 14

/** Writes to a file in pieces, and computes the SHA-256 of what was written. */
function bytesOf(file: number): { bytes: ByteWriter; digest(): string } {
  const writer = new ByteWriter(FIRST_BYTES)
  const hash = createHash('sha256')
  const grow = writer.ensure.bind(writer)
  const drain = () => {
    const bytes = writer.getBytes()
    hash.update(bytes)
    for (let from = 0; from < bytes.length; ) from += writeSync(file, bytes, from)
    writer.index = 0
  }
  // The library's writer would keep the whole file in memory. It never changes earlier bytes, so a full buffer can be
  // written to the file.
  writer.ensure = size => {
    if (writer.index > 0 && writer.index + size > CHUNK_BYTES) drain()
    grow(size)
  }
  writer.finish = drain
  return { bytes: writer, digest: () => hash.digest('hex') }
}
