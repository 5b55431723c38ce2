import { createHash } from 'node:crypto'
import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import type { StoredCell } from '../store/database/sqlite-types.ts'
import { type ExportColumn, sourcesOf } from './export-tables.ts'
import { keptCell, PARQUET_TYPES } from './parquet-types.ts'
import type { Sink } from './partitions.ts'

/**
 * A digest of every cell of a file's rows, in order. It shows whether the file is still equal to the database.
 * Timestamps cannot show that: a purge and a new read of a transcript change cells but no timestamp. The digest covers
 * each cell as the file keeps it, so it can be computed from the file as well.
 */
export interface Mark {
  /** 32 hexadecimal digits. */
  fingerprint: string
  rows: number
}

/** Version of the file layout. Raise it when the same rows have to be written differently. */
const LAYOUT = 1

/** Characters to collect before they are hashed, since each call of `update` has a fixed cost. */
const HASH_CHARACTERS = 1 << 16

/** Computes the mark of rows without writing them. */
export function createFingerprint(columns: readonly ExportColumn[]): Sink<Mark> {
  const hash = createHash('sha256')
  const types = columns.map(({ name, kind }) => [name, PARQUET_TYPES[kind].name])
  hash.update(JSON.stringify([LAYOUT, types]))
  const sources = sourcesOf(columns)
  const read = columns.map(column => ({
    place: sources.indexOf(column.source ?? column.name),
    kept: keptCell(column),
  }))
  let rows = 0
  let text = ''
  return {
    add(cells) {
      rows += 1
      for (const { place, kept } of read) text += cellText(kept(cells[place] ?? null))
      if (text.length < HASH_CHARACTERS) return
      hash.update(text)
      text = ''
    },
    finish: () => ({ fingerprint: hash.update(text).digest('hex').slice(0, 32), rows }),
    abandon: () => undefined,
  }
}

/** The digest's input for a cell. It includes type and text length, so different rows never give the same input. */
function cellText(cell: StoredCell): string {
  if (cell === null) return '-'
  if (typeof cell === 'string') return `${cell.length}:${cell}`
  return typeof cell === 'bigint' ? `i${cell};` : `r${cell};`
}

export interface FileMark extends Mark {
  /** Folder of the table that the file was written for. A file that someone copied may be in another folder. */
  folder: string
}

/** The key of the mark in the metadata of the file's footer. */
export const MARK_KEY = 'parley.fingerprint'

export const markText = ({ folder, fingerprint, rows }: FileMark): string =>
  `<${folder}:${fingerprint}:${rows}>`

const MARKS = /parley\.fingerprint.{1,4}<([\w-]+):([0-9a-f]{32}):(\d+)>/gs

/** The mark of a complete Parquet file that parley wrote, and the file's size; undefined for any other file. */
export function readMark(path: string): (FileMark & { bytes: number }) | undefined {
  const file = openSync(path, 'r')
  try {
    const bytes = fstatSync(file).size
    const end = bytesAt(file, bytes - TRAILER_BYTES, TRAILER_BYTES)
    if (bytes < 2 * TRAILER_BYTES || end.toString('latin1', 4) !== 'PAR1') return undefined
    const length = end.readUInt32LE(0)
    if (length > bytes - TRAILER_BYTES) return undefined
    const footer = bytesAt(file, bytes - TRAILER_BYTES - length, length).toString('latin1')
    // The last match: the footer also has column names and values, which come earlier and may look like a mark.
    const [, folder, fingerprint, rows] = [...footer.matchAll(MARKS)].at(-1) ?? []
    if (folder === undefined || fingerprint === undefined) return undefined
    return { folder, fingerprint, rows: Number(rows), bytes }
  } finally {
    closeSync(file)
  }
}

/** A Parquet file ends with the length of its footer in four bytes, followed by `PAR1`. */
const TRAILER_BYTES = 8

function bytesAt(file: number, position: number, length: number): Buffer {
  const buffer = Buffer.alloc(length)
  if (position >= 0) readSync(file, buffer, 0, length, position)
  return buffer
}
