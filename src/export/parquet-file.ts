import { closeSync, fchmodSync, fsyncSync, openSync, writeSync } from 'node:fs'
import { ByteWriter, type ColumnSource, ParquetWriter } from 'hyparquet-writer'
import { EXIT_STATUS, StopError } from '../errors.ts'
import { createFingerprint, MARK_KEY, type Mark, markText } from './fingerprint.ts'
import { PARQUET_TYPES, type ParquetCell, parquetSchema, type StoredCell } from './parquet-types.ts'
import { type ExportTable, sourcesOf } from './tables.ts'

/** One Parquet file in the making. It holds no more than one row group in memory. */
export interface ParquetFile {
  /** Takes the cells of `sourcesOf` the table's columns. */
  add(cells: readonly StoredCell[]): void
  /** Writes the rest and its mark, so that all of it is on the disk. */
  finish(): Mark & { bytes: number }
  /** Leaves it as it is. */
  abandon(): void
}

export interface ParquetFileOptions {
  path: string
  mode: number
  table: ExportTable
  createdBy: string
}

/** A row group ends after so many rows, or when its cells come to so many characters. */
const GROUP_ROWS = 20_000
const GROUP_CHARACTERS = 4_000_000
/** Of one column: less, and what is kept in memory of each for the footer would come to more than the cells. */
const COLUMN_CHARACTERS = 8_000

/** What a cell costs in memory. */
function charactersOf(cell: StoredCell): number {
  if (typeof cell === 'string') return cell.length
  return cell === null ? 2 : 8
}

export function createParquetFile({ path, mode, table, createdBy }: ParquetFileOptions): ParquetFile {
  const { columns } = table
  const sources = sourcesOf(columns)
  const read = columns.map(column => ({
    ...column,
    place: sources.indexOf(column.source ?? column.name),
    convert: PARQUET_TYPES[column.kind].convert,
  }))
  const fingerprint = createFingerprint(columns)
  const file = openFile(path, mode)
  const kvMetadata: { key: string; value: string }[] = []
  const writer = new ParquetWriter({
    writer: file.writer,
    schema: parquetSchema(columns),
    kvMetadata,
    createdBy,
  })
  const mostCharacters = Math.max(GROUP_CHARACTERS, columns.length * COLUMN_CHARACTERS)
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
    ...WAYS[columns[index]?.kind ?? 'text'],
    ...(data.some(isLong) ? { statistics: false } : {}),
  })

  return {
    add(cells) {
      fingerprint.add(cells)
      for (const [index, { name, place, convert, mayMisfit }] of read.entries()) {
        const cell = cells[place] ?? null
        const value = cell === null ? null : convert(cell)
        if (value === undefined && !mayMisfit) throw unfit(table.name, name)
        group[index]?.push(value ?? null)
        characters += charactersOf(cell)
      }
      rows += 1
      if (rows >= GROUP_ROWS || characters >= mostCharacters) flush()
    },
    finish() {
      flush()
      const mark = { fingerprint: fingerprint.value(), rows: fingerprint.rows() }
      kvMetadata.push({ key: MARK_KEY, value: markText({ ...mark, folder: table.folder }) })
      writer.finish()
      return { ...mark, bytes: file.close() }
    },
    abandon: file.abandon,
  }
}

/** The least and the greatest text of every row group are kept until the file ends. */
const LONG = 1000

const isLong = (cell: ParquetCell): boolean => typeof cell === 'string' && cell.length > LONG

/**
 * Some readers know booleans only as plain bits. The least and the greatest of JSON texts help nobody, and would
 * stand in the footer.
 */
const WAYS: Readonly<Partial<Record<string, Partial<ColumnSource>>>> = {
  boolean: { encoding: 'PLAIN' },
  json: { statistics: false },
}

function unfit(table: string, column: string): StopError {
  return new StopError(`${table}.${column} holds a value that is not of its type`, {
    code: 'export-unfit',
    hint: 'parley writes no such value: look for who else wrote to the database, or leave the table out with --tables.',
    exitStatus: EXIT_STATUS.databaseUnavailable,
  })
}

/** Bytes that are gathered before they are written. */
const CHUNK = 1 << 20

interface OpenFile {
  writer: ByteWriter
  /** Returns its length. */
  close(): number
  abandon(): void
}

function openFile(path: string, mode: number): OpenFile {
  const handle = openSync(path, 'w', mode)
  const writer = new ByteWriter(CHUNK)
  let isOpen = true
  const grow = writer.ensure.bind(writer)
  const drain = () => {
    const bytes = writer.getBytes()
    for (let from = 0; from < bytes.length; ) from += writeSync(handle, bytes, from)
    writer.index = 0
  }
  const close = () => {
    if (isOpen) closeSync(handle)
    isOpen = false
  }
  // What is written is never gone back to, so that it need not be kept.
  writer.ensure = size => {
    if (writer.index > 0 && writer.index + size > CHUNK) drain()
    grow(size)
  }
  writer.finish = drain
  return {
    writer,
    close() {
      fchmodSync(handle, mode)
      fsyncSync(handle)
      close()
      return writer.offset
    },
    abandon: close,
  }
}
